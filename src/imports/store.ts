/** Reads and writes imports and their rows. */
import { asJson, type Db, type Queryable, type Sql, type Tx } from '../db/connect.ts';
import { columnsOf } from '../db/rows.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import { parseJson } from '../kernel/json.ts';
import type {
  ImportState,
  imported,
  importRow,
  RowResult,
} from '../resources/operations/import.ts';
import type { Row } from '../resources/resource.ts';
import type { Movement } from './proof.ts';
import { imports } from './tables.ts';

/** An import as it is stored. */
export type Import = Row<typeof imported> & {
  fingerprint: string;
  place: number;
  provedAccount: string;
  turn: number | null;
};
export type ImportRow = Row<typeof importRow>;
export type Summary = NonNullable<Import['summary']>;
export type Proofs = Pick<Summary, 'wallets' | 'failed'>;

/** Before the first wallet is proved. */
export const NO_PROOFS: Proofs = {
  wallets: { touched: 0, proved: 0, unobserved: 0, failed: 0 },
  failed: [],
};

/** The first half of the keys of advisory locks. */
const FINGERPRINTS = 7_240_204;
const TURNS = 7_240_205;
/** Rows of one statement. */
const REMOVED_MAX = 5_000;

export async function insertStaging(
  { sql }: Queryable,
  row: Pick<Import, 'id' | 'owner' | 'keyId' | 'fileName' | 'options' | 'createdAt'>,
): Promise<void> {
  const { id, owner, keyId, fileName, options, createdAt } = row;
  await sql`
    insert into tallyhook.imports (id, owner, key_id, file_name, options, created_at, state)
    values (${id}, ${owner}, ${keyId}, ${fileName}, ${asJson(options)}::jsonb,
      ${isoText(createdAt)}, 'staging')`;
}

export interface StagedRow {
  n: number;
  line: number;
  report: string | null;
  problem: { code: string; detail: string } | null;
}

/** Rows that cannot be read are refused already. */
export async function insertRows(
  { sql }: Queryable,
  importId: string,
  rows: readonly StagedRow[],
): Promise<void> {
  await sql`
    insert into tallyhook.import_rows (import_id, n, line, report, problem, result)
    select ${importId}, n, line, report, problem, case when report is null then 'refused' end
    from jsonb_to_recordset(${asJson(rows)}::jsonb)
      as x(n int, line int, report text, problem jsonb)`;
}

/** Removes an import whose file did not arrive whole, or that has arrived already. */
export async function removeStaged(db: Db, id: string): Promise<void> {
  let removed = 1;
  for (let last = REMOVED_MAX; removed > 0; last += REMOVED_MAX) {
    const rows = await db.single(
      ({ sql }) => sql`
        delete from tallyhook.import_rows where import_id = ${id} and n <= ${last}`,
    );
    removed = rows.count;
  }
  await db.single(
    ({ sql }) => sql`delete from tallyhook.imports where id = ${id} and state = 'staging'`,
  );
}

/** The import of this fingerprint that has not ended; no other arrives until the end of `tx`. */
export async function lockGoing(tx: Tx, fingerprint: string): Promise<Import | undefined> {
  await tx.sql`select pg_advisory_xact_lock(${FINGERPRINTS}::int, hashtext(${fingerprint}))`;
  const [found] = await tx.sql<Import[]>`
    select ${columnsOf(tx.sql, imports)} from tallyhook.imports
    where fingerprint = ${fingerprint} and state in ('checking', 'recording', 'ready', 'refused')
    for update`;
  return found;
}

/** The file has arrived: its rows are checked from then on. */
export async function markStaged(
  tx: Tx,
  id: string,
  file: Pick<
    Import,
    'sha256' | 'fingerprint' | 'bytes' | 'lines' | 'skipped' | 'refused' | 'ignoredColumns'
  >,
): Promise<Import> {
  const { refused, ignoredColumns, ...rest } = file;
  const [row] = await tx.sql<Import[]>`
    update tallyhook.imports set state = 'checking', sha256 = ${rest.sha256},
      fingerprint = ${rest.fingerprint}, bytes = ${rest.bytes}, lines = ${rest.lines},
      skipped = ${rest.skipped}, refused = ${refused}, checked = ${refused},
      ignored_columns = ${ignoredColumns as string[]}::text[]
    where id = ${id} returning ${columnsOf(tx.sql, imports)}`;
  return must(row, 'staged import');
}

export async function findImport(db: Queryable, id: string): Promise<Import | undefined> {
  const [found] = await db.sql<Import[]>`
    select ${columnsOf(db.sql, imports)} from tallyhook.imports where id = ${id}`;
  return found;
}

interface Page<T> {
  after: T | undefined;
  limit: number;
}

/** Newest first. */
export function listImports(
  { sql }: Queryable,
  { state, after, limit }: Page<string> & { state?: ImportState | undefined },
): Promise<Import[]> {
  return sql<Import[]>`
    select ${columnsOf(sql, imports)} from tallyhook.imports
    where true ${state === undefined ? sql`` : sql`and state = ${state}`}
      ${after === undefined ? sql`` : sql`and id < ${after}`}
    order by id desc limit ${limit}`;
}

/** In the order of the file. */
export async function listRows(
  { sql }: Queryable,
  id: string,
  { result, after, limit }: Page<bigint> & { result?: RowResult | undefined },
): Promise<ImportRow[]> {
  const rows = await sql<(Omit<ImportRow, 'report'> & { report: string | null })[]>`
    select n, line, result, operation_id, problem, report
    from tallyhook.import_rows
    where import_id = ${id} ${result === undefined ? sql`` : sql`and result = ${result}`}
      ${after === undefined ? sql`` : sql`and n > ${after.toString()}::int`}
    order by n limit ${limit}`;
  // Postgres has no jsonb of every text of JSON.
  return rows.map(({ report, ...row }) => {
    return { ...row, report: report === null ? null : parseJson(report) };
  });
}

/**
 * The import that waits longest for work, which no other daemon gets until then. Of those that are
 * to be recorded it is the first: the proof of each knows what the others have recorded.
 */
export async function claimImport(
  db: Queryable,
  now: Instant,
  until: Instant,
): Promise<Import | undefined> {
  const [claimed] = await db.sql<Import[]>`
    update tallyhook.imports set lease_until = ${isoText(until)}
    where id = (select id from tallyhook.imports
      where state in ('checking', 'recording')
        and (lease_until is null or lease_until <= ${isoText(now)})
        and (turn is null or turn = (select min(turn) from tallyhook.imports
          where state in ('checking', 'recording')))
      order by lease_until nulls first, id limit 1 for update skip locked)
    returning ${columnsOf(db.sql, imports)}`;
  return claimed;
}

/** An import is being checked or recorded. */
export function isWorking(sql: Sql) {
  return sql`exists (select from tallyhook.imports where state in ('checking', 'recording'))`;
}

/** Others may work on it from then on. */
export async function releaseImport(db: Queryable, id: string, at: Instant): Promise<void> {
  await db.sql`
    update tallyhook.imports set lease_until = ${isoText(at)} where id = ${id}`;
}

/** Has it checked once more, and then recorded, after those of earlier turns. */
export function takeTurn(db: Db, id: string, reason: string | null): Promise<Import | undefined> {
  return db.begin(async (tx) => {
    await tx.sql`select pg_advisory_xact_lock(${TURNS}::int, 0)`;
    const [moved] = await tx.sql<Import[]>`
      update tallyhook.imports set state = 'checking', reason = ${reason}, place = 0,
        proved_account = '', summary = summary || ${asJson(NO_PROOFS)}::jsonb, checked_at = null,
        turn = (select coalesce(max(turn), 0) + 1 from tallyhook.imports
          where state in ('checking', 'recording'))
      where id = ${id} and state = 'ready' returning ${columnsOf(tx.sql, imports)}`;
    return moved;
  });
}

/** Ends it, unless its state is another one by now. */
export async function endImport(
  db: Queryable,
  id: string,
  from: readonly ImportState[],
  to: 'done' | 'cancelled',
  now: Instant,
): Promise<Import | undefined> {
  const [moved] = await db.sql<Import[]>`
    update tallyhook.imports set state = ${to}, finished_at = ${isoText(now)}
    where id = ${id} and state = any(${from as ImportState[]}::text[])
    returning ${columnsOf(db.sql, imports)}`;
  return moved;
}

/** A row that has a report. */
export interface ReportRow {
  n: number;
  line: number;
  report: string;
}

/** The next rows that are new or not checked. */
export async function nextRows(
  { sql }: Queryable,
  { id, place }: Pick<Import, 'id' | 'place'>,
  limit: number,
): Promise<ReportRow[]> {
  // No index has this form of the result, so they are read by their place.
  return sql<ReportRow[]>`
    select n, line, report from tallyhook.import_rows
    where import_id = ${id} and n > ${place} and report is not null
      and coalesce(result, 'new') = 'new'
    order by n limit ${limit}`;
}

/** The first new rows before a row with these transactions, and those naming these operations. */
export async function earlierRows(
  { sql }: Queryable,
  id: string,
  of: { before: number; identities: readonly string[]; named: readonly string[] },
): Promise<ReportRow[]> {
  const isEarlier = sql`
    found.import_id = ${id} and found.result = 'new' and found.n < ${of.before}`;
  // `offset 0` keeps each lookup on its index, also with a plan made while the table was small.
  return sql<ReportRow[]>`
    select r.n, r.line, r.report from (
      select min(found.n) as n from unnest(${of.identities as string[]}::text[]) as x(identity)
      cross join lateral (
        select p.import_id, p.n, p.result, p.report from tallyhook.import_rows p
        where p.identity is not null and p.identity = x.identity offset 0) found
      where ${isEarlier} group by x.identity, found.report
      union
      select found.n from unnest(${of.named as string[]}::text[]) as x(named)
      cross join lateral (
        select p.import_id, p.n, p.result from tallyhook.import_rows p
        where p.named is not null and p.named = x.named offset 0) found
      where ${isEarlier}) e
    cross join lateral (
      select p.n, p.line, p.report from tallyhook.import_rows p
      where p.import_id = ${id} and p.n = e.n offset 0) r
    order by r.n`;
}

/** Where the rows of `x` are, each by one look into the index. */
function placesOf(sql: Sql, id: string) {
  return sql`cross join lateral (
      select p.ctid as place from tallyhook.import_rows p
      where p.import_id = ${id} and p.n = x.n offset 0) p`;
}

/** What the check found of a row. */
export interface CheckedRow {
  n: number;
  line: number;
  result: RowResult;
  problem: { code: string; detail: string | null } | null;
  operationId: string | null;
  identity: string | null;
  named: string | null;
  kind: string | null;
  occurredAt: string | null;
  /** By account. */
  effects: readonly { account: string; amount: bigint }[];
}

/** Stores it, unless another daemon has: of rows that are not checked, or new ones once more. */
export async function saveChecked(
  { sql }: Queryable,
  { id, place, turn }: Pick<Import, 'id' | 'place' | 'turn'>,
  rows: readonly CheckedRow[],
): Promise<void> {
  const countOf = (result: RowResult) => rows.filter((row) => row.result === result).length;
  const [first, again] = turn === null ? [rows.length, 0] : [0, rows.length];
  await sql`
    with x as (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(n int, line int, result text,
        problem jsonb, "operationId" text, identity text, named text, kind text,
        "occurredAt" timestamptz, effects jsonb)
    ), passed as (
      update tallyhook.imports set place = ${rows.at(-1)?.n ?? place},
        checked = checked + ${first}, known = known + ${countOf('known')},
        refused = refused + ${countOf('refused')},
        to_record = to_record + ${countOf('new') - again}
      where id = ${id} and state = 'checking' and place = ${place}
        and turn is not distinct from ${turn}::int
      returning id
    ), checked as (
      update tallyhook.import_rows r set result = x.result, problem = x.problem,
        operation_id = x."operationId", identity = x.identity, named = x.named, kind = x.kind,
        occurred_at = x."occurredAt"
      from passed cross join x ${placesOf(sql, id)}
      where r.ctid = p.place and r.result is distinct from x.result
    )
    insert into tallyhook.import_movements (import_id, n, line, account, at, amount)
    select ${id}, x.n, x.line, lower(e.effect ->> 'account'), x."occurredAt",
      (e.effect ->> 'amount')::numeric
    from passed cross join x cross join jsonb_array_elements(x.effects) as e(effect)`;
}

/** Removes some movements of an earlier check, before the first row is checked. */
export async function removeMovements(
  { sql }: Queryable,
  { id, turn }: Pick<Import, 'id' | 'turn'>,
): Promise<number> {
  const removed = await sql`
    delete from tallyhook.import_movements m using (
      select x.ctid as place from tallyhook.import_movements x where x.import_id = ${id}
        and exists (select from tallyhook.imports i where i.id = ${id} and i.place = 0
          and i.state = 'checking' and i.turn is not distinct from ${turn}::int)
      limit ${REMOVED_MAX}) old
    where m.ctid = old.place`;
  return removed.count;
}

/** All its rows are checked: what is recorded by then is part of its proof. */
export async function markChecked(
  { sql }: Queryable,
  { id, place }: Pick<Import, 'id' | 'place'>,
  at: Instant,
): Promise<void> {
  await sql`
    update tallyhook.imports set checked_at = ${isoText(at)}
    where id = ${id} and state = 'checking' and place = ${place} and checked_at is null`;
}

/** Goes on behind these rows, which are recorded. */
export async function passRecorded(
  { sql }: Queryable,
  { id, place }: Pick<Import, 'id' | 'place'>,
  to: number,
): Promise<void> {
  await sql`
    update tallyhook.imports set place = ${to}
    where id = ${id} and state = 'recording' and place = ${place}`;
}

/** What recording made of new rows. */
export type RecordedRow = Pick<CheckedRow, 'n' | 'result' | 'problem' | 'operationId'>;

/** False when the import is no longer being recorded. */
export async function saveRecorded(
  { sql }: Queryable,
  id: string,
  rows: readonly RecordedRow[],
): Promise<boolean> {
  const saved = await sql`
    with x as (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(n int, result text,
        problem jsonb, "operationId" text)
    ), saved as (
      update tallyhook.import_rows r set result = x.result, problem = x.problem,
        operation_id = x."operationId"
      from x ${placesOf(sql, id)} where r.ctid = p.place and r.result = 'new'
      returning r.result
    )
    update tallyhook.imports i set recorded = i.recorded + s.recorded,
      known = i.known + s.known, refused = i.refused + s.refused
    from (select count(*) filter (where result = 'recorded')::int as recorded,
      count(*) filter (where result = 'known')::int as known,
      count(*) filter (where result = 'refused')::int as refused from saved) s
    where i.id = ${id} and i.state = 'recording'`;
  return saved.count > 0;
}

/** The next accounts of wallets that new rows move. */
export async function nextAccounts(
  { sql }: Queryable,
  id: string,
  after: string,
  limit: number,
): Promise<string[]> {
  // Each by one look into the index.
  const rows = await sql<{ account: string }[]>`
    with recursive found as (
      (select account, 1 as place from tallyhook.import_movements
        where import_id = ${id} and account > greatest(${after}, 'wallet:') order by 1 limit 1)
      union all
      select n.account, f.place + 1 from found f cross join lateral (
        select account from tallyhook.import_movements
        where import_id = ${id} and account > f.account order by 1 limit 1) n
      where f.place < ${limit})
    select account from found where account < 'wallet;'`;
  return rows.map(({ account }) => account);
}

/** By account in the order of their times; at one instant the increases are one row. */
export async function movementsOf(
  { sql }: Queryable,
  id: string,
  accounts: readonly string[],
): Promise<Map<string, Movement[]>> {
  const rows = await sql<(Required<Movement> & { account: string })[]>`
    select account, at, sum(amount) as amount, min(line) as line
    from tallyhook.import_movements
    where import_id = ${id} and account = any(${accounts as string[]}::text[])
    group by account, at, amount < 0 order by account, at, amount < 0`;
  const found = new Map<string, Movement[]>();
  for (const { account, ...movement } of rows) {
    const own = found.get(account);
    if (own) own.push(movement);
    else found.set(account, [movement]);
  }
  return found;
}

/** Adds the proofs of the accounts up to this one, unless another daemon has. */
export async function saveProofs(
  db: Queryable,
  { id, provedAccount, turn }: Import,
  { account, ...proofs }: Proofs & { account: string },
): Promise<void> {
  await db.sql`
    update tallyhook.imports set proved_account = ${account},
      summary = coalesce(summary, '{}') || ${asJson(proofs)}::jsonb
    where id = ${id} and state = 'checking' and proved_account = ${provedAccount}
      and turn is not distinct from ${turn}::int`;
}

const ACCOUNTS_MAX = 100;

/** What the new rows add up to. */
export async function summarize(
  { sql }: Queryable,
  id: string,
): Promise<Pick<Summary, 'period' | 'kinds' | 'accounts'>> {
  const kinds = await sql<{ kind: string; n: number; first: Instant; last: Instant }[]>`
    select kind, count(*)::int as n, min(occurred_at) as first, max(occurred_at) as last
    from tallyhook.import_rows where import_id = ${id} and result = 'new' and kind is not null
    group by kind order by min(n)`;
  const accounts = await sql<{ account: string; movements: number; in: bigint; out: bigint }[]>`
    select account, count(*)::int as movements,
      coalesce(sum(amount) filter (where amount > 0), 0) as in,
      coalesce(-sum(amount) filter (where amount < 0), 0) as out
    from tallyhook.import_movements where import_id = ${id}
    group by account order by sum(abs(amount)) desc, account limit ${ACCOUNTS_MAX}`;
  const first = Math.min(...kinds.map((one) => one.first));
  const last = Math.max(...kinds.map((one) => one.last));
  return {
    period: kinds.length === 0 ? null : { from: isoText(first), to: isoText(last) },
    kinds: Object.fromEntries(kinds.map(({ kind, n }) => [kind, n])),
    accounts: accounts.map((one) => ({ ...one, in: `${one.in}`, out: `${one.out}` })),
  };
}

/** Ends a check: only one that takes its turn is recorded then. */
export async function endCheck(
  db: Queryable,
  { id, turn }: Pick<Import, 'id' | 'turn'>,
  to: { state: 'ready' | 'refused' | 'recording'; summary: Summary; reason: string | null },
): Promise<void> {
  await db.sql`
    update tallyhook.imports set state = ${to.state}, summary = ${asJson(to.summary)}::jsonb,
      reason = ${to.reason}, place = 0, turn = ${to.state === 'recording' ? turn : null}::int
    where id = ${id} and state = 'checking' and turn is not distinct from ${turn}::int`;
}

/** Ends imports that are not continued. */
export async function endIdle(db: Queryable, before: Instant, now: Instant): Promise<void> {
  await db.sql`
    update tallyhook.imports set state = 'cancelled', finished_at = ${isoText(now)}
    where state in ('ready', 'refused') and checked_at < ${isoText(before)}`;
}

/** Removes some rows of imports that were done or cancelled before; returns how many. */
export async function removeRows(
  { sql }: Queryable,
  before: Record<'done' | 'cancelled', Instant>,
): Promise<number> {
  const limit = REMOVED_MAX;
  const hasEnded = sql`(i.state = 'done' and i.finished_at < ${isoText(before.done)}
    or i.state = 'cancelled' and i.finished_at < ${isoText(before.cancelled)})`;
  const rows = await sql`
    delete from tallyhook.import_rows r using (
      select o.import_id, o.n from tallyhook.imports i cross join lateral (
        select x.import_id, x.n from tallyhook.import_rows x where x.import_id = i.id
        limit ${limit}) o
      where ${hasEnded} limit ${limit}) old
    where r.import_id = old.import_id and r.n = old.n`;
  const movements = await sql`
    delete from tallyhook.import_movements m using (
      select o.place from tallyhook.imports i cross join lateral (
        select x.ctid as place from tallyhook.import_movements x where x.import_id = i.id
        limit ${limit}) o
      where ${hasEnded} limit ${limit}) old
    where m.ctid = old.place`;
  return rows.count + movements.count;
}

/** Uploads that ended without their file, such as with their daemon. */
export async function listAbandoned({ sql }: Queryable, before: Instant): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from tallyhook.imports
    where state = 'staging' and created_at < ${isoText(before)} order by id limit 10`;
  return rows.map(({ id }) => id);
}
