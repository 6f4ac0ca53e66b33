/**
 * What became known since the wallet was evaluated last: reports, late answers and decisions. Each
 * ends the drift that it explains, in whose window it took effect. A report that the observations
 * since contradict opens a drift between the same polls, so that the balances as of any other time
 * stay right: something else took the change back, or brought about only a part of what they show.
 */
import type { Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { listMovedGives } from '../../ledger/ledger.ts';
import { listObservations } from '../../observer/observer.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import type { Drift } from '../drifts/drift.ts';
import {
  explainedBy,
  type Hidden,
  hiddenBy,
  type LateChange,
  type LateExplanation,
} from './drift-rule.ts';
import { close, NEWEST_MAX, newDrift, storeOpened } from './drifts.ts';
import type { Wallet } from './wallet.ts';

/** Windows of drifts that are read, the longest first. */
const WINDOWS_MAX = 100;

interface Input {
  before: Wallet | undefined;
  /** The open drifts of the wallet, the oldest first. */
  drifts: readonly Drift[];
  /** How many operations may have become known late. */
  backdated: number;
  observation: { id: string; startedAt: Instant; endedAt: Instant };
  now: Instant;
}

/** Returns the drifts that are open then, and the events. */
export async function takeLateChanges(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  { before, drifts, backdated, observation, now }: Input,
): Promise<{ drifts: readonly Drift[]; late: EventDraft[] }> {
  const since = before?.evaluatedAt ?? null;
  const mayExplain = drifts.length > 0 || backdated > 0;
  if (!before || since === null || !mayExplain) return { drifts, late: [] };
  const { readLagMs } = deps.settings;
  const late = await listLateChanges(tx, wallet.key, since);
  const changes = united(late, await listMoved(tx, before, wallet));
  const { explained, others } = explainedBy(drifts, changes, readLagMs);
  const events: EventDraft[] = [];
  const opened: Drift[] = [];
  for (const one of explained) {
    const { drift, by, rest } = one;
    const operationIds = by.map(({ operationId }) => operationId);
    events.push(...(await close(tx, wallet, drift, { observation, now, operationIds })));
    await redate(tx, deps, one, now);
    if (!rest) continue;
    const left = newDrift(deps, wallet, { observation, now, range: rest }, windowOf(drift));
    opened.push({ ...left, assignee: drift.assignee });
  }
  const quietAt = before.quietAt ?? Number.NEGATIVE_INFINITY;
  const hidden = others.filter(({ from, to }) => from === to && to + readLagMs < quietAt);
  for (const one of await listHidden(tx, wallet.key, hidden, { readLagMs, quietAt })) {
    const { operationId, amount, at, ...window } = one;
    const range = { min: amount, max: amount };
    const input = { observation, now, range };
    const drift = newDrift(deps, wallet, input, { suspectedAt: at, ...window });
    drift.evidence = { ...(drift.evidence as object), contradicts: operationId };
    opened.push(drift);
  }
  for (const drift of opened) events.push(...(await storeOpened(tx, deps, drift, observation)));
  const closed = new Set(explained.map(({ drift }) => drift));
  return { drifts: [...drifts.filter((drift) => !closed.has(drift)), ...opened], late: events };
}

/** What hid these changes, by the newest polls that showed the wallet and by all its drifts. */
async function listHidden(
  tx: Tx,
  key: string,
  changes: readonly LateChange[],
  { readLagMs, quietAt }: { readLagMs: number; quietAt: Instant },
): Promise<Hidden[]> {
  if (changes.length === 0) return [];
  const newest = await listObservations(tx, `wallet:${key}`, NEWEST_MAX);
  const polls = newest.filter(({ result }) => result === 'seen');
  const times = changes.map(({ to }) => to);
  const windows = await tx.sql<{ windowFrom: Instant; windowTo: Instant }[]>`
    select window_from, window_to from tallyhook.drifts
    where wallet_key = ${key} and window_from <= ${isoText(Math.max(...times))}::timestamptz
      and window_to >= ${isoText(Math.min(...times))}::timestamptz
    order by window_to - window_from desc, id limit ${WINDOWS_MAX}`;
  return hiddenBy(changes, { polls, windows, readLagMs, quietAt });
}

function windowOf({ suspectedAt, windowFrom, windowTo }: Drift) {
  return { suspectedAt, windowFrom, windowTo };
}

/** A write of ours whose time was not known took effect when the drift began. */
async function redate(
  tx: Tx,
  { operations }: Deps,
  { drift, by }: LateExplanation<Drift>,
  now: Instant,
): Promise<void> {
  for (const { operationId, from, to } of by) {
    if (from === to) continue;
    const { suspectedAt: effectiveAt, windowFrom } = drift;
    const evidence = { drift: drift.id, effective_at: isoText(effectiveAt) };
    const outside = { before: windowFrom ?? Number.NEGATIVE_INFINITY, after: effectiveAt };
    await operations.redate(tx, { id: operationId, effectiveAt, outside, evidence }, now);
  }
}

/**
 * Gives that were posted from the wallet since it was evaluated, and from the account of their
 * operator before. Each is counted in one evaluation: by the entries that it read, never by clocks.
 * A give that explains nothing then would else be taken for a part of the drift that its own
 * posting causes.
 */
async function listMoved(tx: Tx, before: Wallet, wallet: Wallet): Promise<LateChange[]> {
  const [after, upTo] = [before.ledgerVersion ?? 0n, wallet.ledgerVersion ?? 0n];
  if (after >= upTo) return [];
  const moved = await listMovedGives(tx, wallet.key, { after, upTo });
  return moved.map(({ operationId, amount, sentAt: from, effectiveAt: to }) => {
    return { operationId, amount, from, to, mayBePart: true };
  });
}

/**
 * Both without what they have in common: a give that became known and was moved changed once, and
 * one that was moved and taken back did not change.
 */
function united(late: readonly LateChange[], moved: readonly LateChange[]): LateChange[] {
  const byId = new Map(moved.map((one) => [one.operationId, one]));
  const known = new Set(late.map(({ operationId }) => operationId));
  return [
    ...late.filter(({ operationId, amount }) => byId.get(operationId)?.amount !== -amount),
    ...moved.filter(({ operationId }) => !known.has(operationId)),
  ];
}

/**
 * What the wallet is expected to hold more or less than when it was evaluated, because operations
 * that counted as not executed or were not known became executed, or were taken back. What was open
 * is left out: it was possible then. So is what people linked to a drift.
 */
async function listLateChanges(tx: Tx, key: string, since: Instant): Promise<LateChange[]> {
  const rows = await tx.sql<
    { id: string; amount: bigint; isExact: boolean; sentAt: Instant; at: Instant; basis: string }[]
  >`
    select o.id, case when o.outcome = 'executed' then e.amount else -e.amount end as amount,
      o.outcome = 'not_executed' or o.source = 'report' or o.effective_basis = 'reported'
        as is_exact,
      coalesce(o.effective_at, o.answered_at, o.recorded_at) as at,
      coalesce(o.sent_at, o.effective_at, o.recorded_at) as sent_at, o.effective_basis as basis
    from (
      select operation_id, sum(amount) as amount from tallyhook.operation_effects
      where lower(account) = ${`wallet:${key}`} and unsettled
        and phase in ('executed', 'taken_back')
      group by operation_id having sum(amount) <> 0) e
    join tallyhook.operations o on o.id = e.operation_id
    cross join lateral (
      select t.from_state from tallyhook.transitions t
      where t.operation_id = o.id and t.at >= ${isoText(since)}::timestamptz
      order by t.id limit 1) t
    where case when o.outcome = 'executed'
        then t.from_state is null or t.from_state in ('not_executed', 'rejected')
        else t.from_state in ('accepted', 'executed', 'settled') end
      and coalesce(o.sent_at, o.effective_at, o.recorded_at) >= coalesce((
        select p.seen_at from tallyhook.posting_requests p
        where p.id = ${`opening:${key}`} and p.problem is null), '-infinity')
      and not exists (select from tallyhook.drifts d
        where d.wallet_key = ${key} and d.closed_by ->> 'operation_id' = o.id)
    order by o.id limit 1000`;
  return rows.map(({ id: operationId, amount, isExact, sentAt, at, basis }) => {
    if (isExact) return { operationId, amount, from: at, to: at };
    const to = basis === 'answer' ? at : Number.POSITIVE_INFINITY;
    return { operationId, amount, from: sentAt, to };
  });
}
