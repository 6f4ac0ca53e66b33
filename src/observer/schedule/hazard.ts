/**
 * How long the service takes to show a write, learned from polls that only bound it: one did not
 * show it, a later one did. Pure. A histogram of waits gives the hazard, the chance per second that
 * a write that has not shown yet shows now. The next poll is due when the expected seconds of
 * undetected change reach its price, as for a steady target, whose chance per second is its change
 * rate. So polls are dense where writes usually show, and sparse before and after.
 */

/** How many waits ended in each bucket, recent ones counting more. */
export type Waits = readonly number[];

/** The first bucket ends after that, the last one after a day. */
const FIRST_S = 0.25;
const LAST_S = 86_400;
const BUCKETS = 32;
const RATIO = (LAST_S / FIRST_S) ** (1 / (BUCKETS - 1));
/** The ends of the buckets, in seconds. */
const ENDS = Array.from({ length: BUCKETS }, (_, i) => FIRST_S * RATIO ** i);
/** Beyond the last bucket. */
const TAIL_PER_S = 1 / LAST_S;

/** Waits weigh as much as so many of their class, or as one wait of any length. */
const CLASS_WEIGHT = 8;
/** So many waits are remembered. */
const WAITS_MAX = 1_000;

const ANY: Waits = ENDS.map(() => 1 / BUCKETS);
const NONE: Waits = ENDS.map(() => 0);

/** The waits as far as known: of the kind on the contract, then of the kind, then any. */
export function expectedWaits(own: Waits = NONE, ofClass: Waits = NONE): Waits {
  const general = ofClass.map((count, i) => count + (ANY[i] ?? 0));
  const scale = CLASS_WEIGHT / sumOf(general);
  return own.map((count, i) => count + (general[i] ?? 0) * scale);
}

/**
 * Adds a wait that was longer than `fromS` and not longer than `toS`, in seconds. It counts in the
 * buckets of that interval as much as each is expected to contain it: if it counted where the poll
 * was, polls would follow their own times.
 */
export function learnWait(
  before: Waits | undefined,
  { fromS, toS, expected }: { fromS: number; toS: number; expected: Waits },
): Waits {
  const weights = expected.map((count, i) => count * coveredBy(i, fromS, toS));
  const all = sumOf(weights);
  const kept = before ?? NONE;
  const fading = 1 - 1 / WAITS_MAX;
  if (!(all > 0)) return kept;
  return kept.map((count, i) => count * fading + (weights[i] ?? 0) / all);
}

/** The gaps between polls to choose from, each a tenth longer than the one before it. */
const GAPS_S = Array.from({ length: 190 }, (_, i) => 0.01 * 1.1 ** i);

/**
 * How long after its last poll a target that is pending should be polled again, in seconds: the
 * first gap that costs the price.
 * @param ageS how long the write had been waited for at that poll
 * @param price in seconds of undetected change of that write
 */
export function pendingGapS(waits: Waits, ageS: number, price: number): number {
  const hazards = hazardsOf(waits);
  let [from, bucket, hazard, cost] = [0, 0, 0, 0];
  for (const to of GAPS_S) {
    while ((ENDS[bucket] ?? Number.POSITIVE_INFINITY) <= ageS + (from + to) / 2) bucket += 1;
    const more = (hazards[bucket] ?? TAIL_PER_S) * (to - from);
    // The odds that the write has shown since the last poll, in the middle between the two gaps.
    cost += Math.expm1(hazard + more / 2) * (to - from);
    if (cost >= price) return to;
    hazard += more;
    from = to;
  }
  return from;
}

/** By bucket, what ended in it per second at risk. */
function hazardsOf(waits: Waits): number[] {
  let later = 0;
  const hazards: number[] = [];
  for (let i = BUCKETS - 1; i >= 0; i--) {
    const count = waits[i] ?? 0;
    const width = (ENDS[i] ?? 0) - (ENDS[i - 1] ?? 0);
    const atRisk = later + count / 2;
    hazards[i] = atRisk > 0 ? count / (atRisk * width) : TAIL_PER_S;
    later += count;
  }
  return hazards;
}

/** The part of a bucket between two ages; beyond the last bucket its age counts as in it. */
function coveredBy(bucket: number, fromS: number, toS: number): number {
  const [start, end] = [ENDS[bucket - 1] ?? 0, ENDS[bucket] ?? LAST_S];
  const from = Math.min(Math.max(0, fromS), LAST_S * 0.999);
  const to = Math.min(Math.max(toS, from + 1e-3), LAST_S);
  return Math.max(0, Math.min(end, to) - Math.max(start, from)) / (end - start);
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
