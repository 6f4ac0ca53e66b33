/**
 * The window of a consumer: the events that it has read from the feed and that are not
 * acknowledged. Every statement runs under the lock of the consumer's row, so that its workers
 * take turns; the lock is held for a few milliseconds.
 */
import type { Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { WINDOW_MAX } from '../../resources/delivery/consumer.ts';
import { feedBounds, PAGE_BYTES_MAX } from '../feed.ts';

/** What a pull hands out. */
export interface Pulled {
  events: { receipt: string; redelivered: number; body: string }[];
  redeliverAt: Instant | null;
  /** None was found in what was read of the feed, and more of it follows. */
  readsOn: boolean;
}

interface Consumer {
  id: string;
  eventTypes: readonly string[];
  redeliverAfterS: number;
  seeks: number;
  readTo: bigint;
}

/** Numbers of the feed that one transaction reads. */
const READ_MAX = 4_000n;

/** @throws Failure `not_found` */
export async function lockConsumer({ sql }: Tx, id: string): Promise<Consumer> {
  const rows = await sql<Consumer[]>`
    select id, event_types, redeliver_after_s, seeks, read_to
    from tallyhook.consumers where id = ${id} for no key update`;
  if (!rows[0]) throw new Failure('not_found');
  return rows[0];
}

/** @throws Failure `not_found`, `cursor_expired` */
export async function pullOnce(
  tx: Tx,
  id: string,
  { limit, now }: { limit: number; now: Instant },
): Promise<Pulled> {
  const consumer = await lockConsumer(tx, id);
  const { oldest, newest } = await feedBounds(tx);
  const first = oldest ?? newest + 1n;
  if (consumer.readTo + 1n < first) throw expired(first, consumer.readTo);
  await dropPruned(tx, id, first);
  const { all, free } = await countWindow(tx, id, now);
  let end = consumer.readTo;
  if (free < limit && all < WINDOW_MAX && end < newest)
    end = await readFeedInto(tx, consumer, newest, WINDOW_MAX - all);
  const redeliverAt = now + consumer.redeliverAfterS * 1_000;
  const rows = await handOut(tx, id, { limit, now, redeliverAt });
  const events = rows.map(({ seq, handedOut, body }) => ({
    receipt: `${consumer.seeks}.${seq}.${handedOut}`,
    redelivered: handedOut - 1,
    body,
  }));
  const none = events.length === 0;
  return {
    events,
    redeliverAt: none ? null : redeliverAt,
    readsOn: none && end > consumer.readTo && end < newest,
  };
}

function expired(first: bigint, readTo: bigint): Failure {
  const missed = first - 1n - readTo;
  return new Failure(
    'cursor_expired',
    `${missed} events of all types were pruned before they were pulled; seek to oldest to go on`,
    { missed: Number(missed), oldest: first.toString() },
  );
}

/** Counts and forgets events of the window that retention has pruned. */
async function dropPruned({ sql }: Tx, id: string, first: bigint): Promise<void> {
  await sql`
    with pruned as (
      delete from tallyhook.consumed_events
      where consumer_id = ${id} and seq < ${first.toString()}::bigint returning 1
    )
    update tallyhook.consumers set missed = missed + (select count(*) from pruned)
    where id = ${id} and exists (select from pruned)`;
}

/** Of an event `w` of the window: no worker has it or another one of its subject. */
export function isFree({ sql }: Pick<Tx, 'sql'>, id: string, now: Instant) {
  return sql`(w.lease_until is null or w.lease_until <= ${isoText(now)}) and w.subject not in (
    select b.subject from tallyhook.consumed_events b
    where b.consumer_id = ${id} and b.lease_until > ${isoText(now)})`;
}

async function countWindow(
  tx: Tx,
  id: string,
  now: Instant,
): Promise<{ all: number; free: number }> {
  const rows = await tx.sql<{ all: number; free: number }[]>`
    select count(*)::int as all, (count(*) filter (where ${isFree(tx, id, now)}))::int as free
    from tallyhook.consumed_events w where w.consumer_id = ${id}`;
  return rows[0] ?? { all: 0, free: 0 };
}

/** Reads the next events of its types into the window; returns up to where it has read. */
async function readFeedInto(
  { sql }: Tx,
  { id, eventTypes, readTo }: Consumer,
  newest: bigint,
  room: number,
): Promise<bigint> {
  const end = readTo + READ_MAX < newest ? readTo + READ_MAX : newest;
  const [after, upTo] = [readTo.toString(), end.toString()];
  // `offset 0` keeps each event on its index, also with a plan made while the table was small.
  const rows = await sql<{ readTo: bigint }[]>`
    with found as materialized (
      select f.first_seq + x.n - 1 as seq, x.id, x.at, e.subject
      from tallyhook.numbered_events f
      cross join lateral unnest(f.ids, f.recorded_ats) with ordinality as x(id, at, n)
      cross join lateral (
        select v.subject from tallyhook.events v
        where v.recorded_at = x.at and v.id = x.id
          and tallyhook.patterns_of(v.type) && ${[...eventTypes]}::text[]
        offset 0) e
      where f.first_seq <= ${upTo}::bigint and f.first_seq + x.n - 1 > ${after}::bigint
        and f.first_seq + x.n - 1 <= ${upTo}::bigint
        and f.first_seq >= coalesce((select max(p.first_seq) from tallyhook.numbered_events p
          where p.first_seq <= ${after}::bigint + 1), 0)
      order by f.first_seq, x.n limit ${room}
    ), kept as (
      insert into tallyhook.consumed_events (consumer_id, seq, event_id, recorded_at, subject)
      select ${id}, seq, id, at, subject from found
    )
    update tallyhook.consumers set read_to = (select case when count(*) < ${room}
      then ${upTo}::bigint else max(seq) end from found)
    where id = ${id} returning read_to`;
  return rows[0]?.readTo ?? readTo;
}

interface HandedOut {
  seq: bigint;
  handedOut: number;
  body: string;
}

/** Of a subject of which a worker has an event, no other is handed out. */
async function handOut(
  tx: Tx,
  id: string,
  { limit, now, redeliverAt }: { limit: number; now: Instant; redeliverAt: Instant },
): Promise<HandedOut[]> {
  return tx.sql<HandedOut[]>`
    with free as materialized (
      select w.seq, w.event_id, w.recorded_at from tallyhook.consumed_events w
      where w.consumer_id = ${id} and ${isFree(tx, id, now)}
      order by w.seq limit ${limit}
    ), bodies as materialized (
      select f.seq, e.body, sum(octet_length(e.body)) over (order by f.seq) as bytes
      from free f cross join lateral (
        select tallyhook.event_body(v) as body from tallyhook.events v
        where v.recorded_at = f.recorded_at and v.id = f.event_id offset 0) e
    ), taken as (
      update tallyhook.consumed_events w
      set handed_out = w.handed_out + 1, lease_until = ${isoText(redeliverAt)}
      from bodies b where w.consumer_id = ${id} and w.seq = b.seq
        and b.bytes - octet_length(b.body) < ${PAGE_BYTES_MAX}
      returning w.seq, w.handed_out, b.body
    )
    select seq, handed_out, body from taken order by seq`;
}

/** Receipts, and those of them that still name a hand-out. */
interface Receipts {
  consumer: Consumer;
  seqs: string[];
  hands: number[];
}

async function openReceipts(tx: Tx, id: string, receipts: readonly string[]): Promise<Receipts> {
  const consumer = await lockConsumer(tx, id);
  const parts = receipts.map((receipt) => receipt.split('.'));
  const own = parts.filter(([seeks]) => Number(seeks) === consumer.seeks);
  return {
    consumer,
    seqs: own.map(([, seq = '']) => seq),
    hands: own.map(([, , hand]) => Number(hand)),
  };
}

/** @throws Failure `not_found` */
export async function acknowledge(
  tx: Tx,
  id: string,
  receipts: readonly string[],
): Promise<{ acknowledged: number; stale: string[] }> {
  const { consumer, seqs, hands } = await openReceipts(tx, id, receipts);
  const rows = await tx.sql<Named[]>`
    delete from tallyhook.consumed_events w
    using unnest(${seqs}::bigint[], ${hands}::int[]) as r(seq, hand)
    where w.consumer_id = ${id} and w.seq = r.seq and w.handed_out = r.hand
    returning w.seq, w.handed_out`;
  return { acknowledged: rows.length, stale: staleOf(consumer, receipts, rows) };
}

/** @throws Failure `not_found` */
export async function release(
  tx: Tx,
  id: string,
  receipts: readonly string[],
): Promise<{ released: number; stale: string[] }> {
  const { consumer, seqs, hands } = await openReceipts(tx, id, receipts);
  const rows = await tx.sql<Named[]>`
    update tallyhook.consumed_events w set lease_until = null
    from unnest(${seqs}::bigint[], ${hands}::int[]) as r(seq, hand)
    where w.consumer_id = ${id} and w.seq = r.seq and w.handed_out = r.hand
    returning w.seq, w.handed_out`;
  return { released: rows.length, stale: staleOf(consumer, receipts, rows) };
}

type Named = Pick<HandedOut, 'seq' | 'handedOut'>;

function staleOf(
  { seeks }: Consumer,
  receipts: readonly string[],
  rows: readonly Named[],
): string[] {
  const named = new Set(rows.map(({ seq, handedOut }) => `${seeks}.${seq}.${handedOut}`));
  return receipts.filter((receipt) => !named.has(receipt));
}

/** Goes on after `position`; counts what was pruned before it was read. */
export async function seekTo(tx: Tx, consumer: Consumer, position: bigint): Promise<void> {
  const { oldest, newest } = await feedBounds(tx);
  const pruned = (oldest ?? newest + 1n) - 1n - consumer.readTo;
  const missed = pruned > 0n ? pruned : 0n;
  await tx.sql`delete from tallyhook.consumed_events where consumer_id = ${consumer.id}`;
  await tx.sql`
    update tallyhook.consumers
    set read_to = ${position.toString()}::bigint, seeks = seeks + 1,
      missed = missed + ${missed.toString()}::bigint
    where id = ${consumer.id}`;
}
