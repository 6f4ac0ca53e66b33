/**
 * Operations, ledger, outbox and reconciler over a test database, with a manual clock and
 * observations that the test stores. Each test uses addresses of its own.
 */
import { expect } from 'vitest';
import type { Db } from '../../src/db/connect.ts';
import { keepAlive, registerDaemon } from '../../src/db/leases.ts';
import { addressKey } from '../../src/kernel/addresses.ts';
import { must } from '../../src/kernel/errors.ts';
import { type Ids, makeIds } from '../../src/kernel/ids.ts';
import { type Json, parseJson } from '../../src/kernel/json.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';
import { makeMetrics } from '../../src/kernel/telemetry/metrics.ts';
import { plannedAt, recordObservation } from '../../src/observer/observations.ts';
import { makePendingPolls } from '../../src/observer/schedule/pending.ts';
import { addTargets, type TargetRef, targetName, toTarget } from '../../src/observer/targets.ts';
import {
  type Conclusion,
  type EffectSettings,
  findOperation,
  type Kind,
  makeOperations,
  makeReportedOperations,
  type Operations,
  operationsDefaults,
  type WriteFields,
} from '../../src/operations/operations.ts';
import { makeOutbox, type Outbox } from '../../src/outbox/outbox.ts';
import { listOpenDrifts } from '../../src/reconciler/drifts/drift.ts';
import {
  makeReconciler,
  type Reconciler,
  type ReconcilerSettings,
} from '../../src/reconciler/reconciler.ts';
import { findWallet } from '../../src/reconciler/wallets/wallet.ts';
import { balancesOf } from '../harness/books.ts';
import { useDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { writeOf } from '../ledger/builders.ts';
import { openLedger, PLAIN, runDry, START } from '../ledger/fixture.ts';
import { SETTINGS } from './builders.ts';

export type Rig = Awaited<ReturnType<typeof openRig>>;

interface EventRow {
  type: string;
  subject: string;
  seq: number;
  data: Record<string, Json>;
}

let rigs = 0;

/** A rig on a new database, which is dropped after the test file. */
export async function openRig({
  books = PLAIN,
  settings,
}: {
  books?: EffectSettings;
  settings?: Partial<ReconcilerSettings>;
} = {}) {
  const name = `dmn_${++rigs}`;
  const database = await useDatabase();
  const { db } = database;
  const clock = manualClock(START);
  const ids = makeIds(clock, seededRandom(rigs * 7_919 + 1));
  const metrics = makeMetrics();
  const outbox = makeOutbox({ clock, ids });
  const daemon = await registerDaemon(db, name, clock.now(), 1e12);
  const operations = makeOperations({
    db,
    clock,
    ids,
    daemon,
    outbox,
    metrics,
    prove: () => keepAlive(db, daemon, clock.now(), 1e12),
    // Conflicting writes are sent at once, marked ambiguous.
    settings: { ...operationsDefaults, conflictWaitMs: 0, effects: books },
  });
  const ledger = await openLedger({ db, clock, books, daemonId: `${name}_ledger` });
  const pendingPolls = makePendingPolls({
    db,
    clock,
    settings: SETTINGS,
    pricing: async () => ({ price: 1 }),
  });
  const reconcilerOf = async (id: string, emitting: Outbox = outbox) =>
    makeReconciler({
      random: seededRandom(1),
      log: makeLog('silent'),
      pendingPolls,
      db,
      ids,
      operations,
      effectSettings: books,
      outbox: emitting,
      settings: { ...SETTINGS, ...settings },
      daemon: id === name ? daemon : await registerDaemon(db, id, clock.now(), 1e12),
    });
  const reconciler = await reconcilerOf(name);

  const put = observationsOf(db, ids, clock);
  const reported = makeReportedOperations({
    db,
    clock,
    ids,
    outbox,
    metrics,
    effectSettings: books,
    includedInOpenings: async () => new Set(),
    observe: async () => {},
    onRecorded: () => {},
  });

  return {
    name,
    database,
    clock,
    ids,
    outbox,
    metrics,
    operations,
    reconciler,
    reconcilerOf,
    put,
    ...stepsOf({ clock, reconciler, ledger, put }),
    ...writesOf(operations, clock),
    ...readsOf(db, clock),
    reported,
    /** Reports that an unknown operation was executed when it was sent. */
    async report(operationId: string) {
      const operation = must(await findOperation(db, operationId), 'operation');
      const { kind, sentAt } = operation;
      const report = {
        kind: kind as 'transfer',
        txAppNo: 1n,
        txLogNo: BigInt(++numbers),
        txHash: null,
        occurredAt: sentAt ?? 0,
        reference: null,
        operationId,
        distinct: false,
        body: '{}',
        fields: operation,
      };
      return reported.report([report], { owner: 'other', keyId: 'key_2' });
    },
  };
}

/** How time passes: observations are stored and processed, and what is due is posted. */
function stepsOf(stages: {
  clock: ManualClock;
  reconciler: Reconciler;
  ledger: Parameters<typeof runDry>[0];
  put: ReturnType<typeof observationsOf>;
}) {
  const { clock, reconciler, ledger, put } = stages;
  const rig = {
    putObservation: (addr: string, balance: bigint) =>
      put({ kind: 'wallet', addr }, 'seen', { addr, balance, status: 1 }),
    /** Processes all stored observations; answers how many. */
    async process() {
      let processed = 0;
      for (;;) {
        const pass = await reconciler.runOnce(clock.now());
        processed += pass.processed;
        if (!pass.more) return processed;
      }
    },
    /** Lets time pass while the reconciler runs. */
    async wait(ms: number) {
      for (let left = ms; left > 0; left -= 50_000) {
        clock.advance(Math.min(left, 50_000));
        await rig.process();
      }
    },
    passQuiescence: () => clock.advance(5_000 + SETTINGS.quiescenceMs + SETTINGS.readLagMs),
    post: () => runDry(ledger, clock),
    /** Posts what is due, observes a wallet and processes the observation. */
    async observe(addr: string, balance: bigint, afterMs = 2_000) {
      clock.advance(afterMs);
      await rig.post();
      await rig.putObservation(addr, balance);
      await rig.process();
    },
    /** Observes wallets one after the other, 2 s apart. */
    async observeAll(...balances: (readonly [addr: string, balance: bigint])[]) {
      for (const [addr, balance] of balances) await rig.observe(addr, balance);
    },
    /** Observes one wallet several times, 2 s apart. */
    async observeSeries(addr: string, ...balances: bigint[]) {
      for (const balance of balances) await rig.observe(addr, balance);
    },
    /** A new wallet with this opening. */
    async opened(balance: bigint, addr = freshAddr()) {
      await rig.observe(addr, balance);
      await rig.post();
      return addr;
    },
  };
  return rig;
}

/** Stores observations that begin now and end 10 ms later. */
function observationsOf(db: Db, ids: Ids, clock: ManualClock) {
  return async (
    ref: TargetRef,
    result: 'seen' | 'absent' | 'inconclusive',
    record: Json,
    startedAt = clock.now(),
  ) => {
    await addTargets(db, [toTarget(ref)], clock.now());
    clock.advance(10);
    const row = {
      id: ids.next('obs'),
      target: targetName(ref),
      kind: ref.kind,
      result,
      record,
      startedAt,
      endedAt: clock.now(),
      cause: null,
    };
    await db.begin((tx) => recordObservation(tx, row, plannedAt(clock.now() + SETTINGS.steadyMs)));
    return row;
  };
}

/** Records writes and their answers as the gateway does. */
function writesOf(operations: Operations, clock: ManualClock) {
  const writes = {
    async send(kind: Kind, fields: WriteFields, preImage: Json = null, queue = false) {
      clock.advance(10);
      const expiresAt = queue ? clock.now() + 86_400_000 : null;
      const asked = { kind, fields, preImage, sendWithinMs: 5_000, queue, expiresAt };
      const recorded = await operations.record(writeOf(asked));
      clock.advance(10);
      if ('queued' in recorded) return recorded.queued.id;
      return 'id' in recorded ? recorded.id : '';
    },
    queue: (kind: Kind, fields: WriteFields) => writes.send(kind, fields, null, true),
    give: (toAddr: string, amount: bigint, operationNo = 7n) =>
      writes.send('give', { operationNo, toAddr, amount }),
    transfer: (fromAddr: string, toAddr: string, amount: bigint, feeAmount = 0n) =>
      writes.send('transfer', { fromAddr, toAddr, amount, feeAmount }),
    conclude: (operationId: string, outcome: Conclusion['outcome']) =>
      operations.conclude({ operationId, outcome, answer: undefined, endedAt: clock.now() }),
    accept: (id: string, txLogNo = BigInt(++numbers)) =>
      writes.conclude(id, { class: 'accepted', txAppNo: 1n, txLogNo }),
    acceptHash: (id: string, txHash: string) => writes.conclude(id, { class: 'accepted', txHash }),
    /** The answer is lost: the operation becomes unknown. */
    lose: (id: string) => writes.conclude(id, { class: 'unknown', cause: 'reset' }),
  };
  return writes;
}

function readsOf(db: Db, clock: ManualClock) {
  const reads = {
    stateOf: async (id: string) => (await findOperation(db, id))?.state,
    operation: (id: string) => findOperation(db, id),
    wallet: (addr: string) => findWallet(db, addressKey(addr)),
    drifts: (addr: string) => listOpenDrifts(db, [addressKey(addr)]),
    driftAmounts: async (addr: string) => (await reads.drifts(addr)).map(({ amount }) => amount),
    async balance(addr: string) {
      const account = `wallet:${addr}`;
      return (await balancesOf(db, [account])).get(account)?.balance;
    },
    /** Milliseconds from now until the next poll of a target. */
    async dueInMs(ref: TargetRef) {
      const rows = await db.sql<{ at: number }[]>`
        select next_poll_at as at from tallyhook.targets where name = ${targetName(ref)}`;
      return (rows[0]?.at ?? 0) - clock.now();
    },
    async events(subject: string): Promise<EventRow[]> {
      const rows = await db.sql<{ type: string; subject: string; seq: bigint; body: string }[]>`
        select type, subject, subject_seq as seq, tallyhook.event_body(events) as body
        from tallyhook.events
        where subject = ${subject} order by subject_seq`;
      return rows.map(({ body, seq, ...row }) => {
        const { data } = parseJson(body) as { data: Record<string, Json> };
        return { ...row, seq: Number(seq), data };
      });
    },
    /** The state of an operation and the types of its events. */
    async endOf(id: string) {
      const events = await reads.events(`operation:${id}`);
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
      return {
        state: await reads.stateOf(id),
        types: events.map(({ type }) => type.split('.')[1]),
      };
    },
    eventsOf: (addr: string) => reads.events(`wallet:${addressKey(addr)}`),
    async typesOf(addr: string) {
      return (await reads.eventsOf(addr)).map(({ type }) => type);
    },
  };
  return reads;
}

let numbers = 0;
let addresses = 0;

/** An address that no other test uses. */
export function freshAddr(): string {
  return `0xF${String(++addresses).padStart(39, '0')}`;
}
