/**
 * Drifts that are gives of an operator whose wallet is not known: what is compared, and what
 * earlier drifts of the wallet become.
 */
import type { Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Cause } from '../../resources/ledger/drift.ts';
import type { Deps } from '../deps.ts';
import type { OperatorGives } from './cause.ts';
import { type Drift, insertDriftAction, listOpenDrifts, reviseDrift } from './drift.ts';
import { type DriftOfWallet, type OperatorGive, operatorOf } from './operator-wallet.ts';

type Recognisable = DriftOfWallet & Pick<Drift, 'walletKey' | 'openedAt'> & { amount: bigint };

/** Causes that name nothing of ours. Only such a drift may be gives of an operator. */
export const ELSEWHERE: readonly Cause[] = ['made_elsewhere', 'opening'];

/** Nothing is prepared for what a mapping ends: a booking would have to be taken back then. */
export function byOperator(operator: OperatorGives) {
  return { cause: 'operator_wallet' as const, prepared: null, operator, counterpart: null };
}

/** Drifts of a wallet that are compared with gives, the newest first. */
const COMPARED_MAX = 100;
/** Gives that are read for it, the newest first, those of operators with a wallet included. */
const GIVES_MAX = 4_000;
/** How long before a drift a give that it shows may have been recorded. */
const RECORDED_BEFORE_MS = 600_000;

/**
 * The gives that drifts of the wallet equal, by the id of the drift, if they are those of one
 * operator that has no wallet.
 */
export async function recogniseOperator(
  tx: Tx,
  { effectSettings, settings }: Deps,
  drift: Recognisable,
): Promise<Map<string, OperatorGives>> {
  if (drift.amount >= 0n) return new Map();
  const before = await listNewest(tx, drift);
  const drifts = [...before, drift];
  const since = Math.min(...drifts.map(({ windowFrom, windowTo }) => windowFrom ?? windowTo));
  const gives = await listOperatorGives(tx, {
    since: since - RECORDED_BEFORE_MS,
    until: Math.max(...drifts.map(({ windowTo }) => windowTo)),
    mapped: [...effectSettings.operators.keys()],
    readLagMs: settings.readLagMs,
  });
  // Of an older window not all gives are known.
  const begin = gives[0]?.knownSince ?? Number.NEGATIVE_INFINITY;
  const compared = drifts.filter(({ windowFrom, windowTo }) => (windowFrom ?? windowTo) > begin);
  const found = operatorOf(compared, gives);
  return new Map(
    [...(found?.gives ?? [])].map(([id, ids]) => {
      return [id, { operator_no: found?.operatorNo ?? '', gives: [...ids] }];
    }),
  );
}

/** Earlier drifts of the wallet get the cause that the new one brought to light. */
export async function reassess(
  tx: Tx,
  { id: newest, walletKey, openedAt }: Recognisable,
  recognised: ReadonlyMap<string, OperatorGives>,
): Promise<void> {
  for (const drift of await listOpenDrifts(tx, [walletKey])) {
    const operator = recognised.get(drift.id);
    const isOther = drift.id !== newest && drift.counterpart === null;
    if (!operator || !isOther || !ELSEWHERE.includes(drift.cause)) continue;
    await reviseDrift(tx, { ...drift, ...byOperator(operator) });
    const action = { action: 'recognised', at: openedAt, by: 'reconciler', detail: operator };
    await insertDriftAction(tx, { driftId: drift.id, ...action });
  }
}

/** The newest drifts of the wallet, closed ones included, the drift itself apart. */
function listNewest({ sql }: Tx, { id, walletKey }: Recognisable): Promise<DriftOfWallet[]> {
  return sql<DriftOfWallet[]>`
    select id, amount, window_from, window_to from tallyhook.drifts
    where wallet_key = ${walletKey} and id <> ${id}
    order by opened_at desc, id desc limit ${COMPARED_MAX}`;
}

type GiveOfTime = OperatorGive & {
  /** When the oldest give that was read was recorded; null: none was left out. */
  knownSince: Instant | null;
};

/** Executed gives of that time by operators without a wallet. */
export function listOperatorGives(
  { sql }: Tx,
  given: { since: Instant; until: Instant; mapped: string[]; readLagMs: number },
): Promise<GiveOfTime[]> {
  const { since, until, mapped, readLagMs } = given;
  return sql<GiveOfTime[]>`
    with newest as materialized (
      select id, operation_no, amount, outcome, recorded_at,
        coalesce(sent_at, effective_at, recorded_at) as "from",
        coalesce(effective_at, answered_at, recorded_at) as effective_at
      from tallyhook.operations
      where kind = 'give' and recorded_at >= ${isoText(since)} and recorded_at <= ${isoText(until)}
      order by recorded_at desc limit ${GIVES_MAX})
    select id, operation_no::text as operator_no, amount, "from",
      effective_at + make_interval(secs => ${readLagMs / 1000}) as "to",
      (select min(recorded_at) from newest having count(*) = ${GIVES_MAX}) as known_since
    from newest
    where outcome = 'executed' and amount is not null
      and operation_no is not null and operation_no::text <> all(${mapped}::text[])
    order by recorded_at desc, id`;
}
