/** Which alerts begin and which end. Pure. */
import type { Json } from '../../kernel/json.ts';
import type { alerts } from '../tables.ts';

/** Something that should not be, and that its rule finds again as long as it lasts. */
export interface Condition {
  /** The name of a rule of the configuration, or one of ours, which has a dot. */
  rule: string;
  /** What it is about, such as the id of an operation. */
  subject: string;
  /** The members of its events. */
  detail: { [member: string]: Json };
}

export type Alert = Condition & Pick<typeof alerts.$inferSelect, 'id' | 'raisedAt'>;

/**
 * Compares what is raised with what holds now.
 * @param lapsed what holds no more, as it is now
 * @param wasChecked false of a rule that could not be checked: its alerts stay as they are
 */
export function changesOf(
  raised: readonly Alert[],
  holding: readonly Condition[],
  wasChecked: (rule: string) => boolean,
  lapsed: readonly Condition[] = [],
): { begun: Condition[]; ended: Alert[]; updated: Alert[] } {
  const keyOf = ({ rule, subject }: Condition) => `${rule} ${subject}`;
  const before = new Map(raised.map((alert) => [keyOf(alert), alert]));
  const last = new Map(lapsed.map((condition) => [keyOf(condition), condition.detail]));
  const now = new Map(holding.map((condition) => [keyOf(condition), condition]));
  return {
    begun: [...now.values()].filter((condition) => !before.has(keyOf(condition))),
    ended: raised
      .filter((alert) => wasChecked(alert.rule) && !now.has(keyOf(alert)))
      .map((alert) => ({ ...alert, detail: last.get(keyOf(alert)) ?? alert.detail })),
    updated: raised.flatMap((alert) => {
      const detail = now.get(keyOf(alert))?.detail;
      const same = !detail || JSON.stringify(detail) === JSON.stringify(alert.detail);
      return same ? [] : [{ ...alert, detail }];
    }),
  };
}

/** How long the settled operations of a kind took. */
export interface SettleTimes {
  count: number;
  p99Ms: number;
}

export interface StuckSettings {
  /** An operation is stuck after this multiple of the time in which 99 % of its kind settle. */
  stuckFactor: number;
  /** But not earlier. */
  stuckMinMs: number;
}

/** So many operations of a kind must have settled before their times are used. */
const LEARNED_MIN = 20;
/** Until then an operation is stuck after so many times the minimum. */
const UNLEARNED_FACTOR = 10;

/** After how long an operation that has not settled is stuck. */
export function stuckAfterMs(
  times: SettleTimes | undefined,
  { stuckFactor, stuckMinMs }: StuckSettings,
): number {
  if (!times || times.count < LEARNED_MIN) return stuckMinMs * UNLEARNED_FACTOR;
  return Math.round(Math.max(stuckMinMs, times.p99Ms * stuckFactor));
}
