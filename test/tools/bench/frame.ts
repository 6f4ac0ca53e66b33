/**
 * The types and arithmetic of all benches. A bench never asserts a time: a missed target is a line
 * of the table, not a failure.
 *
 * To add one, write a file that exports a `Bench` and name it in the list of `bench.ts`. Measure
 * the subject and the reference with `sideBySide`, so that a busy machine slows both; start servers
 * with `process.ts` and load them with `load.ts`.
 */

/** What one round of one contender gave. Latencies are milliseconds. */
export interface Sample {
  value: number;
  p50?: number;
  p99?: number;
}

/** Median of the rounds, with the least and the greatest. */
export interface Figures {
  median: number;
  min: number;
  max: number;
  p50?: number;
  p99?: number;
}

/** A bound on the measured median, or on the ratio to the reference. */
export interface Target {
  of: 'measured' | 'ratio';
  atLeast?: number;
  atMost?: number;
}

/** One line of the table. */
export interface Result {
  what: string;
  /** Of the measured and reference values, such as `/s` or `ms`. */
  unit: string;
  measured: Figures;
  reference?: Figures;
  /** Median over the rounds of measured ÷ reference. */
  ratio?: number;
  target?: Target;
  /** The reason for the figure. */
  note?: string;
}

export interface Frame {
  /** How many times each contender is measured. */
  rounds: number;
  /** How long one round of one contender takes. */
  seconds: number;
  /** How many operations are stored before, for benches of stored history. */
  stored: readonly number[];
  /** A login that may create databases; its server is compared with the embedded one. */
  databaseUrl?: string;
  /** The file pgledger.sql, with which `postings` compares. */
  pgledger?: string;
}

export interface Bench {
  /** For `--only`. */
  name: string;
  /** What is measured, against what; one line. */
  what: string;
  /** The target as text. */
  target: string;
  /** Takes many minutes and gigabytes, so it runs only when it is named. */
  long?: true;
  run(frame: Frame): Promise<Result[]>;
}

type Contender = () => Promise<Sample>;

/** Measures both in turns, round by round, after one round that does not count. */
export async function sideBySide(
  frame: Pick<Frame, 'rounds'>,
  measured: Contender,
  reference: Contender,
): Promise<Pick<Result, 'measured' | 'reference' | 'ratio'>> {
  const [ours, theirs]: [Sample[], Sample[]] = [[], []];
  for (let round = 0; round <= frame.rounds; round += 1) {
    const pair = [await measured(), await reference()] as const;
    if (round === 0) continue;
    ours.push(pair[0]);
    theirs.push(pair[1]);
  }
  const ratios = ours.map(({ value }, round) => value / (theirs[round]?.value ?? Number.NaN));
  return { measured: figuresOf(ours), reference: figuresOf(theirs), ratio: medianOf(ratios) };
}

export function figuresOf(samples: readonly Sample[]): Figures {
  const values = samples.map(({ value }) => value);
  const median = (pick: (sample: Sample) => number | undefined) => {
    const there = samples.map(pick).filter((value) => value !== undefined);
    return there.length > 0 ? medianOf(there) : undefined;
  };
  const p50 = median((sample) => sample.p50);
  const p99 = median((sample) => sample.p99);
  return {
    median: medianOf(values),
    min: Math.min(...values),
    max: Math.max(...values),
    ...(p50 === undefined ? {} : { p50 }),
    ...(p99 === undefined ? {} : { p99 }),
  };
}

/** Whether the aim was reached; undefined where there is none. */
export function isHeld({ target, measured, ratio }: Result): boolean | undefined {
  if (!target) return undefined;
  const value = target.of === 'ratio' ? (ratio ?? Number.NaN) : measured.median;
  return value >= (target.atLeast ?? value) && value <= (target.atMost ?? value);
}

/** The value below which the share of the sorted numbers lies. */
export function quantileOf(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >>> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}
