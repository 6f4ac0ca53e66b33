/** SQL of what may have caused a drift: operations on its wallet, and drifts of other wallets. */
import type { Queryable, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Drift } from './store.ts';

type Window = Pick<Drift, 'walletKey' | 'windowFrom' | 'windowTo'>;

const BOOKED_MAX = 100;
const COMPARED = '7 days';

/**
 * Operations that count as not executed, or are undecided, and would explain the change, at most
 * two: sent before it, and recorded in the week before it.
 */
export async function listLost(
  { sql }: Queryable,
  { walletKey, amount, windowTo }: Window & { amount: bigint },
): Promise<string[]> {
  // Postgres 15 does not use the partial index without its condition in full.
  const rows = await sql<{ id: string }[]>`
    select o.id from tallyhook.operation_effects e
    join tallyhook.operations o on o.id = e.operation_id
    where lower(e.account) = ${`wallet:${walletKey}`}
      and e.unsettled is not null and e.unsettled = any('{true,false}')
      and e.amount = ${amount.toString()}::numeric and o.state in ('undecided', 'not_executed')
      and coalesce(o.sent_at, o.recorded_at) < ${isoText(windowTo)}
      and o.recorded_at > ${isoText(windowTo)}::timestamptz - ${COMPARED}::interval
    order by o.recorded_at limit 2`;
  return rows.map(({ id }) => id);
}

type Booked = Pick<Drift, 'id' | 'walletKey' | 'openedAt' | 'windowFrom' | 'windowTo'>;

/**
 * An executed operation of exactly this effect that may have taken effect in the window of a drift
 * and became known after it was confirmed, such as one that was reported. It explains no other.
 */
export async function findKnownLater(
  { sql }: Queryable,
  drift: Booked & { amount: bigint },
  readLagMs: number,
): Promise<string | undefined> {
  const from = (drift.windowFrom ?? 0) - readLagMs;
  const rows = await sql<{ id: string }[]>`
    select o.id from tallyhook.operation_effects e
    join tallyhook.operations o on o.id = e.operation_id
    where lower(e.account) = ${`wallet:${drift.walletKey}`} and e.unsettled
      and e.amount = ${drift.amount.toString()}::numeric and e.phase = 'executed'
      and coalesce(o.sent_at, o.effective_at, o.recorded_at) <= ${isoText(drift.windowTo)}
      and (o.effective_at >= ${isoText(from)}
        or o.sent_at is not null and o.effective_basis is distinct from 'reported')
      and not exists (select from tallyhook.drifts d
        where d.wallet_key = ${drift.walletKey} and d.closed_by ->> 'operation_id' = o.id)
      and exists (select from tallyhook.transitions t
        where t.operation_id = o.id and t.to_state in ('accepted', 'executed')
          and t.from_state is distinct from t.to_state and t.at >= ${isoText(drift.openedAt)})
    order by o.recorded_at limit 1`;
  return rows[0]?.id;
}

/** When the service accepted an operation or it became executed; undefined if it did not. */
export async function executedSince(
  { sql }: Queryable,
  operationId: string,
): Promise<Instant | undefined> {
  const rows = await sql<{ at: Instant | null }[]>`
    select max(at) as at from tallyhook.transitions
    where operation_id = ${operationId} and to_state in ('accepted', 'executed')
      and from_state is distinct from to_state`;
  return rows[0]?.at ?? undefined;
}

/** The booked drifts of the wallet of this amount, the oldest first. */
export async function listBooked(
  { sql }: Queryable,
  { walletKey, amount }: { walletKey: string; amount: bigint },
): Promise<Booked[]> {
  return sql<Booked[]>`
    select id, wallet_key, opened_at, window_from, window_to from tallyhook.drifts
    where wallet_key = ${walletKey} and state = 'booked' and amount = ${amount.toString()}::numeric
    order by opened_at limit ${BOOKED_MAX}`;
}

/**
 * Unclosed drifts of other wallets without a counterpart, of one of these amounts, whose change may
 * have happened at the same time; at most two.
 */
export async function listPossibleCounterparts(
  { sql }: Tx,
  { walletKey, windowFrom, windowTo }: Window,
  amounts: readonly bigint[],
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from tallyhook.drifts
    where closed_at is null and counterpart is null
      and amount = any(${amounts.map(String)}::numeric[]) and wallet_key <> ${walletKey}
      and window_to > ${windowFrom === null ? '-infinity' : isoText(windowFrom)}::timestamptz
      and coalesce(window_from, '-infinity') < ${isoText(windowTo)}
    order by id limit 2`;
  return rows.map(({ id }) => id);
}

const FEES_READ = 20;

/** The fee of the newest of our transfers that had one; 0 without one. */
export async function usualFee({ sql }: Queryable): Promise<bigint> {
  const rows = await sql<{ fee: bigint }[]>`
    select fee_amount as fee from (
      select fee_amount, recorded_at from tallyhook.operations where kind = 'transfer'
      order by recorded_at desc limit ${FEES_READ}) o
    where fee_amount > 0 order by recorded_at desc limit 1`;
  return rows[0]?.fee ?? 0n;
}
