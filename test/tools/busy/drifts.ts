/** Which opened drifts are about which changes made past the daemon. Pure. */
import { addressKey } from '../../../src/kernel/addresses.ts';
import type { Arrived } from './feed.ts';
import type { Change } from './load.ts';

/** What is known of a drift from then on; undefined bounds: it is over. */
export interface DriftStep {
  driftId: string;
  addr: string;
  at: number;
  bounds: { least: bigint; most: bigint } | undefined;
}

/**
 * When the open drifts of each change's wallet first showed it, announced or not: their bounds hold
 * the sum of all changes so far, and not the sum without it.
 * @param steps in the order of time
 */
export function shownBy(steps: readonly DriftStep[], changes: readonly Change[]) {
  const known = new Map<string, DriftStep>();
  const shownAt: (number | undefined)[] = changes.map(() => undefined);
  for (const step of steps) {
    if (step.bounds) known.set(step.driftId, step);
    else known.delete(step.driftId);
    const open = [...known.values()].filter(({ addr }) => isSame(addr, step.addr));
    const total = (bound: 'least' | 'most') =>
      open.reduce((sum, { bounds }) => sum + (bounds?.[bound] ?? 0n), 0n);
    const holds = (sum: bigint) => total('least') <= sum && sum <= total('most');
    let sum = 0n;
    for (const [n, change] of changes.entries()) {
      if (!isSame(change.addr, step.addr) || change.at > step.at) continue;
      const before = sum;
      sum += change.amount;
      if (shownAt[n] === undefined && holds(sum) && !holds(before)) shownAt[n] = step.at;
    }
  }
  return shownAt;
}

function isSame(one: string, other: string): boolean {
  return addressKey(one) === addressKey(other);
}

/** The amount is exact when both bounds are equal; undefined: no bound. */
export interface DriftOpened {
  driftId: string;
  addr: string;
  least: bigint | undefined;
  most: bigint | undefined;
  /** When its event came. */
  at: number;
  /** Between what instants its change lies, as its event says; undefined: no bound. */
  windowFrom?: number | undefined;
  windowTo?: number | undefined;
  /** The drifts that it took the place of. */
  merged?: string[];
}

/** The drifts that these events opened. */
export function openedIn(events: readonly Pick<Arrived, 'type' | 'at' | 'data'>[]): DriftOpened[] {
  const into = events.flatMap(({ type, data: { how, drift_id: id, closed_by: by } }) =>
    type === 'wallet.drift_closed' && how === 'merged' ? [{ id, into: by.drift_id }] : [],
  );
  return events
    .filter(({ type }) => type === 'wallet.drift_opened')
    .map(driftOf)
    .map((drift) => ({
      ...drift,
      merged: into.filter((one) => one.into === drift.driftId).map(({ id }) => id),
    }));
}

export function driftOf({ at, data }: Pick<Arrived, 'at' | 'data'>): DriftOpened {
  const { drift_id: driftId, addr, amount, amount_min: least, amount_max: most } = data;
  const bound = (text: unknown) => (text == null ? undefined : BigInt(String(text)));
  const instant = (text: unknown) => (text == null ? undefined : Date.parse(String(text)));
  const [windowFrom, windowTo] = [instant(data.window_from), instant(data.window_to)];
  return {
    driftId,
    addr,
    at,
    least: bound(amount ?? least),
    most: bound(amount ?? most),
    windowFrom,
    windowTo,
  };
}

/**
 * A drift is about changes of its wallet before it that sum to its amount: one, or several when
 * these came in quick succession. The fewest are taken; each change belongs to one drift, or to the
 * one that took its place. Of the drifts without changes, those whose window holds one that no
 * drift found have a wrong amount, and the others are false.
 */
export function matchDrifts(drifts: readonly DriftOpened[], changes: readonly Change[]) {
  const foundAt: (number | undefined)[] = changes.map(() => undefined);
  const foundBy: string[] = [];
  const unmatched = drifts.filter((drift) => {
    const before = changes.flatMap((change, n) => {
      const free = foundAt[n] === undefined || drift.merged?.includes(foundBy[n] ?? '');
      return free && change.at <= drift.at && isSame(change.addr, drift.addr) ? [n] : [];
    });
    const [fewest] = subsetsOf(before)
      .filter((chosen) => contains(drift, chosen, changes))
      .sort((a, b) => a.length - b.length);
    for (const n of fewest ?? []) {
      foundAt[n] ??= drift.at;
      foundBy[n] = drift.driftId;
    }
    return fewest === undefined;
  });
  const isMissed = ({ addr, windowFrom, windowTo }: DriftOpened) =>
    changes.some(
      (change, n) =>
        foundAt[n] === undefined &&
        isSame(change.addr, addr) &&
        change.at >= (windowFrom ?? Number.NEGATIVE_INFINITY) &&
        change.at <= (windowTo ?? Number.NEGATIVE_INFINITY),
    );
  const { wrongAmount = [], wrong = [] } = Object.groupBy(unmatched, (drift) =>
    isMissed(drift) ? 'wrongAmount' : 'wrong',
  );
  return { foundAt, wrongAmount, falseDrifts: wrong };
}

function contains({ least, most }: DriftOpened, chosen: number[], changes: readonly Change[]) {
  const sum = chosen.reduce((total, n) => total + (changes[n]?.amount ?? 0n), 0n);
  return (least === undefined || least <= sum) && (most === undefined || sum <= most);
}

/** Every subset but the empty one. */
function subsetsOf(items: readonly number[]): number[][] {
  let subsets: number[][] = [[]];
  for (const item of items) subsets = [...subsets, ...subsets.map((one) => [...one, item])];
  return subsets.slice(1);
}
