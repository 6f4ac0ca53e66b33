/** What a run of kills must show: nothing lost, nothing doubled without need, order kept. */
import type { Db } from '../../../../src/db/connect.ts';
import type { FeedEvent } from '../../../harness/app.ts';
import type { Arrival, Destination } from './destinations.ts';

interface Run {
  destinations: readonly Destination[];
  /** As the reader of the feed got them. */
  events: readonly FeedEvent[];
  /** After it an attempt whose process was killed may be made again. */
  leaseMs: number;
  crashesMs: readonly number[];
}

interface Delivered {
  events: number;
  /** Those that a destination did not get, or the feed did not give. */
  lost: string[];
  /** Those that the feed gave twice. */
  feedDoubled: string[];
  /** Attempts that came, by the name of the destination. */
  arrivals: Record<string, number>;
  /** Those of events that were accepted before. */
  repeated: number;
  /** Those made before the claim of the one before had ended, with its time in seconds. */
  early: string[];
  /** Attempts of an event whose body was not that of the one before. */
  changed: string[];
  /** Events of a subject that came after a later one where order was asked for. */
  disordered: string[];
}

export interface Kills {
  daemons: number;
  /** Processes that send webhooks. */
  senders: number;
  /** Times at which no process was running: all were being started. */
  none: number;
}

export interface Figures extends Delivered {
  kills: Kills;
  crashes: number;
  writes: { sent: number; answered: number; wrong: string[]; undecided: number };
  /** Applied by the service, and not recorded. */
  unrecorded: string[];
  /** Until nothing was open and all had come; undefined when something had not. */
  endedAfterS: number | undefined;
}

export interface RecordedEvent {
  id: string;
  type: string;
  subject: string;
  subjectSeq: bigint;
}

/** The types that each destination asks for. */
export const TYPES = ['operation.*', 'token.*', 'wallet.*'];
/** Timers and clocks of both sides are not the same. */
const EARLY_MS = 1_000;

export async function recordedEvents(db: Db): Promise<RecordedEvent[]> {
  return db.sql<RecordedEvent[]>`
    select 'evt_' || id as id, type, subject, subject_seq from tallyhook.events`;
}

/** Events that a destination did not get, or the feed did not give. */
export function missingOf(
  recorded: readonly RecordedEvent[],
  { destinations, events }: Pick<Run, 'destinations' | 'events'>,
): string[] {
  const inFeed = new Set(events.map(({ id }) => id));
  const wanted = recorded.filter(({ type }) => TYPES.includes(`${type.split('.')[0]}.*`));
  const notIn = (name: string, ids: ReadonlySet<string>, of: readonly RecordedEvent[]) =>
    of.filter(({ id }) => !ids.has(id)).map(({ id, type }) => `${name}: ${type} ${id}`);
  return [
    ...notIn('feed', inFeed, recorded),
    ...destinations.flatMap(({ name, arrivals }) =>
      notIn(name, new Set(arrivals().map(({ id }) => id)), wanted),
    ),
  ];
}

/**
 * @param due what must have come; later events, which reach no destination before the end of the
 * run, are only among `recorded`
 */
export function figuresOf(
  due: readonly RecordedEvent[],
  recorded: readonly RecordedEvent[],
  run: Run,
): Delivered {
  const { destinations, events, leaseMs, crashesMs } = run;
  const inFeed = Map.groupBy(events, ({ id }) => id);
  const pairs = destinations.flatMap((one) =>
    [...Map.groupBy(one.arrivals(), ({ id }) => id).values()].flatMap(pairsOf),
  );
  const again = pairs.filter(([before]) => before.isAccepted);
  // A crash of Postgres forgets the claims of its last moments: they are made again.
  const isCrash = ([before, next]: Pair) =>
    crashesMs.some((atMs) => atMs > before.atMs - leaseMs && atMs < next.atMs);
  const isEarly = ([before, next]: Pair) => next.atMs - before.atMs < leaseMs - EARLY_MS;
  const byId = new Map(recorded.map((event) => [event.id, event]));
  return {
    events: due.length,
    lost: missingOf(due, run),
    feedDoubled: [...inFeed].filter(([, all]) => all.length > 1).map(([id]) => id),
    arrivals: Object.fromEntries(
      destinations.map(({ name, arrivals }) => [name, arrivals().length]),
    ),
    repeated: again.length,
    early: again.filter((pair) => isEarly(pair) && !isCrash(pair)).map(textOf),
    changed: pairs.filter(([before, next]) => before.body !== next.body).map(textOf),
    disordered: destinations
      .filter(({ endpoint }) => endpoint.ordering === 'subject')
      .flatMap((one) => disorderedOf(one.arrivals(), byId)),
  };
}

type Pair = [before: Arrival, next: Arrival];

function pairsOf(arrivals: readonly Arrival[]): Pair[] {
  return arrivals.slice(1).flatMap((next, n) => {
    const before = arrivals[n];
    return before ? [[before, next] as Pair] : [];
  });
}

function textOf([before, next]: Pair): string {
  return `${before.id} again after ${((next.atMs - before.atMs) / 1000).toFixed(1)} s`;
}

function disorderedOf(
  arrivals: readonly Arrival[],
  recorded: ReadonlyMap<string, RecordedEvent>,
): string[] {
  const latest = new Map<string, bigint>();
  return arrivals.flatMap(({ id }) => {
    const row = recorded.get(id);
    if (!row) return [`${id} is not recorded`];
    const before = latest.get(row.subject) ?? 0n;
    if (row.subjectSeq < before)
      return [`${row.type} ${id}: ${row.subjectSeq} of ${row.subject} came after ${before}`];
    latest.set(row.subject, row.subjectSeq);
    return [];
  });
}

/** In words; empty for a good run. */
export function killFaultsOf(figures: Figures): string[] {
  const faults: Record<string, boolean> = {
    'something is still open': figures.endedAfterS === undefined,
    'writes have a wrong outcome': figures.writes.wrong.length > 0,
    'writes were applied and not recorded': figures.unrecorded.length > 0,
    'events were lost': figures.lost.length > 0,
    'the feed gave events twice': figures.feedDoubled.length > 0,
    'an event was sent again while its claim lasted': figures.early.length > 0,
    'an attempt had another body': figures.changed.length > 0,
    'events came out of order where order was asked for': figures.disordered.length > 0,
  };
  return Object.entries(faults).flatMap(([fault, is]) => (is ? [fault] : []));
}

export function killText(figures: Figures): string {
  const { kills, crashes, writes, endedAfterS = Number.NaN } = figures;
  const few = (all: readonly string[]) => [all.length, ...all.slice(0, 3)].join('  ');
  const rows: [string, string | number][] = [
    ['kills of processes that send', `${kills.senders}, ${kills.none} found none`],
    ['kills of whole daemons', kills.daemons],
    ['restarts of Postgres', crashes],
    ['writes', `${writes.sent}, ${writes.answered} answered in the end`],
    ['  with a wrong outcome', few(writes.wrong)],
    ['  left to people', writes.undecided],
    ['  applied, not recorded', few(figures.unrecorded)],
    ['events', figures.events],
    ['  not at a destination or in the feed', few(figures.lost)],
    ['  twice in the feed', few(figures.feedDoubled)],
    ...Object.entries(figures.arrivals).map(([name, n]): [string, number] => [
      `attempts at ${name}`,
      n,
    ]),
    ['  of events accepted before', figures.repeated],
    ['  … before its claim had ended', few(figures.early)],
    ['  with another body', few(figures.changed)],
    ['  out of order where asked', few(figures.disordered)],
    ['all ended after the last kill', `${endedAfterS.toFixed(1)} s`],
  ];
  return rows.map(([what, value]) => `${what.padEnd(38)} ${value}`).join('\n');
}
