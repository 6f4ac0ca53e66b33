/**
 * Snapshots of Postgres that are put back under running daemons. Two whole daemons send writes with
 * keys, some of whose answers are lost; the state of the database is kept and writes go on; then it
 * is put back while apps repeat what they have asked for. A person compares and releases, and the
 * world goes on with the next round.
 *
 * Every write names itself in `reasonType`, by which the service's record of applied writes finds
 * it. None may be applied twice, and at the end none may be called what it is not.
 */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { type EmbeddedServer, openEmbedded } from '../../../src/db/embedded/embedded.ts';
import type { Random } from '../../../src/kernel/random.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import { type App, makeApp } from '../../harness/app.ts';
import { runCommand } from '../../harness/command.ts';
import {
  CLIENT,
  type DaemonProcess,
  environmentOf,
  QUICK,
  spawnDaemon,
} from '../../harness/daemon.ts';
import { lostAnswers } from '../../harness/lost-answers.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import { until } from '../../harness/until.ts';

export interface RestorePlan {
  seed: number;
  /** How often a snapshot is put back. */
  restores: number;
  /** Writes before, and after, each snapshot. */
  writes: number;
}

export interface Restored {
  writes: number;
  answersLost: number;
  /** Requests with the key of an earlier one, before and after the snapshot was put back. */
  repeated: number;
  /** How the snapshots were put back. */
  ways: Record<string, number>;
  /** What the service did twice, and what is called something else than it is, in words. */
  wrong: string[];
}

/** One in so many writes meets a fault. */
const HARMED = 6;
/** Heartbeats are as rare as in production: nothing else may be what notices the copy. */
const SETTINGS = { ...QUICK, daemon: { ...QUICK.daemon, heartbeat_timeout_ms: 15_000 } };
const DATABASE = 'tallyhook';
const SNAPSHOT = 'snapshot';
const UNTIL = { deadlineMs: 120_000, everyMs: 50 };

interface Write {
  key: string;
  path: string;
  body: { [name: string]: string | number };
  /** Whether it may wait in the request queue. */
  waits: boolean;
}

interface Stage {
  plan: RestorePlan;
  random: Random;
  folder: string;
  server: EmbeddedServer;
  sandbox: Sandbox;
  daemons: DaemonProcess[];
  apps: App[];
  environment: () => Record<string, string>;
  all: Write[];
  /** Keys of what was applied more than once. */
  twice: Set<string>;
  result: Restored;
}

export async function runRestores(plan: RestorePlan): Promise<Restored> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-restores-'));
  await chmod(folder, 0o711);
  const server = await openEmbedded({ directory: join(folder, 'home') });
  const sandbox = await startSandbox({
    ...CLIENT,
    seed: plan.seed,
    clock: { now: () => Date.now() },
    settleMs: 150,
  });
  const stage: Stage = {
    plan,
    random: seededRandom(plan.seed),
    folder,
    server,
    sandbox,
    daemons: [],
    apps: [],
    all: [],
    twice: new Set(),
    environment: () => ({
      ...environmentOf(stage.server.url, sandbox.url),
      DATA_DIR: join(folder, 'data'),
    }),
    result: { writes: 0, answersLost: 0, repeated: 0, ways: {}, wrong: [] },
  };
  try {
    for (const n of [0, 1]) {
      const env = { ...stage.environment(), DATA_DIR: join(folder, n === 0 ? 'data' : 'other') };
      const daemon = await spawnDaemon(env, SETTINGS);
      stage.daemons.push(daemon);
      stage.apps.push(makeApp(() => daemon.url));
    }
    for (let round = 0; round < plan.restores; round++) await runRound(stage);
    await judgeOutcomes(stage);
  } finally {
    await Promise.all(stage.daemons.map((daemon) => daemon.kill()));
    await sandbox.close();
    await stage.server.stop();
    await rm(folder, { recursive: true, force: true });
  }
  return stage.result;
}

async function runRound(stage: Stage): Promise<void> {
  const { plan, random, result } = stage;
  await ask(stage, drawWrites(stage, plan.writes));
  const way = random.unit() < 0.5 ? 'files' : 'template';
  result.ways[way] = (result.ways[way] ?? 0) + 1;
  await keep(stage, way);
  const since = drawWrites(stage, plan.writes);
  await ask(stage, since);
  const repeats = shuffled(stage.all.slice(-2 * plan.writes), random);
  result.repeated += 2 * repeats.length;
  // Some are under way while the snapshot is put back, and all are repeated on it.
  await Promise.all([ask(stage, repeats), putBack(stage, way)]);
  await ask(stage, repeats);
  judgeApplied(stage, `after a snapshot by ${way}`);
  await release(stage, since);
  await ask(stage, repeats);
  judgeApplied(stage, 'after the release');
}

function drawWrites(stage: Stage, count: number): Write[] {
  const { random, sandbox, all, result } = stage;
  const members = sandbox.control.state().members.flatMap(({ addr }) => addr ?? []);
  const pick = () => members[Math.floor(random.unit() * members.length)] ?? '';
  const faults = lostAnswers(400, 2_500);
  const writes = Array.from({ length: count }, (): Write => {
    const key = `w${all.length}x`;
    const amount = 1 + Math.floor(random.unit() * 50);
    const isGive = random.unit() < 0.6;
    const write: Write = {
      key,
      path: `/v1/app/token/operations/${isGive ? '1/give' : 'receive-from'}`,
      body: isGive
        ? { toAddr: pick(), amount, reasonType: key }
        : { fromAddr: pick(), amount, feeAmount: 0, reasonType: key },
      waits: random.unit() < 0.2,
    };
    const fault = faults[Math.floor(random.unit() * faults.length * HARMED)];
    if (fault) {
      sandbox.control.addFault({ ...fault, contains: `"${key}"` });
      result.answersLost += 1;
    }
    all.push(write);
    return write;
  });
  result.writes += count;
  return writes;
}

/** Sends the writes, some at once, to either daemon; repeats those that met no database. */
async function ask({ apps, random }: Stage, writes: readonly Write[]): Promise<void> {
  const turns = writes.map((write) => ({ write, app: apps[Math.floor(random.unit() * 2)] }));
  const callers = Array.from({ length: 4 }, async () => {
    for (let turn = turns.shift(); turn; turn = turns.shift()) {
      const { write, app } = turn;
      await until(async () => {
        const headers = {
          'idempotency-key': write.key,
          ...(write.waits ? { prefer: 'respond-async' } : {}),
        };
        const answer = await app?.call('POST', write.path, write.body, headers);
        return answer?.json?.code === 'database_unavailable' ? undefined : true;
      }, UNTIL);
    }
  });
  await Promise.all(callers);
}

function keep(stage: Stage, way: string): Promise<void> {
  if (way === 'template') return withOwner(stage, (sql) => cloned(sql, DATABASE, SNAPSHOT));
  return whileStopped(stage, copyFiles);
}

function putBack(stage: Stage, way: string): Promise<void> {
  if (way === 'template') return withOwner(stage, (sql) => cloned(sql, SNAPSHOT, DATABASE));
  return whileStopped(stage, async (data, copy) => {
    await rm(data, { recursive: true });
    await copyFiles(copy, data);
  });
}

/** Makes `to` a clone of `from`, to which nothing may be connected meanwhile. */
async function cloned(sql: postgres.Sql, from: string, to: string): Promise<void> {
  for (const name of [DATABASE, SNAPSHOT])
    await sql.unsafe(`update pg_database set datallowconn = false where datname = '${name}'`);
  await sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname in (${DATABASE}, ${SNAPSHOT})`;
  await sql.unsafe(`drop database if exists ${to} with (force)`);
  await sql.unsafe(`create database ${to} template ${from}`);
  for (const name of [DATABASE, SNAPSHOT])
    await sql.unsafe(`update pg_database set datallowconn = true where datname = '${name}'`);
}

async function withOwner(
  { server }: Stage,
  work: (sql: postgres.Sql) => Promise<void>,
): Promise<void> {
  const url = Object.assign(new URL(server.url), { pathname: '/postgres' });
  const sql = postgres(url.href, { max: 1, onnotice: () => {} });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}

async function whileStopped(
  stage: Stage,
  change: (data: string, copy: string) => Promise<void>,
): Promise<void> {
  await stage.server.stop();
  await change(stage.server.dataFolder, join(stage.folder, 'copy'));
  stage.server = await openEmbedded({ directory: join(stage.folder, 'home') });
}

/** With their owners: Postgres does not run as root. */
async function copyFiles(from: string, to: string): Promise<void> {
  await rm(to, { recursive: true, force: true });
  await promisify(execFile)('cp', ['-a', from, to]);
}

/** As a person does who has compared, with the keys that apps used since the snapshot. */
async function release(stage: Stage, since: readonly Write[]): Promise<void> {
  const { apps, folder, result } = stage;
  const frozen = async () => {
    const found = await Promise.all(apps.map((app) => app.call('GET', '/api/status')));
    return found.every(({ json }) => json?.freeze) || undefined;
  };
  if (!(await until(frozen, { deadlineMs: 60_000 })))
    result.wrong.push('a snapshot was put back and writes are not frozen');
  const used = join(folder, 'used.txt');
  await writeFile(used, since.map(({ key }) => `${key}\n`).join(''));
  const args = ['doctor', '--restored', '--keys-used', used, '--release', 'compared'];
  const { code, text } = await runCommand(stage.environment(), ...args);
  if (code !== 0) result.wrong.push(`the release ended with ${code}: ${text.slice(-500)}`);
}

function timesOf({ sandbox }: Stage): Map<string, number> {
  const times = new Map<string, number>();
  for (const { reason_type } of sandbox.control.effects(0n, 100_000))
    if (reason_type !== null) times.set(reason_type, (times.get(reason_type) ?? 0) + 1);
  return times;
}

function judgeApplied(stage: Stage, when: string): void {
  for (const [key, times] of timesOf(stage)) {
    if (times === 1 || stage.twice.has(key)) continue;
    stage.twice.add(key);
    stage.result.wrong.push(`${when}: ${key} was applied ${times} times`);
  }
}

const OPEN = ['queued', 'sending', 'unknown'];

async function judgeOutcomes(stage: Stage): Promise<void> {
  const url = Object.assign(new URL(stage.server.url), { pathname: `/${DATABASE}` });
  const sql = postgres(url.href, { max: 1, onnotice: () => {} });
  try {
    const states = () => sql<{ key: string; id: string; state: string }[]>`
      select idempotency_key as key, id, state from tallyhook.operations`;
    const ended = await until(async () => {
      const rows = await states();
      return rows.every(({ state }) => !OPEN.includes(state)) || undefined;
    }, UNTIL);
    if (!ended) stage.result.wrong.push('some writes never ended');
    const times = timesOf(stage);
    for (const { key, id, state } of await states()) {
      const wasApplied = (times.get(key) ?? 0) > 0;
      const isWrong =
        (['accepted', 'executed', 'settled'].includes(state) && !wasApplied) ||
        (['not_executed', 'rejected'].includes(state) && wasApplied);
      if (isWrong) stage.result.wrong.push(`${key} ${id} is ${state}, applied ${times.get(key)}`);
    }
  } finally {
    await sql.end();
  }
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, at: random.unit() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
