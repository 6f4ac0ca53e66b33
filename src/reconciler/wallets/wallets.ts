/**
 * Evaluates observations of wallets: in one transaction the accepted state, drifts, the posting
 * request of the opening, operations that settle, and the events.
 */
import type { Tx } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import { must } from '../../kernel/assert.ts';
import type { Instant } from '../../kernel/clock.ts';
import { openingId, requestPosting } from '../../ledger/ledger.ts';
import type { StoredObservation } from '../../observer/observer.ts';
import {
  accountOfWallet,
  type Operation,
  operationFields,
  walletKeysOf,
} from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { pollAgain, stepDrift } from './drifts.ts';
import { explainedBy, observedEvents } from './events.ts';
import { readBaseline } from './expected.ts';
import { release } from './hold.ts';
import {
  type BalanceResult,
  type Baseline,
  type Expectation,
  evaluateBalance,
  expectationOf,
  inclusionOf,
  type ObservedBalance,
  type OperationEffect,
} from './rule.ts';
import { type Drift, findWallet, saveWallet, type Wallet, walletsByKey } from './store.ts';

/** Evaluates one conclusive observation of a wallet. Answers the events to emit. */
export async function evaluateWallet(
  tx: Tx,
  deps: Deps,
  observation: StoredObservation,
  now: Instant,
): Promise<EventDraft[]> {
  const seen = walletRecordOf(observation);
  const key = observation.target.slice('wallet:'.length);
  // The answer is about another wallet.
  if (addressKey(seen.addr) !== key) return [];
  const before = await findWallet(tx, key);
  // An older read never overwrites a newer one; the start of the request counts.
  if (before?.observedAt && before.observedAt >= observation.startedAt) return [];
  const observed = {
    balance: seen.balance,
    startedAt: observation.startedAt,
    endedAt: observation.endedAt,
  };
  const lagged = observation.startedAt - deps.settings.readLagMs;
  const since = Math.min(lagged, before?.observedAt ?? lagged);
  const opensAt = before?.openedAt == null ? { opensAt: lagged } : {};
  const { baseline, drifts } = await readBaseline(
    tx,
    before?.addr ?? seen.addr,
    deps.effectSettings,
    {
      since,
      ...opensAt,
    },
  );
  const expectation = expectationOf(observed, baseline, deps.settings.readLagMs);
  const result = evaluateBalance(seen.balance, expectation);
  const wallet: Wallet = {
    ...(before ?? newWallet(key, seen.addr)),
    status: seen.status,
    observedBalance: seen.balance,
    observedAt: observation.startedAt,
    ledgerAtObservation: baseline.ledger,
    observationId: observation.id,
  };
  const opened = wallet.openedAt !== null;
  const events = observedEvents(before, wallet, result, {
    operations: explainedBy(observed, baseline, result, before),
    at: observation.endedAt,
  });
  const { possible } = expectation;
  await release(tx, deps, before);
  if (opened) {
    const input = { result, drifts, observation, possible, now };
    events.push(...(await applyResult(tx, deps, wallet, input)));
  } else await open(tx, deps, wallet, { expectation, baseline, observed, observation, now });
  if (wallet.quietAt === observation.startedAt) {
    events.push(...(await settle(tx, deps, wallet, { observed, baseline, drifts, now })));
  }
  await saveWallet(tx, wallet);
  return events;
}

function newWallet(key: string, addr: string): Wallet {
  return {
    key,
    addr,
    status: null,
    observedBalance: null,
    observedAt: null,
    openedAt: null,
    quietAt: null,
    ledgerAtObservation: null,
    observationId: null,
    verdict: 'unopened',
    cause: null,
    unquietObservations: 0,
    suspectedAmount: null,
    suspectedAt: null,
  };
}

function walletRecordOf(observation: StoredObservation): {
  addr: string;
  balance: bigint;
  status: number;
} {
  const record = observation.record as Record<string, unknown>;
  return {
    addr: String(record.addr),
    balance: must(wholeOf(record.balance), 'balance of an observation'),
    status: Number(record.status),
  };
}

/**
 * Requests the opening: what the first quiet observation shows beyond executed operations. Until
 * then the wallet is `unopened`: shown, and never in drift.
 */
async function open(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: {
    expectation: Expectation;
    baseline: Baseline;
    observed: ObservedBalance;
    observation: StoredObservation;
    now: Instant;
  },
): Promise<void> {
  const { expectation, baseline, observed, observation, now } = input;
  if (expectation.possible.length > 0 || !expectation.complete) {
    wallet.cause = 'operations are open on it';
    await pollAgain(tx, deps, wallet, { possible: expectation.possible, observation, now });
    return;
  }
  const earliest = Math.min(
    observed.startedAt,
    ...baseline.effects.map(({ operation }) => operation.recordedAt - 1),
  );
  await requestPosting(
    tx,
    {
      id: openingId(wallet.addr),
      kind: 'opening',
      account: accountOfWallet(wallet.addr),
      counter: 'opening',
      amount: observed.balance - expectation.base,
      effectiveAt: earliest,
      effectiveBasis: 'observed',
      requestedBy: 'reconciler',
      reason: 'first observation',
      seen: { at: observed.startedAt, version: baseline.version },
    },
    now,
  );
  Object.assign(wallet, {
    openedAt: now,
    quietAt: observed.startedAt,
    verdict: 'explained',
    cause: null,
    unquietObservations: 0,
  });
}

/** Applies the result to an opened wallet. */
async function applyResult(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: {
    result: BalanceResult;
    drifts: Drift[];
    observation: StoredObservation;
    possible: readonly OperationEffect[];
    now: Instant;
  },
): Promise<EventDraft[]> {
  const { result, drifts, observation, possible, now } = input;
  if (result.result === 'unexplained')
    return stepDrift(tx, deps, wallet, { residual: result.residual, drifts, observation, now });
  if (result.result === 'inconclusive') {
    Object.assign(wallet, { verdict: 'inconclusive', cause: result.cause });
    await pollAgain(tx, deps, wallet, { possible, observation, now });
    return [];
  }
  Object.assign(wallet, {
    verdict: 'explained',
    cause: result.unique ? null : 'several explanations',
    suspectedAmount: null,
    suspectedAt: null,
  });
  if (result.quiet)
    Object.assign(wallet, { quietAt: observation.startedAt, unquietObservations: 0 });
  else await pollAgain(tx, deps, wallet, { possible, observation, now });
  return [];
}

/** Settles the operations that a quiet observation confirms, once their other wallets are too. */
async function settle(
  tx: Tx,
  deps: Deps,
  wallet: Wallet,
  input: { observed: ObservedBalance; baseline: Baseline; drifts: Drift[]; now: Instant },
): Promise<EventDraft[]> {
  const { observed, baseline, drifts, now } = input;
  const lag = deps.settings.readLagMs;
  const confirmed = baseline.effects.filter(
    ({ operation, effect }) =>
      operation.outcome === 'executed' &&
      operation.settledAt === null &&
      inclusionOf(operation, observed, lag) === 'required' &&
      // A drift of the opposite effect says that the service does not show the operation.
      !drifts.some((drift) => drift.amount === -effect && drift.openedAt >= operation.recordedAt),
  );
  const done: Operation[] = [];
  for (const { operation } of confirmed) {
    if (await confirmedOnOtherWallets(tx, deps, wallet, operation)) done.push(operation);
  }
  const cause = `balance of ${wallet.addr} confirms it`;
  const moved = await deps.operations.move(
    tx,
    done.map(({ id }) => ({ id, to: 'settled', at: now, cause, settledAt: now })),
  );
  return moved.map((operation) => ({
    type: 'operation.settled',
    subject: `operation:${operation.id}`,
    occurredAt: now,
    data: operationFields(operation),
  }));
}

/** True when each of its other wallets had a quiet observation that must include it. */
async function confirmedOnOtherWallets(
  tx: Tx,
  { effectSettings, settings }: Deps,
  wallet: Wallet,
  operation: Operation,
): Promise<boolean> {
  const keys = walletKeysOf(operation, effectSettings).filter((key) => key !== wallet.key);
  const others = await walletsByKey(tx, keys);
  const tookEffectBy = operation.effectiveAt ?? operation.recordedAt;
  return keys.every((key) => (others.get(key)?.quietAt ?? 0) > tookEffectBy + settings.readLagMs);
}
