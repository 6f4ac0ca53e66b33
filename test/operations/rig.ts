/**
 * Operations of two daemons on one database and one manual clock: `useOperations` opens them for a
 * test file, and `write` and `conclusion` make what is given to them.
 */

import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { WRITER } from '../../src/db/access/roles.ts';
import { connect, type Db } from '../../src/db/connect.ts';
import { DatabaseError } from '../../src/db/sqlstate.ts';
import type { Instant } from '../../src/kernel/clock.ts';
import {
  type Conclusion,
  findOperation,
  type Move,
  type NewWrite,
  type Operations,
  type OperationsSettings,
  type Recorded,
  type State,
} from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { listMisplaced, refillOpen } from '../harness/open-operations.ts';
import { openStages } from '../harness/stages.ts';
import { writeOf } from '../ledger/builders.ts';

export const ALIVE_MS = 15_000;
/** How long a write waits for a conflicting one, and how often other daemons' writes are polled. */
export const WAIT_MS = 2_000;
export const POLL_MS = 75;
const TTL_MS = 3_600_000;

/** The wallet of operator 1, who gives. */
export const OPERATOR = '0x0E'.padEnd(42, 'f');
/** A wallet of our own too: writes to it never conflict. */
const ALICE = '0xA11CE'.padEnd(42, '0');
const EFFECTS = {
  feeMode: 'on_top' as const,
  operators: new Map([
    ['1', OPERATOR],
    ['99', ALICE],
  ]),
};

export interface DaemonOptions {
  settings?: Partial<OperationsSettings>;
  prove?: () => Promise<unknown>;
}

export interface TestDaemon {
  id: string;
  operations: Operations;
  /** Commits begun so far. */
  begun(): number;
}

interface Opened {
  database: TestDatabase;
  clock: ManualClock;
  first: TestDaemon;
  /** A daemon with connections of its own. */
  other: TestDaemon;
}
export type Rig = Opened & ReturnType<typeof actionsOf>;

/**
 * Opens a database for the tests of a file, and before each test two daemons with a new clock.
 * What a test leaves in the request queue is cancelled.
 */
export function useOperations(settings: Partial<OperationsSettings> = {}): Rig {
  const opened = {} as Opened;
  const rig = Object.assign(opened, actionsOf(opened));
  let pool: Db;
  beforeAll(async () => {
    rig.database = await createDatabase();
    pool = connect({ url: rig.database.url, role: WRITER, max: 6 });
  });
  beforeEach(async () => {
    rig.clock = manualClock();
    rig.first = await rig.open({ settings });
    rig.other = await rig.open({ settings }, pool);
  });
  afterEach(async () => {
    expect(await listMisplaced(rig.database.owner)).toEqual([]);
    await rig.database.owner.sql`
      update tallyhook.operations set state = 'cancelled' where state in ('queued', 'sending')`;
    await refillOpen(rig.database.owner);
  });
  afterAll(async () => {
    await pool?.end();
    await rig.database?.drop();
  });
  return rig;
}

function actionsOf(rig: Opened) {
  const moveAll = (moves: readonly Move[]) =>
    rig.database.db.begin((tx) => rig.first.operations.move(tx, moves));
  return {
    moveAll,
    /** One more daemon. */
    async open(options: DaemonOptions = {}, db = rig.database.db): Promise<TestDaemon> {
      const { clock } = rig;
      const { counted, begun } = counting(db);
      const settings = { effects: EFFECTS, ...options.settings };
      const { prove } = options;
      const deps = { clock, pause: clock.pause, aliveMs: ALIVE_MS, settings, prove };
      const { operations, daemon } = await openStages(counted, deps);
      return { id: daemon.id, operations, begun };
    },
    /** Lets all daemons live on, at any time of the clock. */
    keepAlive: () =>
      rig.database.owner.sql`update tallyhook.daemons set alive_until = '2100-01-01'`,
    /** Records a write that is neither queued nor refused. */
    record: (more?: Partial<NewWrite>, by = rig.first) => idOf(by.operations.record(write(more))),
    /** Records a write in the request queue, by default a give that may wait for an hour. */
    async queue(more: Partial<NewWrite> = {}, by = rig.first): Promise<string> {
      rig.clock.advance(1);
      const waiting = { expiresAt: rig.clock.now() + TTL_MS, queue: true };
      return queuedId(await by.operations.record(write({ ...giveTo(), ...waiting, ...more })));
    },
    /** The ids that are handed out next. */
    async claim(limit = 100, by = rig.first): Promise<string[]> {
      return (await by.operations.claimQueued(rig.clock.now(), limit)).map(({ id }) => id);
    },
    conclude: (id: string, cls: Class, more: object = {}, endedAt = rig.clock.now()) =>
      rig.first.operations.conclude(conclusion(id, cls, endedAt, more)),
    move: (id: string, to: State, more: Partial<Move> = {}) =>
      moveAll([{ id, to, at: rig.clock.now(), cause: 'test', ...more }]),
    stateOf: async (id: string) => (await findOperation(rig.database.db, id))?.state,
    /** The data of the events about an operation, with their types. */
    async eventsOf(id: string) {
      const rows = await rig.database.owner.sql<{ type: string; body: string }[]>`
        select type, tallyhook.event_body(events) as body from tallyhook.events
        where subject = ${`operation:${id}`} order by subject_seq`;
      return rows.map(({ type, body }) => ({ type, ...JSON.parse(body).data }));
    },
    async count(where: 'owner' | 'key_id', value: string): Promise<number> {
      const { sql } = rig.database.owner;
      const [row] = await sql<{ n: number }[]>`
        select count(*)::int as n from tallyhook.operations where ${sql(where)} = ${value}`;
      return row?.n ?? 0;
    },
  };
}

function counting(db: Db) {
  let count = 0;
  const counted = changed(db, {
    begin(work, options) {
      count++;
      return db.begin(work, options);
    },
    single(work, deadlineMs) {
      count++;
      return db.single(work, deadlineMs);
    },
  });
  return { counted, begun: () => count };
}

/** The database with other ways to commit. */
export function changed(db: Db, change: Partial<Pick<Db, 'begin' | 'single'>>): Db {
  return Object.create(db, Object.getOwnPropertyDescriptors(change));
}

/** Loses the answer of the next commit of an intent, after it happened. */
export function losing(db: Db): Db {
  let lost = false;
  return changed(db, {
    async single(work) {
      const done = await db.single(work);
      if (lost) return done;
      lost = true;
      throw new DatabaseError('CONNECTION_CLOSED');
    },
  });
}

let wallets = 0;
/** The address of a wallet that no other test writes to. */
export const freshWallet = () => `0xAb${String(++wallets).padStart(38, '0')}`;

/** The fields of a give by operator 1. */
export const giveTo = (toAddr = freshWallet(), amount = 10n) => ({
  fields: { toAddr, operationNo: 1n, amount, reasonType: 'gift' },
});

/** By default a give of 10 to Alice. */
export function write(more: Partial<NewWrite> = {}): NewWrite {
  return writeOf({ ...giveTo(ALICE), ...more });
}

async function idOf(recording: Promise<Recorded>): Promise<string> {
  const recorded = await recording;
  expect(recorded).toHaveProperty('id');
  return 'id' in recorded ? recorded.id : '';
}

/** The id of a write that was recorded in the request queue. */
export function queuedId(recorded: Recorded): string {
  expect(recorded).toHaveProperty('queued');
  return 'queued' in recorded ? recorded.queued.id : '';
}

let numbers = 2n ** 70n;
/** A number that is used once. */
export const nextNumber = () => ++numbers;

export type Class = Conclusion['outcome']['class'];
const OUTCOMES: { [C in Class]: Extract<Conclusion['outcome'], { class: C }> } = {
  accepted: {
    class: 'accepted',
    txAppNo: 7n,
    get txLogNo() {
      return nextNumber();
    },
  },
  rejected: { class: 'rejected', status: 406, code: '198', message: 'balance too low' },
  unavailable: { class: 'unavailable', reason: 'maintenance' },
  not_sent: { class: 'not_sent', cause: 'connection_refused' },
  unknown: { class: 'unknown', cause: 'reset' },
};

/** What came of a send, by its class. Each accepted one has a new number unless `more` has one. */
export function conclusion(
  operationId: string,
  cls: Class,
  endedAt: Instant,
  more: object = {},
): Conclusion {
  const answered = cls === 'accepted' || cls === 'rejected';
  return {
    operationId,
    outcome: { ...OUTCOMES[cls], ...more },
    answer: answered
      ? { status: 200, headers: [['content-type', 'x']], body: Buffer.from('"answer"') }
      : undefined,
    endedAt,
  };
}
