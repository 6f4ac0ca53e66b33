/**
 * The fee rule and the drifts of payers. Observed balances vote on it: an open drift on a payer
 * that equals what the other rule would change votes for the other rule. Every other write with a
 * fee that settled since the first of them votes for the rule that is set. At least two votes that
 * are the majority are a contradiction: one finding, however many drifts there are.
 */
import type { Queryable } from '../../db/connect.ts';
import { isoText } from '../../kernel/clock.ts';
import type { AnnounceFeeRules } from '../../ledger/ledger.ts';
import { expedite } from '../../observer/observer.ts';
import type { FeeMode } from '../../operations/operations.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { Condition } from '../alerts/rule.ts';
import { listDrifts } from './drift.ts';

export const CONTRADICTED = 'ledger.fee_rule_contradicted';

/** One difference of a fee may be a coincidence. */
const VOTES_MIN = 2;

export async function checkFeeRule(db: Queryable): Promise<Condition[]> {
  const votes = await feeVotes(db);
  return votes && isContradicted(votes) ? [conditionOf(votes)] : [];
}

/** Whether the votes for the other rule decide. Pure. */
export function isContradicted({ against, settled }: FeeVotes): boolean {
  return against >= VOTES_MIN && against > settled - against;
}

function conditionOf({ against, settled, operationId, mode }: FeeVotes): Condition {
  const detail = {
    setting: 'ledger.fee_mode',
    set: mode,
    observed: mode === 'on_top' ? 'deducted' : 'on_top',
    votes_against: against,
    votes_for: Math.max(0, settled - against),
    operation_id: operationId,
  };
  return { rule: CONTRADICTED, subject: 'ledger.fee_mode', detail };
}

interface FeeVotes {
  /** Writes with a fee whose payer has a drift that the other rule explains. */
  against: number;
  /** All writes with a fee that settled since the first of them, at most 1,000. */
  settled: number;
  /** The first of them, and the rule that it was posted under. */
  operationId: string;
  mode: FeeMode;
}

const DRIFTS_MAX = 1_000;
const SETTLED_MAX = 1_000;

/** Undefined while no open drift has the probable cause `fee_rule`. */
export async function feeVotes({ sql }: Queryable): Promise<FeeVotes | undefined> {
  const rows = await sql<FeeVotes[]>`
    with vote as materialized (
      select o.id, o.fee_mode, o.sent_at
      from (select wallet_key, window_from, window_to from tallyhook.drifts
        where closed_at is null and cause = 'fee_rule' order by wallet_key limit ${DRIFTS_MAX}) d
      cross join lateral (
        select o.id, o.fee_mode, o.fee_at as sent_at
        from tallyhook.operations o
        where lower(o.from_addr) = d.wallet_key and o.fee_mode is not null
          and o.recorded_at >= coalesce(d.window_from, '-infinity') - interval '1 minute'
          and o.recorded_at < d.window_to and o.outcome = 'executed'
        order by o.recorded_at limit 1) o
    ), first as (
      select id, fee_mode, sent_at from vote order by sent_at, id limit 1
    )
    select (select count(*) from vote)::int as against, s.settled, first.id as operation_id,
      first.fee_mode as mode
    from first cross join lateral (
      select count(*)::int as settled from (
        select from tallyhook.operations o
        where o.fee_mode = first.fee_mode and o.settled_at is not null
          and o.fee_at >= first.sent_at
        limit ${SETTLED_MAX}) x) s`;
  return rows[0];
}

/** Drifts that one event names. */
const NAMED_MAX = 100;

/**
 * Announces that other fee rules are applied, as one event with the drifts that they probably
 * explain. Each of these drifts ends when the next observation of its wallet shows it no more.
 */
export function feeRuleAnnouncement(outbox: Outbox): AnnounceFeeRules {
  return async (tx, { rules, setAt, changed, reposted }, now) => {
    const filter = { state: 'unclosed', cause: 'fee_rule' } as const;
    const drifts = await listDrifts(tx, filter, { limit: NAMED_MAX });
    await expedite(tx, new Map(drifts.map(({ walletKey }) => [`wallet:${walletKey}`, now])));
    const changes = rules.feeChanges ?? [];
    await outbox.emit(tx, [
      {
        type: 'ledger.fee_rule_applied',
        subject: 'ledger:fee_rule',
        occurredAt: now,
        data: {
          rules: [
            { from: null, mode: rules.feeMode },
            ...changes.map(({ from, mode }) => ({ from: isoText(from), mode })),
          ],
          set_at: isoText(setAt),
          changed: Number(changed),
          reposted: Number(reposted),
          drifts: drifts.map(({ id }) => id),
        },
      },
    ]);
  };
}
