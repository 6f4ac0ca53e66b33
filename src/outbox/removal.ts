/**
 * Removal of bodies of events before the retention of events ends. The event keeps its id, type,
 * place in the feed and number in its subject; its data are a tombstone from then on: when the body
 * was removed, and its hash. The function `remove_bodies` of ../../drizzle/definitions/events.sql.
 */
import type { Queryable, Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { FIRST_UUID, isId } from '../kernel/ids.ts';
import { isEvent } from './feed.ts';

/** The shape of the data of an event without its body. */
export const REMOVED_SHAPE = -1;

/** Where an event is stored; ids are without their prefix. */
export interface StoredEvent {
  id: string;
  recordedAt: Instant;
}

export interface Tombstone extends StoredEvent {
  type: string;
  /** Null while it has its body. */
  removedAt: Instant | null;
  /** Of the body as webhooks had it, in hexadecimal digits. */
  sha256: string | null;
}

/** Undefined when there is no such event, or it is pruned. @param id `evt_…` */
export async function findTombstone(
  { sql }: Queryable,
  id: string,
): Promise<Tombstone | undefined> {
  if (!isId('evt', id)) return undefined;
  const isRemoved = sql`e.shape = ${REMOVED_SHAPE}`;
  const rows = await sql<Tombstone[]>`
    select e.id, e.type, e.recorded_at, ${removedAtOf({ sql })} as removed_at,
      case when ${isRemoved} then split_part(e.data, chr(10), 2)::json #>> '{}' end as sha256
    from tallyhook.events e where ${isEvent({ sql }, id)}`;
  return rows[0];
}

/** When the body of the event `e` was removed, or null. */
export function removedAtOf({ sql }: Pick<Queryable, 'sql'>) {
  return sql`case when e.shape = ${REMOVED_SHAPE}
    then (split_part(e.data, chr(10), 1)::json #>> '{}')::timestamptz end`;
}

/** Removes the bodies of events; returns those that had one. */
export async function removeBodies(
  { sql }: Tx,
  events: readonly StoredEvent[],
  now: Instant,
): Promise<StoredEvent[]> {
  if (events.length === 0) return [];
  const [ids, times] = [
    events.map(({ id }) => id),
    events.map(({ recordedAt }) => isoText(recordedAt)),
  ];
  return sql<StoredEvent[]>`
    select event as id, event_at as recorded_at from tallyhook.remove_bodies(
      ${ids}::uuid[], ${times}::timestamptz[], ${isoText(now)})`;
}

/** A page of the events from before an instant, in the order of their recording. */
export interface AgedPage {
  examined: number;
  /** Those of the types that have a body. */
  due: StoredEvent[];
  /** Undefined for an empty page. */
  last: StoredEvent | undefined;
}

/** @param after undefined from the oldest event */
export async function readAged(
  { sql }: Tx,
  query: {
    types: readonly string[];
    before: Instant;
    after: StoredEvent | undefined;
    limit: number;
  },
): Promise<AgedPage> {
  const { types, before, after, limit } = query;
  const [at, id] = [isoText(after?.recordedAt ?? 0), after?.id ?? FIRST_UUID];
  const page = await sql<(StoredEvent & { due: boolean })[]>`
    select id, recorded_at,
      shape <> ${REMOVED_SHAPE} and type = any(${types as string[]}::text[]) as due
    from tallyhook.events
    where (recorded_at, id) > (${at}::timestamptz, ${id}) and recorded_at < ${isoText(before)}
    order by recorded_at, id limit ${limit}`;
  return { examined: page.length, due: page.filter(({ due }) => due), last: page.at(-1) };
}
