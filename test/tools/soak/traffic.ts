/**
 * Apps of all kinds at a steady rate: gives, transfers, queued gives and mints, and reads. A write
 * that gets no final answer is repeated under its key at the other daemon, as an app would do.
 */
import { monotonicMs, pause } from '../../../src/kernel/clock.ts';
import type { Random } from '../../../src/kernel/random.ts';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';
import type { Answered, App } from '../../harness/app.ts';
import { lostAnswers } from '../../harness/lost-answers.ts';

export interface Write {
  kind: 'give' | 'transfer' | 'queued' | 'mint';
  /** The idempotency key; of payments also the reason type, by which the service's log names it. */
  name: string;
  tokenId: bigint | null;
  atMs: number;
  /** Until the final answer, repeats included; undefined without one. */
  tookMs: number | undefined;
  /** Of the last answer; 0 for none. */
  status: number;
  tries: number;
}

export interface Traffic {
  writes: Write[];
  /** Reads, and those that were not answered 200. */
  reads: { sent: number; failed: number };
  /** Ends when every write has its answer. */
  stop(): Promise<void>;
}

interface TrafficDeps {
  /** The apps of the daemons that are thought to live. */
  apps: () => readonly App[];
  sandbox: Sandbox;
  random: Random;
  wallets: readonly string[];
  perS: number;
  readsPerS: number;
  /** The share of writes whose answer is lost. */
  lost: number;
  /** Before a write without a final answer is repeated; 200 by default. */
  repeatMs?: number;
}

const LOST = lostAnswers(900);
const GIVE_UP_MS = 60_000;
const REPEAT_MS = 200;
const FIRST_TOKEN = 700_000n;

export function startTraffic(deps: TrafficDeps): Traffic {
  const { random, perS, readsPerS } = deps;
  const traffic: Traffic = { writes: [], reads: { sent: 0, failed: 0 }, stop };
  const underWay = new Set<Promise<void>>();
  const started = monotonicMs();
  const add = (work: Promise<void>) => {
    underWay.add(work);
    work.finally(() => underWay.delete(work));
  };
  let [nextWrite, nextRead] = [0, 0];
  const tick = setInterval(() => {
    const now = monotonicMs() - started;
    for (; nextWrite <= now; nextWrite += (1_000 / perS) * (0.5 + random.unit()))
      add(send(deps, traffic.writes, nextWrite));
    for (; nextRead <= now; nextRead += (1_000 / readsPerS) * (0.5 + random.unit()))
      add(read(deps, traffic.reads));
  }, 5);
  async function stop() {
    clearInterval(tick);
    await Promise.all(underWay);
  }
  return traffic;
}

const pick = <T>(random: Random, of: readonly T[]): T | undefined =>
  of[Math.floor(random.unit() * of.length)];

async function send(deps: TrafficDeps, writes: Write[], atMs: number): Promise<void> {
  const { random, sandbox, wallets, apps } = deps;
  const drawn = random.unit();
  const kind = drawn < 0.5 ? 'give' : drawn < 0.8 ? 'transfer' : drawn < 0.9 ? 'queued' : 'mint';
  const name = `app-${writes.length}`;
  const tokenId = kind === 'mint' ? FIRST_TOKEN + BigInt(writes.length) : null;
  const write: Write = { kind, name, tokenId, atMs, tookMs: undefined, status: 0, tries: 0 };
  writes.push(write);
  if (random.unit() < deps.lost) {
    const fault = pick(random, LOST);
    if (fault)
      sandbox.control.addFault({ ...fault, contains: tokenId ? `${tokenId}` : `"${name}"` });
  }
  const to = pick(random, wallets) ?? '';
  const from =
    pick(
      random,
      wallets.filter((addr) => addr !== to),
    ) ?? '';
  const amount = 1 + Math.floor(random.unit() * 1_000);
  const started = monotonicMs();
  while (monotonicMs() - started < GIVE_UP_MS) {
    write.tries += 1;
    const app = pick(random, apps());
    const answer = app && (await request(app, write, { from, to, amount }).catch(() => undefined));
    write.status = answer?.status ?? 0;
    if (answer && isFinal(answer)) {
      write.tookMs = monotonicMs() - started;
      return;
    }
    await pause(deps.repeatMs ?? REPEAT_MS);
  }
}

function request(
  app: App,
  { kind, name, tokenId }: Write,
  { from, to, amount }: { from: string; to: string; amount: number },
): Promise<Answered> {
  const headers = { 'idempotency-key': name, 'tallyhook-reference': name };
  const payment = { toAddr: to, amount, reasonType: name };
  const give = '/v1/app/token/operations/1/give';
  switch (kind) {
    case 'give':
      return app.call('POST', give, payment, headers);
    case 'queued':
      return app.call('POST', give, payment, { ...headers, prefer: 'respond-async' });
    case 'transfer': {
      const transfer = { ...payment, fromAddr: from, feeAmount: 0 };
      return app.call('POST', '/v1/app/token/accounts/transfer', transfer, headers);
    }
    case 'mint':
      return app.mint(to, tokenId ?? 0n, headers);
  }
}

/** Not final: a daemon without its database, too much at once, and a first try that still runs. */
function isFinal({ status, json }: Answered): boolean {
  return status !== 429 && status !== 503 && json?.code !== 'idempotency_in_flight';
}

async function read(deps: TrafficDeps, reads: Traffic['reads']): Promise<void> {
  const { random, wallets, apps } = deps;
  reads.sent += 1;
  const path = `/v1/app/token/account?addr=${pick(random, wallets)}`;
  const answer = await pick(random, apps())
    ?.call('GET', path)
    .catch(() => undefined);
  if (answer?.status !== 200) reads.failed += 1;
}
