/**
 * What a write costs the database: gives through a whole daemon on Debian's Postgres with its
 * default configuration, each with two events and one webhook, by pg_stat_statements and the WAL.
 * A relay between daemon and Postgres counts round trips. What the daemon does while nothing
 * happens is measured first, without and with polls.
 */
import { connect as connectSocket, createServer, type Socket } from 'node:net';
import type { Db } from '../../../src/db/connect.ts';
import { monotonicMs, pause } from '../../../src/kernel/clock.ts';
import type { App } from '../../harness/app.ts';
import { joinSockets } from '../../harness/join-sockets.ts';
import { listen } from '../../harness/listen.ts';
import { execute } from '../../harness/temporary-server.ts';
import { until } from '../../harness/until.ts';
import { startDebian } from './debian.ts';
import type { Bench, Result, Target } from './frame.ts';
import { addressesOf, done, giveAt, openRig } from './rig.ts';
import { sizesOf } from './storage.ts';

const GIVES_PER_S = 20;
const WALLETS = addressesOf(10);
const IDLE_S = 15;
const LOAD_S = 30;
/** Before, so that each connection has planned its statements. */
const WARM_UP_S = 15;
/** What the daemon does only after its start is over by then. */
const REST_MS = 8_000;
const ENDS_WITHIN_MS = 120_000;
const SHOWN = 70;
const QUERY_SHOWN = 90;

export const statements: Bench = {
  name: 'statements',
  what: `gives at ${GIVES_PER_S}/s on Debian's Postgres, each with two events and one webhook`,
  target: 'at most 15 statements, 8 kB and 70 records of WAL, 4.5 kB on disk and 2.6 ms',
  async run() {
    const { quiet, polled, loaded, disk, listed } = await measured();
    const writes = GIVES_PER_S * LOAD_S;
    const each = (what: string, unit: string, total: number, target?: Omit<Target, 'of'>) =>
      resultOf(what, unit, total / writes, target);
    return [
      each('statements per write', '', loaded.statements, { atMost: 15 }),
      each('round trips per write', '', loaded.turns.all),
      each('  of the gateway', '', loaded.turns.gateway, { atMost: 3.5 }),
      each('WAL records per write', '', loaded.records, { atMost: 70 }),
      each('WAL per write', 'B', loaded.walBytes, { atMost: 8_000 }),
      each('on disk per write', 'B', disk, { atMost: 4_500 }),
      each('execution per write', 'ms', loaded.executionMs, { atMost: 2.6 }),
      resultOf('statements per s, idle', '/s', perS(quiet), { atMost: 3 }),
      resultOf(
        'statements per poll, idle',
        '',
        (perS(polled) - perS(quiet)) / perS(polled, 'polls'),
        {
          atMost: 2,
        },
      ),
      resultOf('  polls per s', '/s', perS(polled, 'polls')),
      ...listed.map(({ query, calls, ms, records, bytes }) => ({
        ...each(`  ${query}`, '', calls),
        note: [
          `${(ms / writes).toFixed(3)} ms`,
          `${(records / writes).toFixed(1)} records`,
          `${Math.round(bytes / writes)} B`,
        ].join(', '),
      })),
    ];
  },
};

function resultOf(what: string, unit: string, value: number, target?: Omit<Target, 'of'>): Result {
  const measured = { median: value, min: value, max: value };
  return { what, unit, measured, ...(target ? { target: { of: 'measured', ...target } } : {}) };
}

interface Listed {
  query: string;
  calls: number;
  ms: number;
  records: number;
  bytes: number;
}

interface Counts {
  seconds: number;
  statements: number;
  executionMs: number;
  records: number;
  walBytes: number;
  polls: number;
  turns: Turns;
}

interface Turns {
  all: number;
  gateway: number;
}

function perS(counts: Counts, what: 'statements' | 'polls' = 'statements'): number {
  return counts[what] / counts.seconds;
}

async function measured() {
  const stops: (() => unknown)[] = [];
  try {
    // All statements but begin and commit are counted.
    const server = await startDebian(
      "shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.track_utility = off\n",
    );
    stops.push(server.close);
    const relay = await startRelay(server.port);
    stops.push(relay.close);
    await execute(
      server.url,
      'create extension pg_stat_statements; create extension pg_walinspect',
    );
    const daemonUrl = Object.assign(new URL(server.url), { port: String(relay.port) }).href;
    const plan = { wallets: WALLETS, statementTimeoutMs: ENDS_WITHIN_MS };
    const { app, db } = await openRig({ url: server.url, daemonUrl, ...plan }, stops);
    const counted = (work: () => Promise<unknown>) => countOf({ db, app, relay }, work);
    await pause(REST_MS);
    const quiet = await counted(() => pause(IDLE_S * 1000));
    const refs = WALLETS.map((addr) => ({ kind: 'wallet', addr }));
    await done(app.call('POST', '/api/watches', refs));
    await giveAt(app, WALLETS, { perS: GIVES_PER_S, seconds: WARM_UP_S });
    await ended(db, GIVES_PER_S * WARM_UP_S);
    await pause(REST_MS);
    const polled = await counted(() => pause(IDLE_S * 1000));
    const before = total(await sizesOf(db));
    await db.sql`checkpoint`;
    const loaded = await counted(async () => {
      await giveAt(app, WALLETS, { perS: GIVES_PER_S, seconds: LOAD_S });
      await ended(db, GIVES_PER_S * (WARM_UP_S + LOAD_S));
    });
    const listed = await listStatements(db);
    return { quiet, polled, loaded, disk: total(await sizesOf(db)) - before, listed };
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

interface Relay {
  port: number;
  turns(): Turns;
  close(): void;
}

/** Counts how often a connection asks after it was answered, in all and of the gateway's pool. */
async function startRelay(to: number): Promise<Relay> {
  const turns: Turns = { all: 0, gateway: 0 };
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (near) => {
    const far = connectSocket({ port: to, host: '127.0.0.1', noDelay: true });
    let isAnswered = true;
    let isGateway = false;
    near.on('data', (chunk) => {
      if (chunk.includes('tallyhook gateway\0')) isGateway = true;
      if (isAnswered) {
        turns.all += 1;
        if (isGateway) turns.gateway += 1;
      }
      isAnswered = false;
    });
    far.on('data', () => {
      isAnswered = true;
    });
    joinSockets(near, far, sockets);
  });
  return {
    port: await listen(server),
    turns: () => ({ ...turns }),
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** What happened meanwhile, by everybody but this bench. */
async function countOf(
  { db, app, relay }: { db: Db; app: App; relay: Relay },
  work: () => Promise<unknown>,
): Promise<Counts> {
  const polls = await pollsOf(app);
  await db.sql`select pg_stat_statements_reset()`;
  const [from] = await db.sql<{ at: string }[]>`select pg_current_wal_flush_lsn()::text as at`;
  const [turns, startedAt] = [relay.turns(), monotonicMs()];
  await work();
  const seconds = (monotonicMs() - startedAt) / 1000;
  const after = relay.turns();
  const [used] = await db.sql<{ statements: number; executionMs: number }[]>`
    select sum(calls)::int as statements, sum(total_exec_time) as execution_ms
    from pg_stat_statements where ${isOurs(db)}`;
  const [wal] = await db.sql<{ records: number; bytes: number }[]>`
    select sum(count)::int as records, sum(record_size)::int as bytes
    from pg_get_wal_stats(${from?.at ?? ''}::pg_lsn, pg_current_wal_flush_lsn(), false)`;
  return {
    seconds,
    statements: used?.statements ?? 0,
    executionMs: used?.executionMs ?? 0,
    records: wal?.records ?? 0,
    walBytes: wal?.bytes ?? 0,
    polls: (await pollsOf(app)) - polls,
    turns: { all: after.all - turns.all, gateway: after.gateway - turns.gateway },
  };
}

/** This bench works as the superuser, the daemon as its role. */
function isOurs({ sql }: Db) {
  return sql`userid = 'tallyhook_writer'::regrole`;
}

/** The most frequent first, with what each takes and writes in the time that was counted last. */
async function listStatements(db: Db): Promise<Listed[]> {
  return db.sql<Listed[]>`
    select left(regexp_replace(query, '[[:space:]]+', ' ', 'g'), ${QUERY_SHOWN}) as query,
      sum(calls)::int as calls, sum(total_exec_time) as ms, sum(wal_records)::int as records,
      sum(wal_bytes - wal_fpi * 8192)::int as bytes
    from pg_stat_statements where ${isOurs(db)}
    group by queryid, query order by sum(calls) desc limit ${SHOWN}`;
}

async function pollsOf(app: App): Promise<number> {
  const { text } = await app.call('GET', '/metrics');
  const counts = [...text.matchAll(/^tallyhook_polls_total\{[^}]*\} (\d+)/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Waits until every write is settled and its webhooks are delivered. */
async function ended(db: Db, writes: number): Promise<void> {
  const found = await until(
    async () => {
      const [row] = await db.sql<{ settled: number; waiting: boolean }[]>`
        select (select count(*)::int from tallyhook.operations where state = 'settled') as settled,
          exists (select from tallyhook.pending_deliveries) as waiting`;
      return row && row.settled >= writes && !row.waiting ? true : undefined;
    },
    { deadlineMs: ENDS_WITHIN_MS, everyMs: 200 },
  );
  if (!found) throw new Error(`not everything ended within ${ENDS_WITHIN_MS} ms`);
}

function total(sizes: ReadonlyMap<string, number>): number {
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}
