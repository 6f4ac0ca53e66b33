/** The regular reads of the stages and of the API, each as one call on stored history. */
import { search } from '../../../src/daemon/workers/search.ts';
import type { Db, Tx } from '../../../src/db/connect.ts';
import { acquireLease } from '../../../src/db/leases.ts';
import { makeIds } from '../../../src/kernel/ids.ts';
import { systemRandom } from '../../../src/kernel/random.ts';
import { makeMetrics } from '../../../src/kernel/telemetry/metrics.ts';
import { pruneAudit } from '../../../src/keys/audit.ts';
import { listAccounts, listTransactions } from '../../../src/ledger/accounts.ts';
import {
  beginPass,
  countUnposted,
  listDueOperations,
  listOriginals,
  readHead,
  timesPosted,
} from '../../../src/ledger/batch.ts';
import { findFeeRules, listUnderWrongRule } from '../../../src/ledger/fee-rules.ts';
import { openingsOf } from '../../../src/ledger/openings.ts';
import { listMovedGives, listPostedGives } from '../../../src/ledger/operator-wallets.ts';
import { listDueReasons } from '../../../src/ledger/repost.ts';
import { listMovements } from '../../../src/ledger/tokens/movements.ts';
import {
  listObservations,
  listObservationsAround,
  listObservationsBefore,
  listUnprocessed,
  newestScan,
  newestScans,
} from '../../../src/observer/observations.ts';
import { scheduleOpen } from '../../../src/observer/open-operations.ts';
import {
  findCreator,
  listKnownTokens,
  listUnknownMints,
} from '../../../src/observer/scans/scans.ts';
import { listPollActivity } from '../../../src/observer/schedule/minutes.ts';
import {
  claimDue,
  deleteFinished,
  listLastRecords,
  nextDue,
} from '../../../src/observer/targets.ts';
import { lockDuePostings } from '../../../src/operations/due-postings.ts';
import {
  countOpen,
  listOperations,
  listWriteActivity,
  type OperationFilter,
} from '../../../src/operations/lists.ts';
import { listOpenOn, listQueue } from '../../../src/operations/queue/claim.ts';
import { listAbandoned, lockOverdue } from '../../../src/operations/queue/expire.ts';
import { listSends } from '../../../src/operations/queue/sends.ts';
import { findAppNo, listAlike, listSameNumber } from '../../../src/operations/reported/reported.ts';
import * as operations from '../../../src/operations/store.ts';
import { applyTransitions, listTransitions } from '../../../src/operations/transitions.ts';
import {
  countUnnumbered,
  findConsumerLag,
  findTombstone,
  makeConsumers,
  readFeed,
  sequence,
} from '../../../src/outbox/outbox.ts';
import { readAged, removeBodies } from '../../../src/outbox/removal.ts';
import { feeVotes } from '../../../src/reconciler/drifts/fee-rule.ts';
import { listOperatorGives } from '../../../src/reconciler/drifts/recognise.ts';
import { dropResolvedCandidates } from '../../../src/reconciler/resolution.ts';
import {
  knownOf,
  lastBurnUnseen,
  listHeld,
  listUnnumbered,
} from '../../../src/reconciler/unknown/mints.ts';
import {
  expectedBalances,
  firstUnsettledAt,
  listConfirmed,
  listExecutedBetween,
} from '../../../src/reconciler/wallets/expected.ts';
import { positionsOf } from '../../../src/reconciler/wallets/wallet.ts';
import { ROLES } from '../../../src/resources/admin/status.ts';
import {
  countPending,
  findDelivery,
  listAttempts,
  listDeliveries,
} from '../../../src/webhooks/delivery/deliveries.ts';
import { claimDeliveries, planByIndex } from '../../../src/webhooks/delivery/queue.ts';
import { cancelOf } from '../../../src/webhooks/delivery/removal.ts';
import { storeResults } from '../../../src/webhooks/delivery/result-writer.ts';
import { removeDeleted } from '../../../src/webhooks/endpoints/store.ts';
import {
  countAttemptMinutes,
  listAttemptActivity,
} from '../../../src/webhooks/figures/attempt-minutes.ts';
import { readFigures } from '../../../src/webhooks/figures/figures.ts';
import { manualClock } from '../../harness/manual-clock.ts';
import { OPERATOR_ADDR, OPERATOR_NO, userAddr } from '../../tools/bench/history/generate.ts';
import { CONTRACT, ENDPOINT, NOW, OTHER_ENDPOINT } from './stored.ts';

/** Of the stored rows: one from the middle, and one of those at the end that are open. */
export interface Known {
  id: string;
  openId: string;
  txLogNo: bigint;
  txHash: string;
  eventId: string;
  middleAt: number;
  deliveryId: string;
}

export type Read = (db: Db, known: Known) => Promise<unknown>;

const USER = userAddr(7);
const USERS = Array.from({ length: 50 }, (_, n) => userAddr(n));
const ACCOUNTS = USERS.map((addr) => `wallet:${addr}`);
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const NO_TYPES = { types: [], limit: 100 };
const NEVER = new AbortController().signal;
let pulls = 0;
const consumersOf = (db: Db) => {
  const clock = manualClock(NOW);
  return makeConsumers({ db, clock, ids: makeIds(clock, systemRandom) });
};
const inTx =
  (work: (tx: Tx, known: Known) => Promise<unknown>): Read =>
  (db, known) =>
    db.begin((tx) => work(tx, known));
/** A list of the API, with what every list has. */
const list =
  (filter: (known: Known) => Partial<OperationFilter>): Read =>
  (db, known) =>
    listOperations(db, { limit: 50, ...filter(known) });
const deliveries =
  (
    filter:
      | Parameters<typeof listDeliveries>[1]
      | ((known: Known) => Parameters<typeof listDeliveries>[1]),
    before = '',
  ): Read =>
  (db, known) =>
    listDeliveries(db, typeof filter === 'function' ? filter(known) : filter, before, 50, NOW);
const observed = (addr: string) => {
  const at = { startedAt: NOW, endedAt: NOW + 10, opened: true };
  return { key: addr.toLowerCase(), ...at };
};
const SEEN = { ratePerS: null, rateUsedUntil: null, consecutiveFailures: 0, probe: false };
const report = {
  kind: 'give',
  txAppNo: 101n,
  occurredAt: NOW,
  operationId: null,
  reference: null,
  fields: { toAddr: USER, operationNo: 1n, amount: 5n },
};

export const READS: Record<string, Read> = {
  'GET /api/operations': list(() => ({})),
  '… that are open': list(() => ({ open: true })),
  '… of a user that are open': list(() => ({ open: true, addr: USER })),
  '… of a state that most have': list(() => ({ state: 'settled' })),
  '… of a state that few have': list(() => ({ state: 'undecided' })),
  '… of a state that none has': list(() => ({ state: 'failed' })),
  '… of a kind that most have': list(() => ({ kind: 'give' })),
  '… of a kind that none has': list(() => ({ kind: 'burn' })),
  '… of a user': list(() => ({ addr: USER })),
  '… of a wallet without operations': list(() => ({ addr: OPERATOR_ADDR })),
  '… of a contract': list(() => ({ contractId: CONTRACT })),
  '… of a token': list(({ txLogNo: tokenId }) => ({ contractId: CONTRACT, tokenId })),
  '… with a transaction number': list(({ txLogNo }) => ({ txLogNo })),
  '… with a hash': list(({ txHash }) => ({ txHash })),
  '… with an idempotency key': list(({ txLogNo }) => ({ idempotencyKey: `order-${txLogNo}` })),
  '… with a key that none has': list(() => ({ idempotencyKey: 'none' })),
  '… with a reference that none has': list(() => ({ reference: 'none' })),
  '… of an hour long ago': list(({ middleAt: at }) => ({ since: at - 60_000, until: at })),
  '… from the middle': list(({ id }) => ({ before: id })),
  '… of a kind from the middle': list(({ id }) => ({ before: id, kind: 'transfer' })),
  '… of a state from the middle': list(({ id }) => ({ before: id, state: 'settled' })),
  '… of a user from the middle': list(({ id }) => ({ before: id, addr: USER })),
  'one operation': (db, { id }) =>
    Promise.all([
      operations.findOperation(db, id),
      listTransitions(db, id),
      operations.listEffects(db, [id]),
      listSends(db, id),
      listTransactions(db, { operationId: id, limit: 10 }),
    ]),
  'the operations on a token': (db, { txLogNo }) =>
    operations.listForToken(db, CONTRACT, txLogNo, 20),
  'a repeat of an idempotency key': (db, { txLogNo }) =>
    operations.findByIdempotencyKey(db, 'shop', `order-${txLogNo}`),
  'GET /api/events from the start': (db) => readFeed(db, { cursor: '', ...NO_TYPES }),
  '… from the middle of the feed': (db, { txLogNo }) =>
    readFeed(db, { cursor: `${txLogNo}`, ...NO_TYPES }),
  'consumers: a pull': async (db, { txLogNo }) => {
    const consumers = consumersOf(db);
    const name = `c${pulls++}`;
    const input = { name, eventTypes: ['*'], redeliverAfterS: 60, from: `${txLogNo}` };
    const { id } = await consumers.createConsumer(input, 'ann');
    const request = { waitMs: 0, nextEvent: async () => {}, aborted: NEVER };
    await consumers.pull(id, { ...request, limit: 100 });
  },
  '… and how far each is behind': async (db) => {
    const consumers = consumersOf(db);
    await findConsumerLag(db);
    for (const { id } of await consumers.listConsumers({ owner: 'ann', after: '', limit: 10 }))
      await consumers.deleteConsumer(id);
  },
  'DELETE /api/events/{id}/body': inTx(async (tx, { eventId }) => {
    await planByIndex(tx);
    const event = await findTombstone(tx, eventId);
    await cancelOf(tx, event ? await removeBodies(tx, [event], NOW) : [], NOW);
  }),
  'housekeeping: bodies by age': inTx(async (tx, { eventId, middleAt }) => {
    await planByIndex(tx);
    const after = { id: eventId.slice(4), recordedAt: middleAt };
    const query = { types: ['operation.settled'], before: NOW, after, limit: 100 };
    const { due } = await readAged(tx, query);
    await cancelOf(tx, await removeBodies(tx, due, NOW), NOW);
  }),
  'GET /api/deliveries': deliveries({}),
  '… of an endpoint': deliveries({ endpointId: ENDPOINT }),
  '… of an endpoint that none is for': deliveries({ endpointId: `${ENDPOINT.slice(0, -1)}9` }),
  '… of an event': deliveries(({ eventId }) => ({ eventId })),
  '… pending': deliveries({ endpointId: ENDPOINT, state: 'pending' }),
  '… exhausted': deliveries({ endpointId: ENDPOINT, state: 'exhausted' }),
  'one delivery': (db, { deliveryId }) =>
    Promise.all([findDelivery(db, deliveryId, NOW), listAttempts(db, deliveryId, 100)]),
  'GET /api/transactions': (db) => listTransactions(db, { limit: 50 }),
  '… of the account of a user': (db) =>
    listTransactions(db, { account: `wallet:${USER}`, limit: 50 }),
  '… of an account that does not exist': (db) =>
    listTransactions(db, { account: 'wallet:none', limit: 50 }),
  'GET /api/accounts': (db) => listAccounts(db, { limit: 100 }),
  'openings and positions': (db) =>
    Promise.all([
      positionsOf(db, USERS),
      positionsOf(db, [OPERATOR_ADDR]),
      openingsOf(db, ACCOUNTS),
    ]),
  'movements of a token': (db, { txLogNo: tokenId }) =>
    listMovements(db, { contractId: CONTRACT, tokenId }, { limit: 50 }),
  'observations of a wallet': (db, { middleAt }) =>
    Promise.all([
      listObservations(db, `wallet:${USER}`, 20),
      listObservationsBefore(db, `wallet:${USER}`, {
        before: { unchangedSince: middleAt, id: 'obs_1' },
        limit: 20,
      }),
      listObservationsAround(db, `wallet:${USER}`, { from: middleAt, until: NOW, limit: 20 }),
    ]),

  'gateway: the pre-image': (db) => listLastRecords(db, ACCOUNTS),
  'operations: open writes': inTx(async (tx, { openId }) => {
    await operations.listOpen(tx, [openId]);
    await operations.listUnknown(tx, undefined, 100);
    await operations.listUnknownOn(tx, USERS, { openMax: 12, limit: 100 });
    await countOpen(tx, 1_000);
    await listOpenOn(tx, { users: ACCOUNTS, contracts: [CONTRACT] }, 100);
  }),
  'operations: abandoned sends': (db) => listAbandoned(db, NOW, 60_000, 100),
  'operations: the queue': inTx(async (tx) => {
    await listQueue(tx, { now: NOW, except: ['mint'], limit: 100 });
    await lockOverdue(tx, NOW, 100);
  }),
  'operations: a transition': inTx(async (tx, { openId: id }) => {
    const answer = { txAppNo: 101n, txLogNo: 10n ** 12n, answerStatus: 200 };
    const move = { id, to: 'accepted' as const, at: NOW, cause: 'answer', ...answer };
    await applyTransitions(tx, [move], { metrics: makeMetrics() });
  }),
  'operations: not executed ones': (db) =>
    operations.listNotExecuted(db, { key: USER, amount: 5n }, 0, 10),
  'operations: reports': inTx(async (tx, { txLogNo, txHash }) => {
    const one = { ...report, txLogNo, txHash: null };
    const other = { ...report, txLogNo: null, txHash };
    await listSameNumber(tx, [one, other] as never);
    await listAlike(tx, [{ n: 0, report: one as never }]);
    await findAppNo(tx);
  }),
  'ledger: what is due': inTx(async (tx, { id }) => {
    await readHead(tx);
    await listDueOperations(tx, await lockDuePostings(tx, 500));
    const fence = await acquireLease(tx, 'ledger', { id: 'dmn_1' }, NOW, 1_000);
    await beginPass(tx, { name: 'ledger', fence: fence ?? 0n }, 500, tx.sql`false`);
    await timesPosted(tx, [id]);
    await listOriginals(tx, [], []);
    await countUnposted(tx, 1_000);
  }),
  'daemon: the search for work': (db) => search(db, ROLES, NOW),
  'ledger: writes under another fee rule': async (db, { id }) => {
    await findFeeRules(db);
    const feeChanges = [{ from: NOW - DAY_MS, mode: 'deducted' as const }];
    await listUnderWrongRule(db, { feeMode: 'on_top', feeChanges }, 200);
    await listDueReasons(db, [id]);
  },
  'ledger: gives of an operator without a wallet': async (db) => {
    await operations.listUnsettledGives(db, '7', { since: NOW - DAY_MS, after: '' }, 200);
    await listPostedGives(db, '7', { since: NOW - DAY_MS, after: 0n }, 200);
    await listMovedGives(db, USER, { after: 0n, upTo: 1_000_000_000n });
  },
  'reconciler: gives that drifts may be': inTx(async (tx) => {
    // What it reads are gives of this operator, of which it returns none.
    const given = { since: 0, until: NOW, mapped: [`${OPERATOR_NO}`], readLagMs: 1_000 };
    await listOperatorGives(tx, given);
  }),
  'reconciler: votes on the fee rule': (db) => feeVotes(db),
  'observer: the schedule': async (db) => {
    const times = { gapMs: 1_000, readLagMs: 1_000 };
    await scheduleOpen(db, NOW, { since: NOW - DAY_MS }, times);
    await scheduleOpen(db, NOW, { after: { state: '', changedAt: 0, id: '' }, limit: 500 }, times);
    await claimDue(db, NOW, 10, { leaseMs: 10_000, steadyFirst: false });
    await claimDue(db, NOW, 10, { leaseMs: 10_000, steadyFirst: true });
  },
  'observer: the next poll': (db) => nextDue(db),
  'observer: scans': async (db, { txLogNo }) => {
    await listUnknownMints(db, CONTRACT);
    await listKnownTokens(db, CONTRACT, [txLogNo]);
    await newestScan(db, CONTRACT, NOW - DAY_MS);
    await newestScans(db, [CONTRACT]);
  },
  'reconciler: observations': (db) => listUnprocessed(db, NOW, { fresh: 100, failed: 100 }),
  'reconciler: expected balances': (db) =>
    expectedBalances(db, [...USERS, OPERATOR_ADDR].map(observed), 1_000),
  'reconciler: unsettled operations': async (db) => {
    await firstUnsettledAt(db, OPERATOR_ADDR);
    await listConfirmed(db, OPERATOR_ADDR, { before: NOW, readLagMs: 1_000, limit: 100 });
    await listExecutedBetween(db, USER, NOW - DAY_MS, NOW);
  },
  'reconciler: unknown mints': async (db, { txLogNo: tokenId, txHash: hash, middleAt }) => {
    await knownOf(db, CONTRACT, [{ tokenId, hash }]);
    await lastBurnUnseen(db, CONTRACT, middleAt);
    await listUnnumbered(db, CONTRACT, 100);
    await listHeld(db, CONTRACT, [`https://tokens.example/${tokenId}`]);
  },
  'reconciler: the creator in a contract': (db) => findCreator(db, CONTRACT),
  'outbox: the sequencer': async (db) => {
    await sequence(db);
    await countUnnumbered(db, 1_000);
  },
  'webhooks: claims': inTx(async (tx) => {
    const quotas = [ENDPOINT, OTHER_ENDPOINT].map((endpointId) => ({
      endpoint: { ...SEEN, endpointId, ordered: endpointId === OTHER_ENDPOINT },
      n: 8,
    }));
    const claim = { after: '', limit: 100, now: NOW, leaseUntil: NOW + 1_000 };
    await claimDeliveries(tx, { ...claim, quotas });
    await claimDeliveries(tx, { ...claim, quotas: [], served: [ENDPOINT, OTHER_ENDPOINT] });
  }),
  'webhooks: results': inTx(async (tx, { deliveryId }) => {
    const none = { attempt: null, dueAt: null, scheduleStep: 0, outOfOrder: false };
    const states = ['pending', 'cancelled'] as const;
    const results = states.map((state) => ({ id: deliveryId, fence: 9, state, ...none }));
    await storeResults(tx, results, NOW);
  }),
  'housekeeping: what is finished': inTx(async (tx) => {
    await deleteFinished(tx, NOW, 10);
    await dropResolvedCandidates(tx);
    await removeDeleted(tx, NOW, 100);
    await pruneAudit(tx, NOW - 4_000 * DAY_MS);
  }),
  'GET /api/activity': (db) =>
    Promise.all([
      listWriteActivity(db, NOW - HOUR_MS, 60_000),
      listAttemptActivity(db, NOW - HOUR_MS, 60_000),
      listPollActivity(db, NOW - HOUR_MS, 60_000, NOW),
    ]),
  'GET /api/endpoints/{id}/figures': async (db) => {
    await readFigures(db, { step: 'minute', endpointId: ENDPOINT }, NOW);
    await readFigures(db, { step: 'hour', type: 'endpoint.test' }, NOW);
  },
  'webhooks: attempts by the minute': (db) => countAttemptMinutes(db, NOW),
  'webhooks: the backlog': (db) => countPending(db, 1_000),
};
