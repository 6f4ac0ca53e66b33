/** Postings that are inserted without the ledger, so that only Postgres can refuse them. */
import { asJson, type Db, type Tx } from '../../src/db/connect.ts';
import { DatabaseError } from '../../src/db/sqlstate.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { START } from './builders.ts';

/** The rows of one posting. */
export interface Raw {
  batch: { id: number; at: number };
  transaction: Record<string, unknown>;
  entries: { line: number; account: string; amount: string; after: string; version: number }[];
  accounts: { name: string; amount: string; count: number }[];
}

/** The nth valid posting: 5 from one account to the other. */
export function nthPosting(n: number): Raw {
  return {
    batch: { id: n, at: START + n },
    transaction: { id: n, kind: 'give', operation: `op_${n}`, posting: 1, count: 2, batch: n },
    entries: [
      { line: 1, account: 'fees', amount: '-5', after: `${-5 * n}`, version: n },
      { line: 2, account: 'collection', amount: '5', after: `${5 * n}`, version: n },
    ],
    accounts: [
      { name: 'fees', amount: '-5', count: 1 },
      { name: 'collection', amount: '5', count: 1 },
    ],
  };
}

/** One statement, as the writer makes it. */
export async function post({ sql }: Db | Tx, { batch, transaction, entries, accounts }: Raw) {
  const at = isoText(batch.at);
  await sql`
    with b as (
      insert into tallyhook.batches (id, recorded_at, transactions, entries)
      select ${batch.id}, ${at}::timestamptz, 1, 2 where ${batch.id} > 0
    ), t as (
      insert into tallyhook.transactions (id, batch_id, kind, operation_id, posting, reverses,
        effective_at, effective_basis, recorded_at, entry_count)
      select id, batch, kind, operation, posting, reverses, ${at}::timestamptz, 'answer',
        coalesce(recorded, ${at}::timestamptz), count
      from jsonb_to_recordset(${asJson([transaction])}::jsonb) as x(id bigint, batch bigint,
        kind text, operation text, posting int, reverses bigint, count smallint,
        recorded timestamptz)
      where kind is not null
    ), a as (
      insert into tallyhook.accounts as a (name, kind, balance, version, opened_at)
      select name, name, amount, count, ${at}::timestamptz
      from jsonb_to_recordset(${asJson(accounts)}::jsonb) as x(name text, amount numeric,
        count bigint)
      on conflict (lower(name), asset) do update
        set balance = a.balance + excluded.balance, version = a.version + excluded.version
      returning id, name
    ), known as (
      select id, name from a union select id, name from tallyhook.accounts union select 0, 'none'
    )
    insert into tallyhook.entries (transaction_id, line, account_id, amount, balance_after, version,
      effective_at, recorded_at)
    select ${Number(transaction.id)}, e.line, k.id, e.amount, e.after, e.version,
      ${at}::timestamptz,
      ${String(transaction.recorded ?? at)}::timestamptz
    from jsonb_to_recordset(${asJson(entries)}::jsonb) as e(line smallint, account text,
      amount numeric, after numeric, version bigint)
    join known k on k.name = e.account`;
}

/** The SQLSTATE with which it was refused; undefined when it was committed. */
export async function refusalOf(db: Db, act: (tx: Tx) => Promise<unknown>) {
  try {
    await db.begin(act);
    return undefined;
  } catch (error) {
    if (error instanceof DatabaseError) return error.code;
    throw error;
  }
}
