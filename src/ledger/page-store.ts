/**
 * SQL that reads the books page by page, for people: token movements, trial balance, what waits.
 */
import type { Queryable } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { TrialLine } from './balance-store.ts';

/** What happened to a token, as the books hold it. */
export interface Movement {
  id: bigint;
  kind: string;
  fromAddr: string | null;
  toAddr: string | null;
  txHash: string | null;
  operationId: string | null;
  effectiveAt: Instant;
  recordedAt: Instant;
}

/** Movements of one token, the newest first, before that number. */
export async function listMovements(
  db: Queryable,
  token: { contractId: bigint; tokenId: bigint },
  page: { before?: bigint | undefined; limit: number },
): Promise<Movement[]> {
  const { sql } = db;
  const { before } = page;
  return sql<Movement[]>`
    select id, kind, from_addr, to_addr, tx_hash,
      operation_id, effective_at, recorded_at
    from tallyhook.nft_movements
    where contract_id = ${token.contractId.toString()}::numeric
      and token_id = ${token.tokenId.toString()}::numeric
      ${before === undefined ? sql`` : sql`and id < ${before.toString()}::bigint`}
    order by id desc limit ${page.limit}`;
}

/** A page of a trial balance, and the totals of all of it. */
export interface TrialPage {
  debit: bigint;
  credit: bigint;
  lines: TrialLine[];
}

/**
 * Every account that had entries, by name. Debits equal credits.
 * @param asOf only what took effect at or before this instant
 * @param knownAt only what was recorded at or before this instant
 */
export async function trialBalancePage(
  db: Queryable,
  { asOf, knownAt }: { asOf?: Instant | undefined; knownAt?: Instant | undefined },
  page: { after?: string | undefined; limit: number },
): Promise<TrialPage> {
  const { sql } = db;
  const at = (instant: Instant) => sql`${isoText(instant)}::timestamptz`;
  const rows = await sql<(Partial<TrialLine> & { debits: bigint; credits: bigint })[]>`
    with line as (
      select a.name as account, a.asset, greatest(s.total, 0) as debit,
        greatest(-s.total, 0) as credit
      from (
        select account_id, sum(amount) as total from tallyhook.entries where true
          ${asOf === undefined ? sql`` : sql`and effective_at <= ${at(asOf)}`}
          ${knownAt === undefined ? sql`` : sql`and recorded_at <= ${at(knownAt)}`}
        group by account_id) s
      join tallyhook.accounts a on a.id = s.account_id
    ), page as (
      select account, asset, debit, credit from line
      where ${page.after ?? null}::text is null or account collate "C" > ${page.after ?? null}
      order by account collate "C" limit ${page.limit}
    )
    select t.debits, t.credits, p.account, p.asset, p.debit, p.credit
    from (select coalesce(sum(debit), 0) as debits, coalesce(sum(credit), 0) as credits from line) t
    left join page p on true
    order by p.account collate "C"`;
  return {
    debit: rows[0]?.debits ?? 0n,
    credit: rows[0]?.credits ?? 0n,
    lines: rows.flatMap(({ account, asset, debit, credit }) =>
      account != null && asset != null && debit != null && credit != null
        ? [{ account, asset, debit, credit }]
        : [],
    ),
  };
}

/** What waits to be posted, counted up to `max` of each kind, and since when. */
export async function countUnposted(
  db: Queryable,
  max: number,
): Promise<{ waiting: number; since: Instant | null }> {
  const rows = await db.sql<{ waiting: number; since: Instant | null }[]>`
    select count(*)::int as waiting, min(at) as since from (
      (select due_at as at from tallyhook.due_postings where quarantine_reason is null
        order by due_at limit ${max})
      union all
      (select requested_at from tallyhook.posting_requests where posted_at is null
        and problem is null
        order by requested_at limit ${max})) x`;
  return rows[0] ?? { waiting: 0, since: null };
}
