/**
 * One look at a wallet, judged: in one transaction the accepted state, the drift, the wanted
 * opening, the operations that settle, and the events of all that. Whatever the look cannot decide
 * is looked at again.
 */
import type { Tx } from '../../db/connect.ts';
import { addressKey } from '../../kernel/addresses.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import { must } from '../../kernel/assert.ts';
import type { Instant } from '../../kernel/clock.ts';
import { openingId, want } from '../../ledger/ledger.ts';
import type { StoredObservation } from '../../observer/observer.ts';
import {
  accountOfWallet,
  type Operation,
  type Operations,
  operationFields,
  walletKeysOf,
} from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Context } from '../deps.ts';
import { pollAgain, stepDrift } from './drifts.ts';
import { explainedBy, observedEvents } from './events.ts';
import { readStanding } from './expected.ts';
import { release } from './hold.ts';
import {
  type Expectation,
  expectationOf,
  judgeBalance,
  needOf,
  type Part,
  type Sight,
  type Standing,
  type WalletVerdict,
} from './rule.ts';
import { type Drift, findWallet, saveWallet, type Wallet, walletsByKey } from './store.ts';

/**
 * Judges one conclusive look at a wallet inside the given transaction. Answers the events to emit.
 */
export async function judgeWallet(
  tx: Tx,
  context: Context,
  observation: StoredObservation,
  now: Instant,
): Promise<EventDraft[]> {
  const seen = walletRecordOf(observation);
  const key = observation.target.slice('wallet:'.length);
  // An answer about another wallet says nothing about this one.
  if (addressKey(seen.addr) !== key) return [];
  const before = await findWallet(tx, key);
  // An older read never overwrites a newer one: the start of the request decides.
  if (before?.observedAt && before.observedAt >= observation.startedAt) return [];
  const sight = {
    balance: seen.balance,
    startedAt: observation.startedAt,
    endedAt: observation.endedAt,
  };
  const lagged = observation.startedAt - context.settings.readLagMs;
  const since = Math.min(lagged, before?.observedAt ?? lagged);
  const opensAt = before?.openedAt == null ? { opensAt: lagged } : {};
  const { standing, drifts } = await readStanding(tx, before?.addr ?? seen.addr, context.books, {
    since,
    ...opensAt,
  });
  const expectation = expectationOf(sight, standing, context.settings.readLagMs);
  const verdict = judgeBalance(seen.balance, expectation);
  const wallet: Wallet = {
    ...(before ?? newWallet(key, seen.addr)),
    status: seen.status,
    observedBalance: seen.balance,
    observedAt: observation.startedAt,
    ledgerAtObservation: standing.ledger,
    observationId: observation.id,
  };
  const opened = wallet.openedAt !== null;
  const events = observedEvents(before, wallet, verdict, {
    operations: explainedBy(sight, standing, verdict, before),
    at: observation.endedAt,
  });
  const { optional } = expectation;
  await release(tx, context, before);
  if (opened) {
    const given = { verdict, drifts, observation, optional, now };
    events.push(...(await takeVerdict(tx, context, wallet, given)));
  } else await open(tx, context, wallet, { expectation, standing, sight, observation, now });
  if (wallet.quietAt === observation.startedAt) {
    events.push(...(await settle(tx, context, wallet, { sight, standing, drifts, now })));
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
    balance: must(wholeOf(record.balance), 'balance of a look'),
    status: Number(record.status),
  };
}

/**
 * First sight: the opening is what the look shows beyond our own executed writes. Only a clean look
 * can say that; until then the wallet is `unopened`, shown, and never in drift.
 */
async function open(
  tx: Tx,
  context: Context,
  wallet: Wallet,
  given: {
    expectation: Expectation;
    standing: Standing;
    sight: Sight;
    observation: StoredObservation;
    now: Instant;
  },
): Promise<void> {
  const { expectation, standing, sight, observation, now } = given;
  if (expectation.optional.length > 0 || !expectation.complete) {
    wallet.cause = 'writes are open on it';
    await pollAgain(tx, context, wallet, { optional: expectation.optional, observation, now });
    return;
  }
  const earliest = Math.min(
    sight.startedAt,
    ...standing.parts.map((p) => p.operation.recordedAt - 1),
  );
  await want(
    tx,
    {
      id: openingId(wallet.addr),
      kind: 'opening',
      account: accountOfWallet(wallet.addr),
      counter: 'opening',
      amount: sight.balance - expectation.base,
      effectiveAt: earliest,
      effectiveBasis: 'observed',
      requestedBy: 'reconciler',
      reason: 'first sight',
      seen: { at: sight.startedAt, version: standing.version },
    },
    now,
  );
  Object.assign(wallet, {
    openedAt: now,
    quietAt: sight.startedAt,
    verdict: 'explained',
    cause: null,
    unquietObservations: 0,
  });
}

/** What the verdict makes of an opened wallet: explained, off (drift), or to be looked at again. */
async function takeVerdict(
  tx: Tx,
  context: Context,
  wallet: Wallet,
  given: {
    verdict: WalletVerdict;
    drifts: Drift[];
    observation: StoredObservation;
    optional: readonly Part[];
    now: Instant;
  },
): Promise<EventDraft[]> {
  const { verdict, drifts, observation, optional, now } = given;
  if (verdict.verdict === 'off')
    return stepDrift(tx, context, wallet, { residual: verdict.residual, drifts, observation, now });
  if (verdict.verdict === 'inconclusive') {
    Object.assign(wallet, { verdict: 'inconclusive', cause: verdict.cause });
    await pollAgain(tx, context, wallet, { optional, observation, now });
    return [];
  }
  Object.assign(wallet, {
    verdict: 'explained',
    cause: verdict.unique ? null : 'several explanations',
    suspectedAmount: null,
    suspectedAt: null,
  });
  if (verdict.quiet)
    Object.assign(wallet, { quietAt: observation.startedAt, unquietObservations: 0 });
  else await pollAgain(tx, context, wallet, { optional, observation, now });
  return [];
}

/**
 * Ends the writes that this clean look confirms, once every other wallet of theirs is confirmed
 * too.
 */
async function settle(
  tx: Tx,
  context: Context,
  wallet: Wallet,
  given: { sight: Sight; standing: Standing; drifts: Drift[]; now: Instant },
): Promise<EventDraft[]> {
  const { sight, standing, drifts, now } = given;
  const lag = context.settings.readLagMs;
  const confirmed = standing.parts.filter(
    ({ operation, effect }) =>
      operation.outcome === 'executed' &&
      operation.settledAt === null &&
      needOf(operation, sight, lag) === 'must' &&
      // A drift that takes back just this write says that the service does not show it.
      !drifts.some((drift) => drift.amount === -effect && drift.openedAt >= operation.recordedAt),
  );
  const done: Operation[] = [];
  for (const { operation } of confirmed) {
    if (await confirmedElsewhere(tx, context, wallet, operation)) done.push(operation);
  }
  return settleOperations(
    tx,
    context.operations,
    done,
    now,
    `balance of ${wallet.addr} confirms it`,
  );
}

/** True when every other observed wallet of the write had a clean look that must show it. */
async function confirmedElsewhere(
  tx: Tx,
  { books, settings }: Context,
  wallet: Wallet,
  operation: Operation,
): Promise<boolean> {
  const keys = walletKeysOf(operation, books).filter((key) => key !== wallet.key);
  const others = await walletsByKey(tx, keys);
  const tookEffectBy = operation.effectiveAt ?? operation.recordedAt;
  return keys.every((key) => (others.get(key)?.quietAt ?? 0) > tookEffectBy + settings.readLagMs);
}

/** Moves operations to `settled`; answers their events. */
export async function settleOperations(
  tx: Tx,
  operations: Operations,
  settled: readonly Operation[],
  now: Instant,
  cause: string,
): Promise<EventDraft[]> {
  const moved = await operations.move(
    tx,
    settled.map(({ id }) => ({ id, to: 'settled', at: now, cause, settledAt: now })),
  );
  return moved.map((operation) => ({
    type: 'operation.settled',
    subject: `operation:${operation.id}`,
    occurredAt: now,
    data: operationFields(operation),
  }));
}
