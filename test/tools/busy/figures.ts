/** What a run shows: settled writes, found changes, false drifts, lost answers, latency. */
import { loadavg } from 'node:os';
import { addressKey } from '../../../src/kernel/addresses.ts';
import { quantileOf } from '../bench/frame.ts';
import { type DriftOpened, type DriftStep, matchDrifts, openedIn, shownBy } from './drifts.ts';
import type { Change, Run, Write } from './load.ts';
import type { Plan, World } from './world.ts';

/** Least good values; undefined without any. */
export interface Spread {
  p50: number;
  p95: number;
  max: number;
}

export interface Figures {
  scenario: string;
  title: string;
  delayMs: readonly [number, number];
  /** Per second: what was asked for, and what was polled. */
  perS: number;
  pollsPerS: number;
  requested: number;
  /** Due while too many were under way. */
  skipped: number;
  accepted: number;
  /** How many writes got another answer than 200, by status; 0: none. */
  refused: Record<string, number>;
  settled: number;
  /** Seconds from when the service shows a write in reads until `operation.settled`. */
  settledAfterS: Spread | undefined;
  /** Accepted writes settled later than the limit, or never. */
  settledLate: number;
  /** Seconds until each outside change was found; null: never. */
  changesFoundAfterS: (number | null)[];
  /** The same for the bounds of open drifts, of whose revision no event tells. */
  changesShownAfterS: (number | null)[];
  /** Drifts that another amount than theirs explains: changes in their window were not found. */
  wrongAmounts: string[];
  falseDrifts: string[];
  /** Milliseconds of a write in the first and the last minute of the load. */
  latencyFirstMs: Spread | undefined;
  latencyLastMs: Spread | undefined;
  /** Writes sent beside open ones from which a balance could not tell them. */
  ambiguous: number;
  /** Of writes that became unknown. */
  unknown: number;
  resolved: number;
  /** Seconds from the loss of the answer until it was resolved. */
  resolvedAfterS: Spread | undefined;
  undecided: number;
  stillOpen: number;
  /** What we say against what the service did, in words. */
  wrong: string[];
  log: string;
  /** The machine's load average of the last minute: far above its cores, everything is slower. */
  machineLoad: number;
}

export async function figuresOf(world: World, run: Run): Promise<Figures> {
  const { plan, scenario } = world;
  const drifts = openedIn(run.feed.arrived);
  const steps = await driftSteps(world, drifts);
  const { foundAt, wrongAmount, falseDrifts } = matchDrifts(drifts, run.changes);
  const accepted = run.writes.filter(({ status }) => status === 200);
  const minute = Math.min(60_000, run.tookMs / 2);
  return {
    scenario: scenario.name,
    title: scenario.title,
    perS: plan.perS ?? scenario.perS,
    delayMs: plan.delayMs ?? scenario.delayMs,
    pollsPerS: run.polls / (run.tookMs / 1_000),
    requested: run.writes.length,
    skipped: run.skipped,
    accepted: accepted.length,
    refused: countsOf(run.writes.filter(({ status }) => status !== 200)),
    ...settlingOf(world, run, accepted),
    changesFoundAfterS: secondsAfter(run.changes, foundAt),
    changesShownAfterS: secondsAfter(run.changes, shownBy(steps, run.changes)),
    wrongAmounts: wrongAmount.map(textOf),
    falseDrifts: falseDrifts.map(textOf),
    latencyFirstMs: latencyOf(run.writes.filter(({ dueMs }) => dueMs < minute)),
    latencyLastMs: latencyOf(run.writes.filter(({ dueMs }) => dueMs >= run.tookMs - minute)),
    ...(await outcomesOf(world, run)),
    log: world.log(),
    machineLoad: loadavg()[0] ?? 0,
  };
}

function secondsAfter(changes: readonly Change[], instants: readonly (number | undefined)[]) {
  return changes.map(({ at }, n) => {
    const then = instants[n];
    return then === undefined ? null : (then - at) / 1_000;
  });
}

/** Events tell how a drift opened, its history how it went on. */
async function driftSteps({ db }: World, opened: readonly DriftOpened[]): Promise<DriftStep[]> {
  const rows = await db.sql<
    (Omit<DriftOpened, 'least' | 'most'> & { least: bigint | null; most: bigint | null })[]
  >`
    select d.id as drift_id, d.addr, a.at, (a.detail->>'amount_min')::numeric as least,
      (a.detail->>'amount_max')::numeric as most
    from tallyhook.drift_actions a join tallyhook.drifts d on d.id = a.drift_id
    where a.action <> 'opened' order by a.id`;
  const later = rows.map(({ least, most, ...step }) => ({
    ...step,
    least: least ?? undefined,
    most: most ?? undefined,
  }));
  return [...opened, ...later]
    .toSorted((a, b) => a.at - b.at)
    .map(({ least, most, ...step }) => ({
      ...step,
      bounds: least === undefined || most === undefined ? undefined : { least, most },
    }));
}

function settlingOf({ plan }: World, { feed, applied }: Run, accepted: readonly Write[]) {
  const settledAt = new Map<string, number>();
  for (const { type, at, data } of feed.arrived)
    if (type === 'operation.settled') settledAt.set(data.reason_type, at);
  const shown = accepted.map(({ name }) => (applied.get(name)?.[0] ?? 0) + plan.readLagMs);
  const after = accepted.flatMap(({ name }, n) => {
    const at = settledAt.get(name);
    return at === undefined ? [] : [(at - (shown[n] ?? 0)) / 1_000];
  });
  const inTime = after.filter((seconds) => seconds <= plan.withinS).length;
  return {
    settled: after.length,
    settledAfterS: spreadOf(after),
    settledLate: accepted.length - inTime,
  };
}

/** Unknown writes and how they ended; and every write whose end contradicts the service. */
async function outcomesOf({ db }: World, { applied }: Run) {
  const rows = await db.sql<Ending[]>`
    select o.reason_type as name, o.state, o.ambiguous,
      exists(select from tallyhook.transitions t
        where t.operation_id = o.id and t.to_state = 'unknown') as lost,
      exists(select from tallyhook.transitions t
        where t.operation_id = o.id and t.to_state = 'undecided') as "left",
      (select extract(epoch from min(t.at) filter (where t.from_state = 'unknown')
          - min(t.at) filter (where t.to_state = 'unknown'))::float8
        from tallyhook.transitions t where t.operation_id = o.id) as "endedAfterS"
    from tallyhook.operations o`;
  const unknown = rows.filter(({ lost }) => lost);
  const open = unknown.filter(({ state }) => state === 'unknown' || state === 'sending');
  const undecided = unknown.filter(({ left }) => left);
  return {
    ambiguous: rows.filter(({ ambiguous }) => ambiguous).length,
    unknown: unknown.length,
    resolved: unknown.length - open.length - undecided.length,
    resolvedAfterS: spreadOf(
      unknown.flatMap(({ left, endedAfterS }) => (left ? [] : (endedAfterS ?? []))),
    ),
    undecided: undecided.length,
    stillOpen: open.length,
    wrong: rows.flatMap(({ name, state }) => {
      const times = applied.get(name)?.length ?? 0;
      return contradicts(state, times) ? [`${name} is ${state}, applied ${times} times`] : [];
    }),
  };
}

interface Ending {
  name: string;
  state: string;
  ambiguous: boolean;
  /** It became unknown, and it was given to people. */
  lost: boolean;
  left: boolean;
  endedAfterS: number | null;
}

function contradicts(state: string, times: number): boolean {
  if (times > 1) return true;
  if (['accepted', 'executed', 'settled'].includes(state)) return times === 0;
  return ['rejected', 'not_executed', 'failed'].includes(state) && times === 1;
}

function countsOf(writes: readonly Write[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of writes) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function latencyOf(writes: readonly Write[]): Spread | undefined {
  return spreadOf(writes.filter(({ status }) => status === 200).map(({ tookMs }) => tookMs));
}

function spreadOf(values: readonly number[]): Spread | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const at = (share: number) => quantileOf(sorted, share);
  return { p50: at(0.5), p95: at(0.95), max: sorted.at(-1) ?? Number.NaN };
}

function textOf({ addr, least, most }: DriftOpened): string {
  const amount = least === most ? `${least}` : `${least ?? '…'} to ${most ?? '…'}`;
  return `${addressKey(addr)}: ${amount}`;
}

/** What keeps the run from having passed, in words; only wrong outcomes where answers are lost. */
export function failuresOf(figures: Figures, { lost, withinS }: Plan): string[] {
  const { wrong, falseDrifts, wrongAmounts, settledLate, changesFoundAfterS: found } = figures;
  const late = found.filter((seconds) => seconds === null || seconds > withinS).length;
  const failures = [
    [wrong.length, 'outcomes contradict the service'],
    ...(lost > 0
      ? []
      : [
          [falseDrifts.length, 'drifts match no outside change'],
          [wrongAmounts.length, 'drifts have a wrong amount'],
          [late, `outside changes were not found within ${withinS} s`],
          [settledLate, `writes were not settled within ${withinS} s of being shown`],
        ]),
  ] as [number, string][];
  return failures.flatMap(([count, what]) => (count > 0 ? [`${count} ${what}`] : []));
}
