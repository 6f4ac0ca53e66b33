/**
 * Judges Tallyhook by the hostile receivers: a whole daemon, an endpoint per receiver and healthy
 * ones beside them, and apps that write. The same writes before the hostile receivers are there and
 * after they are gone say what these cost the others.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { connect, type Db } from '../../../src/db/connect.ts';
import { monotonicMs, systemClock } from '../../../src/kernel/clock.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import { type App, makeApp } from '../../harness/app.ts';
import { makeAuthority } from '../../harness/certificates.ts';
import { CLIENT, environmentOf, spawnDaemon } from '../../harness/daemon.ts';
import { until } from '../../harness/until.ts';
import { quantileOf } from '../bench/frame.ts';
import { type Pace, runLoad, type Write } from './load.ts';
import { openReceivers, type Receiver, type Receivers, TIMES, type Times } from './receivers.ts';
import type { Finding } from './rules.ts';
import { type Verdict, verdictsOf } from './verdict.ts';

export interface JudgePlan extends Pace {
  healthy: number;
  /** Seconds of the same load before the hostile receivers are there, and after they are gone. */
  aloneS: number;
  times?: Times;
  /** Of the daemon, beside the defaults. */
  settings?: object;
}

interface Spread {
  p50: number;
  p95: number;
}

export interface Judgement {
  hostile: Verdict[];
  healthy: Verdict[];
  /** Events that a healthy endpoint did not get, by its name. */
  missing: string[];
  writes: { sent: number; failed: number };
  /** Milliseconds, without the hostile receivers and with them; undefined without the former. */
  writeMs: [Spread | undefined, Spread];
  /** From the answer to a write to the receipt of its event by a healthy endpoint. */
  arrivalMs: [Spread | undefined, Spread];
}

const WALLETS = 200;
const PLENTY = 10n ** 15n;
const ARRIVES_WITHIN_MS = 30_000;
const ALLOWED = '127.0.0.1/32';
const PRELOAD = pathToFileURL(join(import.meta.dirname, 'use-name-server.ts')).href;

/** @param database the owner's URL of a migrated database */
export async function judgeTallyhook(
  database: string,
  plan: JudgePlan,
  say: (text: string) => void = () => {},
): Promise<Judgement> {
  const closes: (() => Promise<unknown>)[] = [];
  try {
    const folder = await mkdtemp(join(tmpdir(), 'tallyhook-hostile-'));
    closes.push(() => rm(folder, { recursive: true, force: true }));
    const authority = await makeAuthority(folder);
    const { healthy, times = TIMES } = plan;
    const receivers = await openReceivers(authority, { healthy, times });
    closes.push(() => receivers.close());
    const sandbox = await startSandbox({ ...CLIENT, seed: 1, clock: systemClock });
    closes.push(() => sandbox.close());
    const wallets = Array.from({ length: WALLETS }, (_, n) => `0x${String(n).padStart(40, 'c')}`);
    for (const addr of wallets) sandbox.control.setWallet(addr, { amt_token: PLENTY });
    const daemon = await spawnDaemon(
      {
        ...environmentOf(database, sandbox.url),
        WEBHOOK_ALLOW_CIDRS: ALLOWED,
        NODE_EXTRA_CA_CERTS: authority.certFile,
        NODE_OPTIONS: `--import=${PRELOAD}`,
        HOSTILE_NAME_SERVER: receivers.nameServer.address,
      },
      {
        http: { port: 0 },
        log: { level: 'warn' },
        // Gives to wallets that were never observed wait for a poll: that is not what is judged.
        gateway: { first_poll_wait_ms: 0 },
        ...plan.settings,
      },
    );
    closes.push(() => daemon.stop());
    process.once('exit', () => daemon.child.kill('SIGKILL'));
    const app = makeApp(() => daemon.url);
    const db = connect({ url: database, max: 1 });
    closes.push(() => db.end());
    return await run({ app, db, receivers, wallets, plan, say });
  } finally {
    for (const close of closes.reverse()) await close();
  }
}

interface Scene {
  app: App;
  db: Db;
  receivers: Receivers;
  wallets: readonly string[];
  plan: JudgePlan;
  say: (text: string) => void;
}

async function run({ app, db, receivers, wallets, plan, say }: Scene): Promise<Judgement> {
  const { hostile, healthy } = receivers;
  for (const receiver of healthy)
    await subscribe(app, receiver.url, ['operation.accepted', 'operation.rejected']);
  const load = (seconds: number) => runLoad(app, wallets, { ...plan, seconds });
  const alone: Write[] = [];
  if (plan.aloneS > 0) {
    // So that plans and connections are warm.
    await load(plan.aloneS / 4);
    say(`${plan.aloneS} s with healthy receivers only`);
    alone.push(...(await load(plan.aloneS)));
  }
  const endpoints = new Map<string, string[]>();
  for (const { name, url } of hostile) {
    // Few events, so that some come again before the circuit opens, and all of them.
    const ids = [
      await subscribe(app, `${url}?refused`, ['operation.rejected']),
      await subscribe(app, url, ['operation.accepted']),
    ];
    endpoints.set(name, ids);
  }
  say(`${plan.seconds} s with ${hostile.length} hostile receivers`);
  await arrived(healthy, alone);
  const began = monotonicMs();
  receivers.begin();
  const beside = await load(plan.seconds);
  await arrived(healthy, [...alone, ...beside]);
  const inside = await insideOf(db, endpoints);
  const verdicts = verdictsOf(hostile, healthy, began, (name) => inside.get(name) ?? []);
  if (plan.aloneS > 0) {
    for (const id of [...endpoints.values()].flat())
      await app.call('POST', `/api/endpoints/${id}/disable`);
    say(`${plan.aloneS} s without them`);
    alone.push(...(await load(plan.aloneS)));
  }
  const all = [...alone, ...beside];
  const missing = await arrived(healthy, all);
  const isFailed = ({ isRefused, status }: Write) => status !== (isRefused ? 406 : 200);
  const both = <T>(figure: (writes: readonly Write[]) => T): [T | undefined, T] => [
    alone.length > 0 ? figure(alone) : undefined,
    figure(beside),
  ];
  return {
    hostile: verdicts,
    healthy: verdictsOf(healthy, healthy),
    missing,
    writes: { sent: all.length, failed: all.filter(isFailed).length },
    writeMs: both((writes) => spreadOf(writes.map(({ tookMs }) => tookMs))),
    arrivalMs: both((writes) => spreadOf(arrivalsOf(healthy, writes))),
  };
}

async function subscribe(app: App, url: string, types: string[]): Promise<string> {
  const { status, text, json } = await app.call('POST', '/api/endpoints', {
    url,
    event_types: types,
  });
  if (status !== 201) throw new Error(`the endpoint was answered ${status} ${text}`);
  return json.id;
}

/** Waits until each write has come to each healthy receiver; answers what has not. */
async function arrived(healthy: readonly Receiver[], writes: readonly Write[]): Promise<string[]> {
  const missing = () =>
    healthy.flatMap(({ name, seen }) => {
      const came = new Set(seen.requests.map(operationOf));
      return writes.filter(({ id }) => !came.has(id)).map(({ id }) => `${name}: ${id}`);
    });
  await until(async () => (missing().length === 0 ? true : undefined), {
    deadlineMs: ARRIVES_WITHIN_MS,
  });
  return missing();
}

function operationOf({ body }: { body: string }): string {
  return /"operation_id":"(op_[^"]+)"/.exec(body)?.[1] ?? '';
}

function arrivalsOf(healthy: readonly Receiver[], writes: readonly Write[]): number[] {
  const answered = new Map(writes.map(({ id, answeredMs }) => [id, answeredMs]));
  return healthy.flatMap(({ seen }) =>
    seen.requests.flatMap((request) => {
      const at = answered.get(operationOf(request));
      return at === undefined ? [] : [request.atMs - at];
    }),
  );
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return { p50: quantileOf(sorted, 0.5), p95: quantileOf(sorted, 0.95) };
}

/** Receivers to which nothing can be delivered. */
const UNDELIVERABLE =
  'redirect not-modified gone slow-head hangs slow-tls wrong-host expired dns-silent'.split(' ');

/** What the daemon itself has recorded of each receiver. */
async function insideOf(
  db: Db,
  endpoints: ReadonlyMap<string, readonly string[]>,
): Promise<Map<string, Finding[]>> {
  const found = new Map<string, Finding[]>();
  for (const [name, ids] of endpoints) {
    const [row] = await db.sql<Inside[]>`
      select (select count(*)::int from tallyhook.deliveries
          where 'ep_' || endpoint_id = any(${[...ids]}) and state = 'delivered') as delivered,
        (select coalesce(max(schedule_step), 0) from tallyhook.pending_deliveries
          where 'ep_' || endpoint_id = any(${[...ids]})) as steps,
        (select count(*)::int from tallyhook.endpoints
          where id = any(${[...ids]}) and state_reason = 'gone') as gone`;
    if (row) found.set(name, insideFindings(name, row, ids.length));
  }
  return found;
}

interface Inside {
  delivered: number;
  steps: number;
  gone: number;
}

function insideFindings(name: string, { delivered, steps, gone }: Inside, all: number): Finding[] {
  const findings: Finding[] = [];
  if (UNDELIVERABLE.includes(name))
    findings.push({ what: `counts ${delivered} as delivered`, held: delivered === 0 });
  if (name.startsWith('throttles'))
    findings.push({ what: `used ${steps} steps of its schedule`, held: steps === 0 });
  if (name === 'gone')
    findings.push({ what: `disabled ${gone} of ${all} endpoints as gone`, held: gone === all });
  return findings;
}
