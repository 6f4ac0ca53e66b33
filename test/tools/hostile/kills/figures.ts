/** What a run of kills must show: nothing lost, nothing doubled without need, order kept. */
import type { Db } from '../../../../src/db/connect.ts';
import type { FeedEvent } from '../../../harness/app.ts';
import type { Arrival, Destination } from './destinations.ts';

/** What came to a destination in the end. */
export interface Come {
  destination: Destination;
  /** Its endpoint. */
  endpointId: string;
  arrivals: readonly Arrival[];
}

interface Run {
  destinations: readonly Come[];
  /** As the reader of the feed got them. */
  events: readonly FeedEvent[];
  /** Claims of each event by each endpoint: attempts, whether or not they had a result. */
  claims: ReadonlyMap<string, number>;
  /** Those that have an attempt recorded which got no answer, though the receiver accepted it. */
  unanswered: ReadonlySet<string>;
  /** After it an attempt whose process was killed may be made again. */
  leaseMs: number;
  crashesMs: readonly number[];
}

interface AtDestination {
  arrivals: number;
  /** Deliveries with more than one attempt. */
  retried: number;
  lost: string[];
  /** Those of events that were accepted before. */
  repeated: number;
  /** Of those: after an attempt that was recorded as one without an answer, such as a timeout. */
  unanswered: number;
  /** Others made before the claim of the one before had ended, with its time in seconds. */
  early: string[];
  /** Events that are stored more often than they were claimed, or than their broker stores them. */
  excess: string[];
  /** Attempts of an event whose body was not that of the one before. */
  changed: string[];
  /** Events of a subject that came after a later one where order was asked for. */
  disordered: string[];
}

interface Delivered {
  events: number;
  feed: { lost: string[]; doubled: string[] };
  /** By its name. */
  destinations: Record<string, AtDestination>;
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
  /** Of Postgres, and of brokers. */
  restarts: { postgres: number; brokers: number };
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

/** How often each delivery was claimed, by `keyOf`. */
export async function claimsOf(db: Db): Promise<Map<string, number>> {
  const rows = await db.sql<{ endpointId: string; eventId: string; fence: number }[]>`
    select 'ep_' || endpoint_id as endpoint_id, 'evt_' || event_id as event_id, fence
    from (select endpoint_id, event_id, fence from tallyhook.deliveries
      union all select endpoint_id, event_id, fence from tallyhook.pending_deliveries) d`;
  return new Map(rows.map(({ endpointId, eventId, fence }) => [keyOf(endpointId, eventId), fence]));
}

/** Deliveries with an attempt that was recorded and had no answer, by `keyOf`. */
export async function unansweredOf(db: Db): Promise<Set<string>> {
  const rows = await db.sql<{ endpointId: string; eventId: string }[]>`
    select distinct 'ep_' || d.endpoint_id as endpoint_id, 'evt_' || d.event_id as event_id
    from tallyhook.attempts a join (
      select id, endpoint_id, event_id from tallyhook.deliveries
      union all select id, endpoint_id, event_id from tallyhook.pending_deliveries) d
      on d.id = a.delivery_id
    where a.error is not null`;
  return new Set(rows.map(({ endpointId, eventId }) => keyOf(endpointId, eventId)));
}

function keyOf(endpointId: string, eventId: string): string {
  return `${endpointId} ${eventId}`;
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
  const inFeed = Map.groupBy(run.events, ({ id }) => id);
  const subscribed = due.filter(({ type }) => TYPES.includes(`${type.split('.')[0]}.*`));
  const byId = new Map(recorded.map((event) => [event.id, event]));
  return {
    events: due.length,
    feed: {
      lost: due.filter(({ id }) => !inFeed.has(id)).map(({ id, type }) => `${type} ${id}`),
      doubled: [...inFeed].filter(([, all]) => all.length > 1).map(([id]) => id),
    },
    destinations: Object.fromEntries(
      run.destinations.map((come) => [
        come.destination.name,
        atDestination(come, subscribed, byId, run),
      ]),
    ),
  };
}

function atDestination(
  { destination, endpointId, arrivals }: Come,
  subscribed: readonly RecordedEvent[],
  recorded: ReadonlyMap<string, RecordedEvent>,
  { claims, unanswered, leaseMs, crashesMs }: Run,
): AtDestination {
  const byId = Map.groupBy(arrivals, ({ id }) => id);
  const accepted = new Set(arrivals.filter(({ isAccepted }) => isAccepted).map(({ id }) => id));
  const pairs = [...byId.values()].flatMap(pairsOf);
  const again = pairs.filter(([before]) => before.isAccepted);
  // A crash of Postgres forgets the claims of its last moments: they are made again.
  const isCrash = (fromMs: number, toMs: number) =>
    crashesMs.some((atMs) => atMs > fromMs - leaseMs && atMs < toMs);
  const isEarly = ([{ atMs: fromMs }, { atMs: toMs }]: Pair) =>
    fromMs !== undefined &&
    toMs !== undefined &&
    toMs - fromMs < leaseMs - EARLY_MS &&
    !isCrash(fromMs, toMs);
  const isUnanswered = ([{ id }]: Pair) => unanswered.has(keyOf(endpointId, id));
  const claimed = (id: string) => claims.get(keyOf(endpointId, id)) ?? 0;
  const copiesMax = (id: string) =>
    destination.removesRepeats ? 1 : claimed(id) + crashesMs.length;
  return {
    arrivals: arrivals.length,
    retried: subscribed.filter(({ id }) => claimed(id) > 1).length,
    lost: subscribed.filter(({ id }) => !accepted.has(id)).map(({ id, type }) => `${type} ${id}`),
    repeated: again.length,
    unanswered: again.filter(isUnanswered).length,
    early: again.filter((pair) => isEarly(pair) && !isUnanswered(pair)).map(textOf),
    excess: [...byId]
      .filter(([id, all]) => all.length > copiesMax(id))
      .map(([id, all]) => `${id} ${all.length} times, at most ${copiesMax(id)}`),
    changed: pairs.filter(([before, next]) => before.body !== next.body).map(textOf),
    disordered: destination.endpoint.ordering === 'subject' ? disorderedOf(arrivals, recorded) : [],
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
  const [fromMs, toMs] = [before.atMs, next.atMs];
  if (fromMs === undefined || toMs === undefined) return `${before.id} again`;
  return `${before.id} again after ${((toMs - fromMs) / 1000).toFixed(1)} s`;
}

/** Of messages that a broker has stored only the first copies: a repeat may stand anywhere. */
function disorderedOf(
  arrivals: readonly Arrival[],
  recorded: ReadonlyMap<string, RecordedEvent>,
): string[] {
  const latest = new Map<string, bigint>();
  const known = new Set<string>();
  return arrivals.flatMap(({ id, atMs }) => {
    if (atMs === undefined && known.has(id)) return [];
    known.add(id);
    const row = recorded.get(id);
    if (!row) return [`${id} is not recorded`];
    const before = latest.get(row.subject) ?? 0n;
    if (row.subjectSeq < before)
      return [`${row.type} ${id}: ${row.subjectSeq} of ${row.subject} came after ${before}`];
    latest.set(row.subject, row.subjectSeq);
    return [];
  });
}

type Fault = 'lost' | 'early' | 'excess' | 'changed' | 'disordered';

/** What may not come to a destination: the heading of its column, and in words. */
const FAULTS: Readonly<Record<Fault, [heading: string, fault: string]>> = {
  lost: ['lost', 'events were lost'],
  early: ['early', 'an event was sent again while its claim lasted'],
  excess: ['too often', 'an event was stored more often than it may be'],
  changed: ['changed', 'an attempt had another body'],
  disordered: ['disordered', 'events came out of order where order was asked for'],
};

/** In words; empty for a good run. */
export function killFaultsOf(figures: Figures): string[] {
  const at = Object.entries(figures.destinations).flatMap(([name, found]) =>
    Object.entries(FAULTS).map(([fault, [, words]]): [string, boolean] => [
      `${name}: ${words}`,
      found[fault as Fault].length > 0,
    ]),
  );
  const faults: Record<string, boolean> = {
    'something is still open': figures.endedAfterS === undefined,
    'writes have a wrong outcome': figures.writes.wrong.length > 0,
    'writes were applied and not recorded': figures.unrecorded.length > 0,
    'the feed lost events': figures.feed.lost.length > 0,
    'the feed gave events twice': figures.feed.doubled.length > 0,
    ...Object.fromEntries(at),
  };
  return Object.entries(faults).flatMap(([fault, is]) => (is ? [fault] : []));
}

export function killText(figures: Figures): string {
  const { kills, restarts, writes, endedAfterS = Number.NaN } = figures;
  const few = (all: readonly string[]) => [all.length, ...all.slice(0, 3)].join('  ');
  const row = (what: string, value: string | number) => `${what.padEnd(38)} ${value}`;
  return [
    row('kills of processes that send', `${kills.senders}, ${kills.none} found none`),
    row('kills of whole daemons', kills.daemons),
    row('restarts of Postgres', restarts.postgres),
    row('restarts of brokers', restarts.brokers),
    row('writes', `${writes.sent}, ${writes.answered} answered in the end`),
    row('  with a wrong outcome', few(writes.wrong)),
    row('  left to people', writes.undecided),
    row('  applied, not recorded', few(figures.unrecorded)),
    row('events', figures.events),
    row('  not in the feed', few(figures.feed.lost)),
    row('  twice in the feed', few(figures.feed.doubled)),
    row('all ended after the last kill', `${endedAfterS.toFixed(1)} s`),
    ...tableOf(figures.destinations),
  ].join('\n');
}

/** A line for each destination, and what is wrong there. */
function tableOf(destinations: Figures['destinations']): string[] {
  const line = (name: string, cells: readonly (string | number)[]) =>
    name.padEnd(16) + cells.map((cell) => String(cell).padStart(11)).join('');
  const faults = Object.entries(FAULTS) as [Fault, [heading: string, fault: string]][];
  return [
    line('destination', [
      'came',
      'retried',
      'repeated',
      'unanswered',
      ...faults.map(([, [heading]]) => heading),
    ]),
    ...Object.entries(destinations).flatMap(([name, at]) => [
      line(name, [
        at.arrivals,
        at.retried,
        at.repeated,
        at.unanswered,
        ...faults.map(([fault]) => at[fault].length),
      ]),
      ...faults.flatMap(([fault]) => at[fault].slice(0, 3).map((one) => `  ${fault}: ${one}`)),
    ]),
  ];
}
