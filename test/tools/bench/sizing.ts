/**
 * What a machine is asked for at several rates of writes: the time of its processors, WAL and
 * connections, of a whole daemon on Debian's Postgres with its default configuration. Each give has
 * two events and one webhook; load, service and receiver are not counted. WAL is counted with the
 * whole pages that Postgres writes after each checkpoint.
 */
import { readdir, readFile } from 'node:fs/promises';
import type { Db } from '../../../src/db/connect.ts';
import type { App } from '../../harness/app.ts';
import { until } from '../../harness/until.ts';
import { startDebian } from './debian.ts';
import { type Bench, quantileOf, type Result } from './frame.ts';
import { addressesOf, giveAt, openRig } from './rig.ts';

const RATES = [1, 10, 50, 100];
const LOAD_S = 30;
/** Before, so that each connection has planned its statements. */
const WARM_UP_S = 10;
const WALLETS = addressesOf(50);
const ENDS_WITHIN_MS = 240_000;
/** Of the times in /proc, in each second. */
const TICKS = 100;

export const sizing: Bench = {
  name: 'sizing',
  what: `gives at ${RATES.join(', ')}/s on Debian's Postgres: processors, WAL, connections`,
  target: 'none: what docs/sizing.md says',
  long: true,
  async run() {
    const stops: (() => unknown)[] = [];
    try {
      const server = await startDebian();
      stops.push(server.close);
      const input = { url: server.url, wallets: WALLETS, statementTimeoutMs: ENDS_WITHIN_MS };
      const { daemon, app, db } = await openRig(input, stops);
      const of = { app, db, roots: { daemon: daemon.child.pid ?? 0, postgres: server.pid } };
      await giveAt(app, WALLETS, { perS: RATES[1] ?? 1, seconds: WARM_UP_S });
      await settled(db);
      const results: Result[] = [];
      for (const rate of RATES) results.push(...(await measure(of, rate)));
      return results;
    } finally {
      for (const stop of stops.reverse()) await stop();
    }
  },
};

interface Measured {
  app: App;
  db: Db;
  roots: { daemon: number; postgres: number };
}

async function measure({ app, db, roots }: Measured, rate: number): Promise<Result[]> {
  const from = await walOf(db);
  const before = await timesOf(roots);
  const waits = await giveAt(app, WALLETS, { perS: rate, seconds: LOAD_S });
  const connections = await connectionsOf(db);
  await settled(db);
  const after = await timesOf(roots);
  const writes = rate * LOAD_S;
  const cpu = (of: keyof Measured['roots']) => ((after[of] - before[of]) * 1_000) / writes;
  const wal = Number((await walOf(db)) - from) / writes;
  const at = `at ${rate}/s: `;
  const one = (what: string, unit: string, value: number): Result => ({
    what: at + what,
    unit,
    measured: { median: value, min: value, max: value },
  });
  return [
    one('answer, p50', 'ms', quantileOf(waits, 0.5)),
    one('answer, p95', 'ms', quantileOf(waits, 0.95)),
    one('processor time of the daemon per write', 'ms', cpu('daemon')),
    one('processor time of Postgres per write', 'ms', cpu('postgres')),
    one('WAL per write', 'B', wal),
    one('connections', '', connections),
  ];
}

/** Waits until every write is settled and its webhooks are delivered. */
async function settled(db: Db): Promise<void> {
  const isOver = async () => {
    const [row] = await db.sql<{ open: boolean }[]>`
      select exists (select from tallyhook.operations where state <> 'settled')
        or exists (select from tallyhook.pending_deliveries) as open`;
    return row?.open === false ? true : undefined;
  };
  if (!(await until(isOver, { deadlineMs: ENDS_WITHIN_MS, everyMs: 500 })))
    throw new Error(`not everything ended within ${ENDS_WITHIN_MS} ms`);
}

async function walOf({ sql }: Db): Promise<bigint> {
  const [row] = await sql<{ at: string }[]>`
    select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::text as at`;
  return BigInt(row?.at ?? 0);
}

async function connectionsOf({ sql }: Db): Promise<number> {
  const [row] = await sql<{ open: number }[]>`
    select count(*)::int as open from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid()`;
  return row?.open ?? 0;
}

/** Seconds of processors that each root and all that it started have used, ended ones included. */
async function timesOf<Names extends Record<string, number>>(roots: Names) {
  const parents = new Map<number, number>();
  const used = new Map<number, number>();
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => '');
    // The name of a program may contain spaces; what follows it has none.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = fields.slice(11, 15).reduce((sum, text) => sum + Number(text), 0);
    if (fields.length < 15) continue;
    parents.set(Number(entry), Number(fields[1]));
    used.set(Number(entry), ticks / TICKS);
  }
  const isOf = (pid: number, root: number): boolean => {
    if (pid === root) return true;
    const parent = parents.get(pid);
    return parent !== undefined && parent > 1 && isOf(parent, root);
  };
  const sumOf = (root: number) =>
    [...used].reduce((sum, [pid, seconds]) => (isOf(pid, root) ? sum + seconds : sum), 0);
  const times = Object.entries(roots).map(([name, root]) => [name, sumOf(root)]);
  return Object.fromEntries(times) as Record<keyof Names, number>;
}
