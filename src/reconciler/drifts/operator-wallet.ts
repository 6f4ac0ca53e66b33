/**
 * Recognises the wallet that an operator pays from, while none is known of it: the wallet's drifts
 * equal gives of the operator that took effect in their windows. Pure.
 */
import { sumOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';

/** A drift of the wallet, open or closed. */
export interface DriftOfWallet {
  id: string;
  /** Null until it is exact. */
  amount: bigint | null;
  /** Null: the window has no begin. */
  windowFrom: Instant | null;
  windowTo: Instant;
}

/** An executed give of ours, by an operator without a wallet. It is paid without a fee. */
export interface OperatorGive {
  id: string;
  operatorNo: string;
  amount: bigint;
  /** It took effect, and began to show, between these. */
  from: Instant;
  to: Instant;
}

interface RecognisedOperator {
  operatorNo: string;
  /** The gives that each drift equals, by the id of the drift. */
  gives: ReadonlyMap<string, readonly string[]>;
}

/** One equal amount, or two, may be a coincidence. */
const DRIFTS_MIN = 3;
/** Gives of one window whose sums are compared with its drift. */
const RUN_MAX = 100;

/** The only operator whose gives the drifts of a wallet equal; undefined without one. */
export function operatorOf(
  drifts: readonly DriftOfWallet[],
  gives: readonly OperatorGive[],
): RecognisedOperator | undefined {
  const byOperator = Map.groupBy(gives, ({ operatorNo }) => operatorNo);
  const found = [...byOperator].flatMap(([operatorNo, own]) => {
    const matched = matchedBy(drifts, own);
    return matched ? [{ operatorNo, gives: matched }] : [];
  });
  return found.length === 1 ? found[0] : undefined;
}

/**
 * The gives that each drift equals, if they tell that the wallet pays them: at least three drifts
 * do, and between the first and the last of these no give left the balance as it was. A give in the
 * window of a drift that has another amount is not counted, unless most are such.
 */
function matchedBy(
  drifts: readonly DriftOfWallet[],
  gives: readonly OperatorGive[],
): Map<string, string[]> | undefined {
  const { matched, rest } = match(drifts, gives);
  const equal = drifts.filter(({ id }) => matched.has(id));
  if (equal.length < DRIFTS_MIN) return undefined;
  const since = Math.min(...equal.map(({ windowFrom }) => windowFrom ?? Number.POSITIVE_INFINITY));
  const until = Math.max(...equal.map(({ windowTo }) => windowTo));
  const between = rest.filter(({ from, to }) => from >= since && to <= until);
  const others = drifts.filter(({ id }) => !matched.has(id));
  if (between.some((give) => !others.some((drift) => isWithin(give, drift)))) return undefined;
  return between.length < gives.length - rest.length ? matched : undefined;
}

/** Each give belongs to one drift at most: first to one of just its amount, else with others. */
function match(drifts: readonly DriftOfWallet[], gives: readonly OperatorGive[]) {
  const ordered = drifts.toSorted((a, b) => a.windowTo - b.windowTo);
  const matched = new Map<string, string[]>();
  let rest = gives.toSorted((a, b) => a.to - b.to || a.from - b.from);
  const assign = (choose: (fitting: readonly OperatorGive[], paid: bigint) => OperatorGive[]) => {
    for (const drift of ordered) {
      if (matched.has(drift.id) || drift.windowFrom === null) continue;
      if (drift.amount === null || drift.amount >= 0n) continue;
      const fitting = rest.filter((give) => isWithin(give, drift));
      const chosen = choose(fitting, -drift.amount);
      if (chosen.length === 0) continue;
      matched.set(
        drift.id,
        chosen.map(({ id }) => id),
      );
      rest = rest.filter((give) => !chosen.includes(give));
    }
  };
  assign((fitting, paid) => fitting.filter(({ amount }) => amount === paid).slice(0, 1));
  assign(runOf);
  return { matched, rest };
}

/** The first gives in a row that sum to the amount. */
function runOf(fitting: readonly OperatorGive[], paid: bigint): OperatorGive[] {
  const few = fitting.slice(0, RUN_MAX);
  for (const first of few.keys())
    for (let end = first + 2; end <= few.length; end++) {
      const run = few.slice(first, end);
      const sum = sumOf(run.map(({ amount }) => amount));
      if (sum === paid) return run;
      if (sum > paid) break;
    }
  return [];
}

/** Whether a give may have taken effect in the window of a drift. */
function isWithin(
  { from, to }: Pick<OperatorGive, 'from' | 'to'>,
  { windowFrom, windowTo }: Pick<DriftOfWallet, 'windowFrom' | 'windowTo'>,
): boolean {
  return from <= windowTo && (windowFrom === null || to >= windowFrom);
}
