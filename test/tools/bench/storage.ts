/**
 * What a write leaves in the database: gives and transfers with idempotency keys through a whole
 * daemon with one webhook endpoint, until they are settled and their webhooks delivered. Bytes on
 * disk by table and index, and bytes of WAL by what they are about. A full-page image depends on
 * the time between checkpoints and is counted apart.
 */
import type { Db } from '../../../src/db/connect.ts';
import type { App } from '../../harness/app.ts';
import { openTemporaryServer } from '../../harness/temporary-server.ts';
import { until } from '../../harness/until.ts';
import type { Bench, Figures, Result } from './frame.ts';
import { addressesOf, done, openRig } from './rig.ts';

const WRITES = 4_000;
const ROUNDS = 4;
const WALLETS = 500;
const ADDRESSES = addressesOf(WALLETS);
const CALLERS = 16;
const WATCHES_MAX = 500;
const BUDGET_PER_S = 200;
const ENDS_WITHIN_MS = 180_000;
/** Tables and indexes that are listed, the greatest first. */
const SHOWN = 12;

export const storage: Bench = {
  name: 'storage',
  what: `bytes per write, of ${WRITES} gives and transfers with webhooks of operations`,
  target: 'at most 3 kB on disk and 8 kB of WAL',
  async run() {
    const { disk, wal, images } = await measured(WRITES);
    return [
      { ...resultOf('on disk', total(disk)), target: { of: 'measured', atMost: 3_000 } },
      ...[...disk].slice(0, SHOWN).map(([name, bytes]) => resultOf(`  ${name}`, bytes)),
      {
        ...resultOf('WAL', total(wal)),
        target: { of: 'measured', atMost: 8_000 },
        note: `${Math.round(images)} B of full-page images on top`,
      },
      ...[...wal].slice(0, SHOWN).map(([name, bytes]) => resultOf(`  ${name}`, bytes)),
    ];
  },
};

/** Bytes per write by table and index, the greatest first. */
type Bytes = ReadonlyMap<string, number>;

interface Measured {
  disk: Bytes;
  wal: Bytes;
  images: number;
}

function resultOf(what: string, bytes: number): Result {
  const measured: Figures = { median: bytes, min: bytes, max: bytes };
  return { what, unit: 'B', measured };
}

function total(bytes: Bytes): number {
  return [...bytes.values()].reduce((sum, n) => sum + n, 0);
}

async function measured(writes: number): Promise<Measured> {
  const server = await openTemporaryServer('bench');
  const stops: (() => unknown)[] = [server.close];
  try {
    const url = await server.createDatabase('storage');
    const plan = { wallets: ADDRESSES, statementTimeoutMs: ENDS_WITHIN_MS, settings: SETTINGS };
    const { app, db } = await openRig({ url, ...plan }, stops);
    await prepared(app, db);
    await db.sql`create extension if not exists pg_walinspect`;
    const before = await mark(db);
    for (let round = 1; round <= ROUNDS; round += 1) {
      await load(app, writes / ROUNDS, round);
      await ended(db, WALLETS + (round * writes) / ROUNDS);
      // As autovacuum does when a part of a table is dead.
      if (round < ROUNDS) await db.sql`vacuum`;
    }
    const walEnd = await position(db);
    const sizes = await sizesOf(db);
    return {
      disk: ranked(
        [...sizes].map(([name, size]) => [name, (size - (before.sizes.get(name) ?? 0)) / writes]),
      ),
      ...(await walOf(db, before.at, walEnd, writes)),
    };
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

const SETTINGS = {
  upstream: {
    budget_per_s: BUDGET_PER_S,
    initial_rate_per_s: BUDGET_PER_S,
    poll_concurrency_max: 16,
  },
};

/** Waits until each wallet is observed and has its opening. */
async function prepared(app: App, db: Db): Promise<void> {
  for (let n = 0; n < ADDRESSES.length; n += WATCHES_MAX) {
    const refs = ADDRESSES.slice(n, n + WATCHES_MAX).map((addr) => ({ kind: 'wallet', addr }));
    await done(app.call('POST', '/api/watches', refs));
  }
  await load(app, WALLETS, 0);
  await ended(db, WALLETS);
}

/** One half gives, one half transfers. */
async function load(app: App, writes: number, round: number): Promise<void> {
  let next = 0;
  const caller = async () => {
    for (let n = next++; n < writes; n = next++) {
      const key = { 'idempotency-key': `bench-${round}-${n}-0123456789abcdef` };
      const [from, to] = [n % WALLETS, (n * 7 + 1) % WALLETS].map((i) => ADDRESSES[i] ?? '');
      const amount = 1 + (n % 997);
      await done(
        n % 2 === 0 || from === to
          ? app.give(to ?? '', amount, key)
          : app.transfer(from ?? '', to ?? '', amount, key),
      );
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

/** Waits until every write is settled, every event numbered, and nothing is left to deliver. */
async function ended(db: Db, writes: number): Promise<void> {
  const found = await until(
    async () => {
      const [row] = await db.sql<{ settled: number; waiting: boolean }[]>`
        select (select count(*)::int from tallyhook.operations where state = 'settled') as settled,
          exists (select from tallyhook.pending_deliveries)
            or exists (select from tallyhook.unprocessed_observations)
            as waiting`;
      return row && row.settled >= writes && !row.waiting ? true : undefined;
    },
    { deadlineMs: ENDS_WITHIN_MS, everyMs: 500 },
  );
  if (!found) throw new Error(`not everything ended within ${ENDS_WITHIN_MS} ms`);
}

async function mark(db: Db): Promise<{ sizes: Map<string, number>; at: string }> {
  const sizes = await sizesOf(db);
  await db.sql`checkpoint`;
  return { sizes, at: await position(db) };
}

async function position(db: Db): Promise<string> {
  const rows = await db.sql<{ at: string }[]>`select pg_current_wal_insert_lsn()::text as at`;
  return rows[0]?.at ?? '';
}

/** Bytes by table, toast included, and by index; partitions count with their table. */
export async function sizesOf(db: Db): Promise<Map<string, number>> {
  await db.sql`vacuum (analyze)`;
  const rows = await db.sql<{ name: string; bytes: bigint }[]>`
    ${namesOf(db)}
    select name, sum(pg_relation_size(oid))::bigint as bytes from named group by name`;
  return new Map(rows.map(({ name, bytes }) => [name, Number(bytes)]));
}

/** Each relation that has pages: its table's name, or `index of its table`. */
function namesOf({ sql }: Db) {
  return sql`
    with recursive roots as (
      select c.oid, c.oid as root from pg_class c
      where c.relnamespace = 'tallyhook'::regnamespace and not c.relispartition
      union all
      select i.inhrelid, r.root from roots r join pg_inherits i on i.inhparent = r.oid
    ), named as (
      select c.oid, case when c.relkind = 'i' then 'index ' else 'table ' end || p.relname as name
      from roots r join pg_class c on c.oid = r.oid join pg_class p on p.oid = r.root
      where c.relkind in ('r', 'i')
      union all
      select t.oid, 'table ' || p.relname
      from roots r join pg_class c on c.oid = r.oid join pg_class p on p.oid = r.root
      join pg_class t on t.oid = c.reltoastrelid
    )`;
}

async function walOf(
  db: Db,
  from: string,
  to: string,
  writes: number,
): Promise<Pick<Measured, 'wal' | 'images'>> {
  const rows = await db.sql<{ name: string | null; bytes: bigint; images: bigint }[]>`
    ${namesOf(db)}, records as (
      select r.record_length, r.fpi_length, b.relfilenode, r.resource_manager
      from pg_get_wal_records_info(${from}::pg_lsn, ${to}::pg_lsn) r
      left join pg_get_wal_block_info(${from}::pg_lsn, ${to}::pg_lsn, false) b
        on b.start_lsn = r.start_lsn and b.block_id = 0
    )
    select coalesce(n.name, r.resource_manager) as name, sum(r.record_length - r.fpi_length)::bigint
      as bytes, sum(r.fpi_length)::bigint as images
    from records r left join pg_class c on c.relfilenode = r.relfilenode
    left join named n on n.oid = c.oid
    group by 1`;
  return {
    wal: ranked(rows.map(({ name, bytes }) => [name ?? 'other', Number(bytes) / writes])),
    images: rows.reduce((sum, { images }) => sum + Number(images), 0) / writes,
  };
}

function ranked(rows: readonly (readonly [string, number])[]): Bytes {
  return new Map([...rows].sort((a, b) => b[1] - a[1]).filter(([, n]) => n !== 0));
}
