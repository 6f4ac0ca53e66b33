/**
 * Assesses a drift whose amount is exact: its probable cause with the proposal that fits it, and
 * its counterpart if one transfer made elsewhere between two wallets caused both.
 */
import type { Queryable, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { openingsOf } from '../../ledger/ledger.ts';
import {
  accountKey,
  accountOfWallet,
  effectOn,
  findOperations,
  otherFeeRules,
} from '../../operations/operations.ts';
import type { Cause } from '../../resources/ledger/drift.ts';
import type { Deps } from '../deps.ts';
import { listExecutedBetween } from '../wallets/expected.ts';
import {
  counterpartAmounts,
  type Facts,
  type OperatorGives,
  type Prepared,
  probableCause,
} from './cause.ts';
import { type Drift, insertDriftAction, pairDrift } from './drift.ts';
import { byOperator, ELSEWHERE, reassess, recogniseOperator } from './recognise.ts';

interface Assessment {
  cause: Cause;
  prepared: Prepared | null;
  operator: OperatorGives | null;
  counterpart: string | null;
}

/** Until its amount is exact nothing is prepared. */
export const UNASSESSED: Assessment = {
  cause: 'made_elsewhere',
  prepared: null,
  operator: null,
  counterpart: null,
};

type Assessed = Pick<Drift, 'id' | 'walletKey' | 'openedAt' | 'windowFrom' | 'windowTo'> & {
  amount: bigint;
};

export async function assess(tx: Tx, deps: Deps, drift: Assessed): Promise<Assessment> {
  const facts: Facts = {
    driftId: drift.id,
    amount: drift.amount,
    lost: await listLost(tx, drift),
    booked: await bookedBefore(tx, deps, drift),
    otherFeeRule: await otherFeeRule(tx, deps, drift),
    sinceOpening: await isSinceOpening(tx, drift),
  };
  const { cause, prepared } = probableCause(facts);
  if (!ELSEWHERE.includes(cause)) return { cause, prepared, operator: null, counterpart: null };
  const recognised = await recogniseOperator(tx, deps, drift);
  const operator = recognised.get(drift.id);
  if (operator) {
    await reassess(tx, drift, recognised);
    return byOperator(operator);
  }
  const counterpart = await findCounterpart(tx, drift);
  if (counterpart === undefined) return { cause, prepared, operator: null, counterpart: null };
  await pairDrift(tx, counterpart, drift.id);
  const paired = { action: 'paired', at: drift.openedAt, by: 'reconciler' };
  await insertDriftAction(tx, { driftId: counterpart, ...paired, detail: { with: drift.id } });
  return { cause: 'made_elsewhere', prepared, operator: null, counterpart };
}

/** A booked drift that this one takes back because its operation is known now. */
async function bookedBefore(
  tx: Tx,
  { settings }: Deps,
  { walletKey, amount }: Assessed,
): Promise<Facts['booked']> {
  for (const booked of await listBooked(tx, { walletKey, amount: -amount })) {
    const late = { ...booked, amount: -amount };
    const operationId = await findKnownLater(tx, late, settings.readLagMs);
    if (operationId !== undefined) return { driftId: booked.id, operationId };
  }
  return undefined;
}

/** How much more each operation of the window would have added under the other fee rule. */
async function otherFeeRule(
  tx: Tx,
  { effectSettings }: Deps,
  { walletKey, windowFrom, windowTo }: Assessed,
): Promise<bigint[]> {
  const ids = await listExecutedBetween(tx, walletKey, windowFrom ?? 0, windowTo);
  const operations = await findOperations(tx, ids);
  const account = accountOfWallet(walletKey);
  const other = { ...effectSettings, ...otherFeeRules(effectSettings) };
  return [...operations.values()].flatMap((operation) => {
    const more = effectOn(operation, account, other) - effectOn(operation, account, effectSettings);
    return more === 0n ? [] : [more];
  });
}

async function isSinceOpening(tx: Tx, { walletKey, windowFrom }: Assessed): Promise<boolean> {
  const account = accountOfWallet(walletKey);
  const opening = (await openingsOf(tx, [account])).get(accountKey(account));
  return opening !== undefined && (windowFrom ?? opening.seenAt) <= opening.seenAt;
}

/** The only drift that can be the other side of the same transfer. */
async function findCounterpart(tx: Tx, drift: Assessed): Promise<string | undefined> {
  const amounts = counterpartAmounts(drift.amount, await usualFee(tx));
  const [first, second] = await listPossibleCounterparts(tx, drift, amounts);
  return second === undefined ? first : undefined;
}

type Window = Pick<Drift, 'walletKey' | 'windowFrom' | 'windowTo'>;

const BOOKED_MAX = 100;
const COMPARED = '7 days';

/**
 * Operations that count as not executed, or are undecided, and would explain the change, at most
 * two: sent before it, and recorded in the week before it.
 */
async function listLost(
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
async function findKnownLater(
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
async function listBooked(
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
async function listPossibleCounterparts(
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
async function usualFee({ sql }: Queryable): Promise<bigint> {
  const rows = await sql<{ fee: bigint }[]>`
    select fee_amount as fee from (
      select fee_amount, recorded_at from tallyhook.operations where kind = 'transfer'
      order by recorded_at desc limit ${FEES_READ}) o
    where fee_amount > 0 order by recorded_at desc limit 1`;
  return rows[0]?.fee ?? 0n;
}
