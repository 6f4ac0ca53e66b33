/**
 * A daemon for benches of its writes, with a sandbox, funded wallets and a receiver of webhooks,
 * and the gives that are sent to it at a rate.
 */
import { connect, type Db } from '../../../src/db/connect.ts';
import { monotonicMs, pause, systemClock } from '../../../src/kernel/clock.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import { type App, makeApp } from '../../harness/app.ts';
import { CLIENT, type DaemonProcess, environmentOf, spawnDaemon } from '../../harness/daemon.ts';
import { startReceiver } from '../../harness/receiver.ts';

interface Rig {
  daemon: DaemonProcess;
  app: App;
  /** A session of the bench itself. */
  db: Db;
}

/**
 * Starts all of it, with an endpoint for the events of operations.
 * @param input `daemonUrl`: the address of the database for the daemon, if it has another
 * @param stops gets what stops each part; the caller runs it from the end, also after an error
 */
export async function openRig(
  input: {
    url: string;
    daemonUrl?: string;
    wallets: readonly string[];
    statementTimeoutMs: number;
    settings?: Record<string, object>;
  },
  stops: (() => unknown)[],
): Promise<Rig> {
  const { url, daemonUrl = url, wallets, statementTimeoutMs, settings } = input;
  const db = connect({ url, max: 1, statementTimeoutMs });
  stops.push(() => db.end());
  const sandbox = await startSandbox({ ...CLIENT, seed: 1, clock: systemClock });
  stops.push(() => sandbox.close());
  for (const addr of wallets) sandbox.control.setWallet(addr, { amt_token: 10n ** 12n });
  const receiver = await startReceiver();
  stops.push(() => receiver.close());
  const all = { http: { port: 0 }, log: { level: 'warn' }, ...settings };
  const daemon = await spawnDaemon(environmentOf(daemonUrl, sandbox.url), all);
  stops.push(() => daemon.stop());
  const app = makeApp(() => daemon.url);
  const endpoint = { url: receiver.url, event_types: ['operation.*'] };
  await done(app.call('POST', '/api/endpoints', endpoint));
  return { daemon, app, db };
}

export function addressesOf(wallets: number): string[] {
  return Array.from({ length: wallets }, (_, n) => `0x${(n + 1).toString(16).padStart(40, 'b')}`);
}

/** @throws Error when the call was refused */
export async function done(call: ReturnType<App['call']>): Promise<void> {
  const { status, text } = await call;
  if (status >= 300) throw new Error(`answered ${status} ${text}`);
}

/** Gives to all wallets in turn, each at its time; answers how long each took, sorted. */
export async function giveAt(
  app: App,
  wallets: readonly string[],
  rate: { perS: number; seconds: number },
): Promise<number[]> {
  const startedAt = monotonicMs();
  const waits: number[] = [];
  const give = async (n: number) => {
    const key = { 'idempotency-key': `bench-${startedAt}-${n}` };
    const sentAt = monotonicMs();
    await done(app.give(wallets[n % wallets.length] ?? '', 1 + (n % 97), key));
    waits.push(monotonicMs() - sentAt);
  };
  const all: Promise<void>[] = [];
  for (let n = 0; n < rate.perS * rate.seconds; n++) {
    await pause(Math.max(0, startedAt + (n * 1_000) / rate.perS - monotonicMs()));
    const given = give(n);
    // Awaited below, when all have been sent.
    given.catch(() => {});
    all.push(given);
  }
  await Promise.all(all);
  return waits.sort((a, b) => a - b);
}
