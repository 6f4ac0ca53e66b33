/** SQL of the fee rules that are set, and of the writes whose effects another rule made. */
import { asJson, type Db, type Queryable, type Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import {
  FEE_EXCEEDS,
  type FeeRules,
  feeRulesText,
  wrongSpans,
} from '../../operations/operations.ts';

/** Fee rules that the setting has or had. */
export interface SetFeeRules {
  id: bigint;
  rules: FeeRules;
  setAt: Instant;
  /** Writes whose effects they changed, and those of them that were posted again. */
  changed: bigint;
  reposted: bigint;
  /** When no write was left under another rule. */
  appliedAt: Instant | null;
}

/** The newest rules, which all daemons apply to what is recorded; undefined before the first. */
export async function findFeeRules(db: Queryable): Promise<SetFeeRules | undefined> {
  const rows = await db.sql<(Omit<SetFeeRules, 'rules'> & { rules: string })[]>`
    select id, rules, set_at, changed, reposted, applied_at from tallyhook.fee_rules
    order by id desc limit 1`;
  const [row] = rows;
  return row && { ...row, rules: JSON.parse(row.rules) as FeeRules };
}

/** Stores the rules of the setting, unless they are the newest already. */
export function setFeeRules(db: Db, rules: FeeRules, now: Instant): Promise<void> {
  const text = feeRulesText(rules);
  return db.begin(async (tx) => {
    await tx.sql`lock table tallyhook.fee_rules in share row exclusive mode`;
    await tx.sql`
      insert into tallyhook.fee_rules (rules, set_at, changed, reposted)
      select ${text}, ${isoText(now)}, 0, 0
      where ${text} is distinct from (
        select rules from tallyhook.fee_rules order by id desc limit 1)`;
  });
}

/** Adds to the counts of the newest rules. */
export async function countFeeChanges(
  tx: Tx,
  id: bigint,
  { changed, reposted }: { changed: number; reposted: number },
): Promise<void> {
  await tx.sql`
    update tallyhook.fee_rules set changed = changed + ${changed}, reposted = reposted + ${reposted}
    where id = ${id.toString()}::bigint`;
}

/** Returns the rules if they were not marked as applied before. */
export async function markFeeRulesApplied(tx: Tx, id: bigint, now: Instant): Promise<boolean> {
  const rows = await tx.sql`
    update tallyhook.fee_rules set applied_at = ${isoText(now)}
    where id = ${id.toString()}::bigint and applied_at is null returning 1 as one`;
  return rows.length === 1;
}

/**
 * Writes under the wrong rule, the oldest of each span first. What is about to be posted is left
 * out until it is posted, because an opening may have counted its present effects.
 */
export async function listUnderWrongRule(
  db: Queryable,
  rules: FeeRules,
  limit: number,
): Promise<string[]> {
  const spans = wrongSpans(rules).map(({ mode, from, to }) => ({
    mode,
    from: from === null ? '-infinity' : isoText(from),
    to: to === null ? 'infinity' : isoText(to),
  }));
  const rows = await db.sql<{ id: string }[]>`
    select o.id from jsonb_to_recordset(${asJson(spans)}::jsonb)
      as x(mode text, "from" timestamptz, "to" timestamptz)
    cross join lateral (
      select o.id from tallyhook.operations o
      where o.fee_mode is not null and o.fee_mode = x.mode
        and coalesce(o.sent_at, o.effective_at, o.recorded_at) >= x."from"
        and coalesce(o.sent_at, o.effective_at, o.recorded_at) < x."to"
        and not exists (select from tallyhook.due_postings d where d.operation_id = o.id
          and d.quarantine_reason is distinct from ${FEE_EXCEEDS} offset 0)
      order by coalesce(o.sent_at, o.effective_at, o.recorded_at) limit ${limit}) o
    limit ${limit}`;
  return rows.map(({ id }) => id);
}

/** Why the postings of these operations wait, by operation id; null: they are about to be made. */
export async function listDueReasons(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, string | null>> {
  const rows = await db.sql<{ operationId: string; quarantineReason: string | null }[]>`
    select operation_id, quarantine_reason from tallyhook.due_postings
    where operation_id = any(${ids as string[]}::text[])`;
  return new Map(rows.map((row) => [row.operationId, row.quarantineReason]));
}
