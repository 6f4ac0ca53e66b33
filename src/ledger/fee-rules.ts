/**
 * Applies the fee rules that are set to what is recorded. Writes under another rule are found by
 * the mode that is stored with each, so that a pass that was interrupted goes on, and what a daemon
 * with older settings records is found as well. The effects and the postings of a write change in
 * one commit, so no observation is compared with a part of it.
 */
import { asJson, type Db, type Queryable, type Sql, type Tx } from '../db/connect.ts';
import { columnsOf } from '../db/rows.ts';
import { type Clock, type Instant, isoText } from '../kernel/clock.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import {
  changeFees,
  type EffectSettings,
  effectsUnder,
  FEE_EXCEEDS,
  type FeeRules,
  feeInstantOf,
  feeModeAt,
  feeRulesText,
  listLines,
  lockWithFees,
  wrongSpans,
} from '../operations/operations.ts';
import { timesPosted } from './batch.ts';
import { findPosted, listDueReasons, repost, type Wrong } from './repost.ts';
import { feeRules } from './tables.ts';

/** Announces inside the transaction that the rules are applied everywhere. */
export type AnnounceFeeRules = (tx: Tx, applied: SetFeeRules, now: Instant) => Promise<void>;

interface Deps {
  db: Db;
  clock: Clock;
  log: Log;
  /** Their fee rules apply while none are stored. */
  effectSettings: EffectSettings;
  announceFeeRules?: AnnounceFeeRules;
  /** Keeps every other daemon from posting until the end of the transaction. */
  lockLease(tx: Tx, fence: bigint): Promise<void>;
}

/** Writes of one batch; their rows are locked for so long. */
const BATCH_MAX = 200;

export function makeFeeRules({ db, clock, log, effectSettings, ...deps }: Deps) {
  const { announceFeeRules, lockLease } = deps;
  // The newest rules when they were last read: others are found by their id.
  let known: SetFeeRules | undefined;

  async function batch(tx: Tx, fence: bigint) {
    await lockLease(tx, fence);
    const set = await findFeeRules(tx);
    tx.afterCommit(() => {
      known = set;
    });
    const rules = set?.rules ?? effectSettings;
    const ids = await listUnderWrongRule(tx, rules, BATCH_MAX);
    if (ids.length > 0) {
      const settings = { ...effectSettings, ...rules };
      const changed = await change(tx, { clock, log, settings }, ids);
      if (set) await countFeeChanges(tx, set.id, changed);
      return { ...changed, more: changed.changed > 0 };
    }
    const now = clock.now();
    if (set && (await markFeeRulesApplied(tx, set.id, now)) && set.changed > 0n)
      await announceFeeRules?.(tx, set, now);
    return { changed: 0, reposted: 0, more: false };
  }

  return {
    /** Whether a write is under the wrong rule, or new rules wait for their announcement. */
    isDue: (sql: Sql) => sql`(
      coalesce((select f.applied_at is null or f.id <> ${String(known?.id ?? 0)}::bigint
        from tallyhook.fee_rules f order by f.id desc limit 1), false)
      or exists (${underWrongRule(sql, known?.rules ?? effectSettings, 1)}))`,
    /** Changes one batch of writes. */
    async runOnce(fence: bigint): Promise<{ reposted: number; more: boolean }> {
      const { changed, reposted, more } = await db.begin((tx) => batch(tx, fence));
      if (changed > 0) log.info({ changed, reposted }, 'writes changed by another fee rule');
      return { reposted, more };
    },
  };
}

/** Changes the effects of these writes to the right rule, and what they posted. */
async function change(
  tx: Tx,
  { clock, log, settings }: Pick<Deps, 'clock' | 'log'> & { settings: EffectSettings },
  ids: readonly string[],
) {
  const writes = await lockWithFees(tx, ids);
  const [lines, due, times] = [
    await listLines(tx, ids),
    await listDueReasons(tx, ids),
    await timesPosted(tx, ids),
  ];
  const found = writes.flatMap((write) => {
    const to = feeModeAt(settings, feeInstantOf(write));
    const dueReason = due.get(write.id);
    const isDue = due.has(write.id) && dueReason !== FEE_EXCEEDS;
    if (to === write.feeMode || isDue) return [];
    const stored = lines.get(write.id) ?? [];
    const under = effectsUnder(write, stored, { from: write.feeMode, to, settings });
    if (!under) log.error({ operation: write.id }, 'its effects are not those of its fields');
    return under ? [{ write, to, under, dueReason: dueReason ?? undefined }] : [];
  });
  await changeFees(
    tx,
    found.map(({ write: { id }, to, under }) => {
      return { id, feeMode: to, amounts: under.map(({ amount }) => amount) };
    }),
  );
  const originals = await findPosted(tx, times);
  const wrong = found.map(
    ({ write, under, dueReason }): Wrong => ({
      write,
      dueReason,
      timesPosted: times.get(write.id) ?? 0,
      effects: under.filter(({ amount }) => amount !== 0n),
      original: originals.find(({ operationId }) => operationId === write.id),
    }),
  );
  const reposted = await repost(tx, wrong, clock);
  return { changed: found.length, reposted };
}

/** Fee rules that the setting has or had. */
type SetFeeRules = Omit<Stored, 'rules'> & { rules: FeeRules };
type Stored = typeof feeRules.$inferSelect;

/** The newest rules, which all daemons apply to what is recorded; undefined before the first. */
export async function findFeeRules(db: Queryable): Promise<SetFeeRules | undefined> {
  const rows = await db.sql<Stored[]>`
    select ${columnsOf(db.sql, feeRules)} from tallyhook.fee_rules
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
async function countFeeChanges(
  tx: Tx,
  id: bigint,
  { changed, reposted }: { changed: number; reposted: number },
): Promise<void> {
  await tx.sql`
    update tallyhook.fee_rules set changed = changed + ${changed}, reposted = reposted + ${reposted}
    where id = ${id.toString()}::bigint`;
}

/** Returns the rules if they were not marked as applied before. */
async function markFeeRulesApplied(tx: Tx, id: bigint, now: Instant): Promise<boolean> {
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
  const rows = await db.sql<{ id: string }[]>`${underWrongRule(db.sql, rules, limit)}`;
  return rows.map(({ id }) => id);
}

function underWrongRule(sql: Sql, rules: FeeRules, limit: number) {
  const spans = wrongSpans(rules).map(({ mode, from, to }) => ({
    mode,
    from: from === null ? '-infinity' : isoText(from),
    to: to === null ? 'infinity' : isoText(to),
  }));
  return sql`
    select o.id from jsonb_to_recordset(${asJson(spans)}::jsonb)
      as x(mode text, "from" timestamptz, "to" timestamptz)
    cross join lateral (
      select o.id from tallyhook.operations o
      where o.fee_mode is not null and o.fee_mode = x.mode
        and o.fee_at >= x."from" and o.fee_at < x."to"
        and not exists (select from tallyhook.due_postings d where d.operation_id = o.id
          and d.quarantine_reason is distinct from ${FEE_EXCEEDS} offset 0)
      order by o.fee_at limit ${limit}) o
    limit ${limit}`;
}
