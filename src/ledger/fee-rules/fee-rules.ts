/**
 * Applies the fee rules that are set to what is recorded. Writes under another rule are found by
 * the mode that is stored with each, so that a pass that was interrupted goes on, and what a daemon
 * with older settings records is found as well. The effects and the postings of a write change in
 * one commit, so no observation is compared with a part of it.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import {
  changeFees,
  type EffectSettings,
  effectsUnder,
  FEE_EXCEEDS,
  feeInstantOf,
  feeModeAt,
  listLines,
  lockWithFees,
} from '../../operations/operations.ts';
import { isPosted } from '../opening-rule.ts';
import { readOpenings } from '../opening-store.ts';
import { effectiveTimeOf } from '../posting.ts';
import {
  addDuePostings,
  listOriginals,
  readHead,
  timesPosted,
  writePlan,
} from '../posting-store.ts';
import { planRepost, type Wrong } from './repost.ts';
import {
  countFeeChanges,
  findFeeRules,
  listDueReasons,
  listUnderWrongRule,
  markFeeRulesApplied,
  type SetFeeRules,
} from './store.ts';

export { findFeeRules, type SetFeeRules, setFeeRules } from './store.ts';

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

  async function batch(tx: Tx, fence: bigint) {
    await lockLease(tx, fence);
    const set = await findFeeRules(tx);
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
    async isDue(): Promise<boolean> {
      const set = await findFeeRules(db);
      if (set && set.appliedAt === null) return true;
      return (await listUnderWrongRule(db, set?.rules ?? effectSettings, 1)).length > 0;
    },
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
  const posted = [...times]
    .filter(([, n]) => isPosted(n))
    .map(([id, posting]) => ({ id, posting }));
  const originals = await listOriginals(tx, posted);
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

async function repost(tx: Tx, wrong: readonly Wrong[], clock: Clock): Promise<number> {
  const entries = wrong.flatMap(({ write, effects, original }) => {
    const { effectiveAt } = original ?? effectiveTimeOf(write);
    return write.inLedger ? effects.map(({ account }) => ({ account, effectiveAt })) : [];
  });
  const reversed = wrong.flatMap(({ original }) => original?.effects ?? []);
  const accounts = [...entries, ...reversed].map(({ account }) => account);
  const { plan, reposted, unpostableIds } = planRepost(
    wrong,
    await readOpenings(tx, accounts, entries),
  );
  if (reposted === 0) return 0;
  const dueAt = await writePlan(tx, plan, await readHead(tx), clock.now());
  await addDuePostings(
    tx,
    unpostableIds.map((operationId) => ({ operationId, dueAt, quarantineReason: FEE_EXCEEDS })),
  );
  return reposted;
}
