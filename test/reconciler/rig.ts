/**
 * Journal, ledger, outbox and reconciler over a database of its own, a clock that moves by hand,
 * and looks that are made by hand. Addresses are drawn anew for each story, so that stories share
 * nothing.
 */
import type { Db } from '../../src/db/connect.ts';
import { registerDaemon } from '../../src/db/leases.ts';
import { addressKey } from '../../src/kernel/addresses.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { type Json, parseJson } from '../../src/kernel/json.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import { balancesOf } from '../../src/ledger/ledger.ts';
import { addTargets, recordObservation } from '../../src/observer/store.ts';
import { type TargetRef, targetName, toTarget } from '../../src/observer/targets.ts';
import {
  type Conclusion,
  type EffectSettings,
  findOperation,
  type Kind,
  makeOperations,
  type Operations,
  type WriteFields,
} from '../../src/operations/operations.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';
import { makeReconciler, type ReconcilerSettings } from '../../src/reconciler/reconciler.ts';
import { findWallet, listOpenDrifts } from '../../src/reconciler/wallets/store.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { openLedger, PLAIN, runDry, START } from '../ledger/fixture.ts';

export const SETTINGS: ReconcilerSettings = {
  steadyMs: 60_000,
  pendingMinMs: 1_000,
  pendingMaxMs: 30_000,
  readLagMs: 1_000,
  quiescenceMs: 30_000,
  undecidedAfterMs: 600_000,
};

export type Rig = Awaited<ReturnType<typeof openRig>>;

interface EventRow {
  type: string;
  subject: string;
  seq: number;
  data: Record<string, Json>;
}

let rigs = 0;

export async function openRig(db: Db, given: { books?: EffectSettings; name?: string } = {}) {
  const { books = PLAIN, name = `dmn_${++rigs}` } = given;
  const clock = manualClock(START);
  const ids = makeIds(clock, seededRandom(rigs * 7_919 + 1));
  const outbox = makeOutbox({ clock, ids, fanOut: async () => {} });
  const daemon = await registerDaemon(db, name, clock.now(), 1e12);
  const operations = makeOperations({ db, clock, ids, daemon, outbox });
  const ledger = await openLedger({ db, clock, books, daemonId: `${name}_ledger` });
  const reconcilerOf = async (id: string, told = outbox) =>
    makeReconciler({
      ...{ db, ids, operations, books, outbox: told, settings: SETTINGS },
      daemon: id === name ? daemon : await registerDaemon(db, id, clock.now(), 1e12),
    });
  const reconciler = await reconcilerOf(name);
  const watch = (ref: TargetRef) => addTargets(db, [toTarget(ref)], clock.now());

  /** Records what a look at an object brought; it begins now and ends 10 ms later. */
  async function put(ref: TargetRef, result: 'seen' | 'absent' | 'inconclusive', record: Json) {
    await watch(ref);
    const startedAt = clock.now();
    clock.advance(10);
    const row = {
      ...{ id: ids.next('obs'), target: targetName(ref), kind: ref.kind, result, record },
      ...{ startedAt, endedAt: clock.now(), cause: null },
    };
    await db.begin((tx) => recordObservation(tx, row, clock.now() + SETTINGS.steadyMs));
    return row;
  }

  const rig = {
    name,
    db,
    books,
    clock,
    ids,
    operations,
    ledger,
    reconciler,
    reconcilerOf,
    watch,
    /** A look at a wallet that is not processed yet. */
    putObservation: (addr: string, balance: bigint, status = 1) =>
      put({ kind: 'wallet', addr }, 'seen', { addr, balance, status }),
    put,
    async judge() {
      let processed = 0;
      for (;;) {
        const pass = await reconciler.runOnce(clock.now());
        processed += pass.processed;
        if (!pass.more) return processed;
      }
    },
    wait: (ms: number) => waitFor(clock, rig.judge, ms),
    post: () => runDry(ledger, clock),
    /** A second passes, a look is made and processed, and what it wants is posted. */
    async observation(addr: string, balance: bigint, afterMs = 2_000) {
      clock.advance(afterMs);
      const row = await rig.putObservation(addr, balance);
      await rig.judge();
      return row;
    },
    ...writesOf(operations, clock),
    ...readsOf(db, clock),
  };
  return rig;
}

/** Time passes while somebody judges, whether or not there is something to judge. */
async function waitFor(clock: ManualClock, judge: () => Promise<number>, ms: number) {
  for (let left = ms; left > 0; left -= 50_000) {
    clock.advance(Math.min(left, 50_000));
    await judge();
  }
}

/** What a gateway would write down, by hand. */
function writesOf(operations: Operations, clock: ManualClock) {
  const writes = {
    /** Records a write as the gateway does; it is on its way then. */
    async send(kind: Kind, fields: WriteFields, preImage: Json = null) {
      clock.advance(10);
      const recorded = await operations.record({
        ...{ kind, fields, preImage, owner: 'app', keyId: 'key_1', idempotencyKey: null },
        ...{ fingerprint: 'f', reference: null, method: 'POST', path: '/v1', contentType: null },
        body: new Uint8Array(),
        ...{ sendWithinMs: 5_000, expiresAt: null, queue: false, dayLimit: null },
      });
      clock.advance(10);
      return 'id' in recorded ? recorded.id : '';
    },
    conclude: (operationId: string, outcome: Conclusion['outcome']) =>
      operations.conclude({ operationId, outcome, answer: undefined, endedAt: clock.now() }),
    accept: (id: string, txLogNo = BigInt(++numbers)) =>
      writes.conclude(id, { class: 'accepted', txAppNo: 1n, txLogNo }),
    acceptHash: (id: string, txHash: string) => writes.conclude(id, { class: 'accepted', txHash }),
    lose: (id: string) => writes.conclude(id, { class: 'unknown', cause: 'reset' }),
  };
  return writes;
}

/** What stands in the database. */
function readsOf(db: Db, clock: ManualClock) {
  const reads = {
    stateOf: async (id: string) => (await findOperation(db, id))?.state,
    operation: (id: string) => findOperation(db, id),
    wallet: (addr: string) => findWallet(db, addressKey(addr)),
    drifts: (addr: string) => listOpenDrifts(db, addressKey(addr)),
    async balance(addr: string) {
      const account = `wallet:${addr}`;
      return (await balancesOf(db, [account])).get(account)?.balance;
    },
    /** When the next look at an object is due, from now. */
    async dueInMs(ref: TargetRef) {
      const rows = await db.sql<{ at: number }[]>`
        select next_poll_at as at from tallyhook.targets where name = ${targetName(ref)}`;
      return (rows[0]?.at ?? 0) - clock.now();
    },
    async events(subject: string): Promise<EventRow[]> {
      const rows = await db.sql<{ type: string; subject: string; seq: bigint; body: string }[]>`
        select type, subject, subject_seq as seq, body from tallyhook.events
        where subject = ${subject} order by subject_seq`;
      return rows.map(({ body, seq, ...row }) => {
        const { data } = parseJson(body) as { data: Record<string, Json> };
        return { ...row, seq: Number(seq), data };
      });
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

/** An address that no other story has. */
export function freshAddr(): string {
  return `0xF${String(++addresses).padStart(39, '0')}`;
}
