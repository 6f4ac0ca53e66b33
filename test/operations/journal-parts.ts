/** A journal over a clone of the database, with an outbox, on a clock of the test. */

import type { Db, Tx } from '../../src/db/connect.ts';
import { registerDaemon } from '../../src/db/leases.ts';
import { DatabaseError } from '../../src/db/sqlstate.ts';
import type { pause } from '../../src/kernel/clock.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { addDuePostings } from '../../src/ledger/ledger.ts';
import {
  type Conclusion,
  findOperation,
  makeOperations,
  type NewWrite,
  type Operations,
  type OperationsSettings,
  operationsDefaults,
  type Recorded,
} from '../../src/operations/operations.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';

export const ALIVE_MS = 15_000;
export const ALICE = '0xA11CE'.padEnd(42, '0');

export interface OperationsDeps {
  operations: Operations;
  clock: ManualClock;
  daemonId: string;
  /** Commits begun so far. */
  begun(): number;
}

/** Operator 1 has a wallet of ours; whatever else is named belongs to users. */
export const OPERATOR = '0x0E'.padEnd(42, 'f');
export const withBooks = {
  effects: { feeMode: 'on_top' as const, operators: new Map([['1', OPERATOR]]) },
};

let wallets = 0;
/** The address of a wallet that nobody wrote to yet. */
export const freshWallet = () => `0xAb${String(++wallets).padStart(38, '0')}`;

let daemons = 0;

/** The journal of one more daemon. `fanOut` runs inside each commit that emits. */
export async function openOperations(
  db: Db,
  given: {
    clock?: ManualClock;
    fanOut?: (tx: Tx) => Promise<void>;
    settings?: Partial<OperationsSettings>;
    pause?: typeof pause;
  } = {},
): Promise<OperationsDeps> {
  const { clock = manualClock(), fanOut = async () => {} } = given;
  const ids = makeIds(clock, systemRandom);
  daemons++;
  const daemon = await registerDaemon(db, `dmn_${daemons}`, clock.now(), ALIVE_MS);
  let count = 0;
  const counted: Db = {
    ...db,
    get sql() {
      return db.sql;
    },
    get orm() {
      return db.orm;
    },
    begin(work, isolation) {
      count++;
      return db.begin(work, isolation);
    },
    single(work, deadlineMs) {
      count++;
      return db.single(work, deadlineMs);
    },
  };
  const outbox = makeOutbox({ clock, ids, fanOut });
  // Alice's wallet stands behind an operator unless a case says otherwise: nothing conflicts on it.
  const own = { feeMode: 'on_top' as const, operators: new Map([['99', ALICE]]) };
  const settings = { ...operationsDefaults, effects: own, ...given.settings };
  const waits = given.pause ? { pause: given.pause } : {};
  const operations = makeOperations({
    db: counted,
    clock,
    ids,
    daemon,
    outbox,
    addDuePostings,
    settings,
    ...waits,
  });
  return { operations, clock, daemonId: daemon.id, begun: () => count };
}

/** Loses the answer of the next commit of an intent, after it happened. */
export function losing(db: Db): Db {
  let lost = false;
  return {
    ...db,
    get sql() {
      return db.sql;
    },
    async single(work) {
      const done = await db.single(work);
      if (lost) return done;
      lost = true;
      throw new DatabaseError('CONNECTION_CLOSED', undefined, undefined);
    },
  };
}

/** A give of 10 to Alice; what a case is about, it names. */
export function write(more: Partial<NewWrite> = {}): NewWrite {
  return {
    kind: 'give',
    owner: 'app',
    keyId: 'key_1',
    idempotencyKey: null,
    fingerprint: 'f',
    reference: null,
    method: 'POST',
    path: '/v1/app/token/operations/1/give',
    contentType: 'application/json',
    body: Buffer.from('{"amount":10}'),
    fields: { toAddr: ALICE, operationNo: 1n, amount: 10n, reasonType: 'gift' },
    preImage: null,
    sendWithinMs: 30_000,
    expiresAt: null,
    queue: false,
    dayLimit: null,
    ...more,
  };
}

/** Records a write that nothing holds. */
export async function recorded(
  operations: Operations,
  more: Partial<NewWrite> = {},
): Promise<string> {
  const result = await operations.record(write(more));
  if ('held' in result) throw new Error(`held by ${result.held.operation.id}`);
  if ('queued' in result) return result.queued.id;
  return result.id;
}

type Class = Conclusion['outcome']['class'];
const ANSWERS: { [C in Class]: Extract<Conclusion['outcome'], { class: C }> } = {
  accepted: { class: 'accepted', txAppNo: 7n, txLogNo: 2n ** 70n },
  rejected: { class: 'rejected', status: 406, code: '198', message: 'balance too low' },
  unavailable: { class: 'unavailable', reason: 'maintenance' },
  not_sent: { class: 'not_sent', cause: 'connection_refused' },
  unknown: { class: 'unknown', cause: 'reset' },
};

/** What came of a send, by its class. */
export function conclusion(
  operationId: string,
  cls: Class,
  endedAt: number,
  more: object = {},
): Conclusion {
  const answered = cls === 'accepted' || cls === 'rejected';
  return {
    operationId,
    outcome: { ...ANSWERS[cls], ...more },
    answer: answered
      ? { status: 200, headers: [['content-type', 'x']], body: Buffer.from('"answer"') }
      : undefined,
    endedAt,
  };
}

/** What the database holds of an operation, and what was told of it. */
export const readBack = {
  stateOf: async (db: Db, id: string) => (await findOperation(db, id))?.state,
  async eventsOf(owner: Db, id: string) {
    const rows = await owner.sql<{ type: string; body: string }[]>`
      select type, body from tallyhook.events where subject = ${`operation:${id}`}
      order by subject_seq`;
    return rows.map(({ type, body }) => ({ type, ...JSON.parse(body).data }));
  },
};

/** Ends what earlier cases left in the request queue. */
export async function clearQueue(owner: Db): Promise<void> {
  await owner.sql`
    update tallyhook.operations set state = 'cancelled' where state in ('queued', 'sending')`;
}

/** The id of a write that was recorded in the request queue. */
export function queuedId(recorded: Recorded): string {
  if (!('queued' in recorded)) throw new Error('the write was not queued');
  return recorded.queued.id;
}
