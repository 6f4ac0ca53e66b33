/** Applies the drift rule to a wallet: stores drifts with their history and makes their events. */
import type { Tx } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import { decimalText } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { findFeeRules } from '../../ledger/ledger.ts';
import { listObservations } from '../../observer/observer.ts';
import type { EffectSettings } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { assess, UNASSESSED } from '../drifts/assess.ts';
import {
  closeDrift,
  type Drift,
  driftEvent,
  insertDrift,
  insertDriftAction,
  reviseDrift,
} from '../drifts/drift.ts';
import { compareWithNotExecuted, type Superseded, supersede } from '../unknown/supersede.ts';
import { driftStep, type Suspicion } from './drift-rule.ts';
import { type Comparison, isExact, type Range } from './rule.ts';
import type { Wallet } from './wallet.ts';

/** Changes that may follow on an evaluated observation before the next evaluation. */
export const NEWEST_MAX = 20;

interface Input {
  comparison: Comparison;
  /** The open drifts of the wallet. */
  drifts: readonly Drift[];
  observation: { id: string; startedAt: Instant; endedAt: Instant };
  /** The observation that was evaluated before. */
  previousId: string | null;
  now: Instant;
}

/** Why it closes: operations, fee rules by when they were set, or a drift that contains it. */
interface By {
  operationIds?: readonly string[] | undefined;
  feeRule?: string | undefined;
  mergedInto?: string | undefined;
  /** End of the first observation that did not show it any more, if that was an earlier one. */
  since?: Instant | undefined;
}

/** What explains the end of a drift by an observation. */
interface Closing extends By {
  observation: Input['observation'];
  now: Instant;
}

/** Applies the comparison to the drifts of a wallet; changes `wallet`, which the caller stores. */
export async function stepDrifts(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: Input,
): Promise<EventDraft[]> {
  const { comparison, drifts, observation } = input;
  const suspicion = suspicionOf(wallet);
  const next = driftStep(comparison, suspicion, drifts, observation);
  const { min = null, max = null, at = null } = next.suspicion ?? {};
  Object.assign(wallet, { suspectedMin: min, suspectedMax: max, suspectedAt: at });
  if (next.suspicion) {
    Object.assign(wallet, { verdict: 'drifting', cause: 'suspected' });
    if (!suspicion) wallet.consistentAt = await lastConsistentAt(tx, wallet, input);
    return [];
  }
  // With these drifts, or without them, the observation is explained.
  if (comparison.result === 'unexplained') {
    Object.assign(wallet, { verdict: 'explained', cause: null });
    if (isExact(comparison.difference)) wallet.quietAt = observation.startedAt;
  }
  const since = suspicion?.at;
  const events = await closeReturned(tx, deps, wallet, next.returned ?? [], { ...input, since });
  if (next.opened) {
    const { merged = [] } = next;
    events.push(...(await openDrift(tx, deps, wallet, { ...input, ...next.opened, merged })));
  }
  for (const { drift, range } of next.revised ?? [])
    events.push(...(await revise(tx, deps, wallet, { ...input, drift, range })));
  wallet.consistentAt = observation.startedAt;
  return events;
}

/**
 * Start of the last poll that showed the balance evaluated before. Of a series of equal polls only
 * some are evaluated, so the window of a drift would begin too early.
 */
async function lastConsistentAt(
  tx: Tx,
  { key, consistentAt }: Wallet,
  { observation, previousId }: Input,
): Promise<Instant | null> {
  if (consistentAt === null || previousId === observation.id) return consistentAt;
  const newest = await listObservations(tx, `wallet:${key}`, NEWEST_MAX);
  const previous = newest.find(({ id }) => id === previousId);
  return Math.max(consistentAt, previous?.startedAt ?? consistentAt);
}

function suspicionOf({ suspectedMin, suspectedMax, suspectedAt }: Wallet): Suspicion | undefined {
  return suspectedMin === null || suspectedMax === null || suspectedAt === null
    ? undefined
    : { min: suspectedMin, max: suspectedMax, at: suspectedAt };
}

/** Stores narrower bounds; a drift that becomes exact is assessed like one that opens exact. */
async function revise(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: Input & { drift: Drift; range: Range },
): Promise<EventDraft[]> {
  const { drift, range, observation, now } = input;
  const revised: Drift = { ...drift, amount: isExact(range) ? range.min : null, ...range };
  const { proved } = await compareWithNotExecuted(tx, deps, revised, now);
  const { amount } = revised;
  if (amount !== null) Object.assign(revised, await assess(tx, deps, { ...revised, amount }));
  await reviseDrift(tx, revised);
  await addAction(tx, drift, 'revised', now, { observation: observation.id, ...texts(range) });
  return proved ? explain(tx, deps, wallet, { ...input, proved }) : [];
}

/** A drift to open; those that merged become part of it. */
interface Opening extends Input {
  range: Range;
  suspectedAt: Instant | undefined;
  merged: readonly Drift[];
}

/** Opens a drift, and closes it at once when it proves a write that was called not executed. */
async function openDrift(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: Opening,
): Promise<EventDraft[]> {
  const { observation, now } = input;
  Object.assign(wallet, { verdict: 'drifting', cause: null });
  const [first] = input.merged;
  const drift = newDrift(deps, wallet, input, {
    suspectedAt: first?.suspectedAt ?? input.suspectedAt ?? now,
    windowFrom: first ? first.windowFrom : wallet.consistentAt,
    windowTo: observation.endedAt,
  });
  drift.assignee = input.merged.find(({ assignee }) => assignee !== null)?.assignee ?? null;
  const events: EventDraft[] = [];
  for (const part of input.merged)
    events.push(...(await close(tx, wallet, part, { ...input, mergedInto: drift.id })));
  const { proved, like } = await compareWithNotExecuted(tx, deps, drift, now);
  if (like.length > 0)
    drift.evidence = { ...(drift.evidence as object), equals_not_executed: like };
  events.push(...(await storeOpened(tx, deps, drift, observation)));
  if (!proved) return events;
  Object.assign(wallet, { verdict: 'explained', quietAt: observation.startedAt });
  events.push(...(await explain(tx, deps, wallet, { ...input, proved })));
  return events;
}

/** The operation is executed after all, and its drifts are explained by it. */
async function explain(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: Input & { proved: NonNullable<Superseded['proved']> },
): Promise<EventDraft[]> {
  const { proved, now } = input;
  const events = await supersede(tx, deps, proved, now);
  const operationIds = [proved.operation.id];
  for (const drift of proved.drifts)
    events.push(...(await close(tx, wallet, drift, { ...input, operationIds })));
  return events;
}

/** Stores a new drift with its probable cause. */
export async function storeOpened(
  tx: Tx,
  deps: Deps,
  drift: Drift,
  observation: Input['observation'],
): Promise<EventDraft[]> {
  const { amount } = drift;
  if (amount !== null) Object.assign(drift, await assess(tx, deps, { ...drift, amount }));
  await insertDrift(tx, drift);
  await addAction(tx, drift, 'opened', drift.openedAt, drift.evidence);
  return [driftEvent(drift, { type: 'wallet.drift_opened', data: {} }, observation.endedAt)];
}

export function newDrift(
  deps: Deps,
  wallet: Wallet,
  { observation, now, range }: { observation: Input['observation']; now: Instant; range: Range },
  window: Pick<Drift, 'suspectedAt' | 'windowFrom' | 'windowTo'>,
): Drift {
  return {
    id: deps.ids.next('drf'),
    walletKey: wallet.key,
    addr: wallet.addr,
    amount: isExact(range) ? range.min : null,
    ...range,
    state: 'open',
    ...window,
    openedAt: now,
    closedAt: null,
    evidence: {
      observation: observation.id,
      observed_balance: decimalText(wallet.observedBalance),
      ledger_balance: decimalText(wallet.ledgerAtObservation),
      ruled_out: ['posted operations', 'executed and not yet posted operations', 'open operations'],
    },
    ...UNASSESSED,
    assignee: null,
    closedBy: null,
  };
}

/** The observation does not show these drifts any more. */
async function closeReturned(
  tx: Tx,
  { effectSettings }: Deps,
  wallet: Wallet,
  drifts: readonly Drift[],
  input: Input & By,
): Promise<EventDraft[]> {
  const events: EventDraft[] = [];
  for (const drift of drifts) {
    const feeRule = await feeRuleSince(tx, drift);
    const operationIds = givesOf(drift, effectSettings);
    events.push(...(await close(tx, wallet, drift, { ...input, feeRule, operationIds })));
  }
  return events;
}

/** The gives that explain a drift, once its wallet is that of their operator. */
function givesOf(
  { walletKey, operator }: Drift,
  { operators }: EffectSettings,
): readonly string[] | undefined {
  const addr = operator && operators.get(operator.operator_no);
  return addr && addressKey(addr) === walletKey ? operator?.gives : undefined;
}

/** The fee rules that were applied since a drift opened that they explain. */
async function feeRuleSince(tx: Tx, { cause, openedAt }: Drift): Promise<string | undefined> {
  const set = cause === 'fee_rule' ? await findFeeRules(tx) : undefined;
  const isLater = set !== undefined && set.changed > 0n && set.setAt >= openedAt;
  return isLater ? isoText(set.setAt) : undefined;
}

/** Closes a drift and keeps the observation with it; it returned unless something is named. */
export async function close(
  tx: Tx,
  wallet: Wallet,
  drift: Drift,
  { observation, now, operationIds, feeRule, mergedInto, since }: Closing,
): Promise<EventDraft[]> {
  const isExplained = operationIds !== undefined || feeRule !== undefined;
  const how = mergedInto !== undefined ? 'merged' : isExplained ? 'explained' : 'returned';
  const closedBy: { [key: string]: Json } = {
    observation: observation.id,
    observed_at: isoText(observation.startedAt),
    addr: wallet.addr,
    observed_balance: decimalText(wallet.observedBalance),
    ...(since === undefined ? {} : { since: isoText(since) }),
    ...(operationIds === undefined ? {} : namesOf(operationIds)),
    ...(feeRule === undefined ? {} : { fee_rule_set_at: feeRule }),
    ...(mergedInto === undefined ? {} : { drift_id: mergedInto }),
  };
  if (!(await closeDrift(tx, drift.id, { state: how, closedBy }, now))) return [];
  await addAction(tx, drift, how, now, closedBy);
  const data = { how, closed_by: closedBy };
  return [driftEvent(drift, { type: 'wallet.drift_closed', data }, observation.endedAt)];
}

function namesOf(operationIds: readonly string[]): { [key: string]: Json } {
  const [first = null, ...others] = operationIds;
  return others.length === 0
    ? { operation_id: first }
    : { operation_id: first, operation_ids: [...operationIds] };
}

function addAction(
  tx: Tx,
  { id }: Drift,
  action: string,
  at: Instant,
  detail: Json,
): Promise<void> {
  return insertDriftAction(tx, { driftId: id, action, at, by: 'reconciler', detail });
}

function texts({ min, max }: Range) {
  return { amount_min: decimalText(min), amount_max: decimalText(max) };
}
