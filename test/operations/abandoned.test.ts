/** Sends that nobody ends, and numbers that came before: kept, told, and never guessed. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { findOperation, type Move } from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import {
  ALIVE_MS,
  conclusion,
  type OperationsDeps,
  openOperations,
  readBack,
  recorded,
} from './journal-parts.ts';

let database: TestDatabase;
let parts: OperationsDeps;
beforeAll(async () => {
  database = await createDatabase();
});
beforeEach(async () => {
  parts = await openOperations(database.db);
});
afterAll(() => database.drop());

const stateOf = (id: string) => readBack.stateOf(database.db, id);
const eventsOf = (id: string) => readBack.eventsOf(database.owner, id);

describe('A send that nobody ends', () => {
  /** When the deadline of a write has passed, and when its daemon counts as dead. */
  const DEADLINE_MS = 30_000;

  test('Is unknown only when its deadline and its daemon are both gone', async () => {
    const id = await recorded(parts.operations);
    const start = parts.clock.now();
    const other = await openOperations(database.db, { clock: parts.clock });
    const pass = (at: number) => other.operations.runOnce(at);
    const alive = (until: number) => database.db.sql`
      update tallyhook.daemons set alive_until = ${isoText(until)}
      where id = ${parts.daemonId}`;
    await pass(start + ALIVE_MS + 1);
    expect(await stateOf(id)).toBe('sending');
    await alive(start + DEADLINE_MS + 10_000);
    await pass(start + DEADLINE_MS + 1);
    expect(await stateOf(id)).toBe('sending');
    await alive(start + DEADLINE_MS);
    await pass(start + DEADLINE_MS);
    expect(await stateOf(id)).toBe('sending');
    expect(await pass(start + DEADLINE_MS + 1)).toBeGreaterThan(0);
    expect(await stateOf(id)).toBe('unknown');
    expect(await eventsOf(id)).toMatchObject([
      { type: 'operation.unknown', error: { class: 'abandoned' } },
    ]);
    const late = await parts.operations.conclude(conclusion(id, 'accepted', start));
    expect(late).toMatchObject({ state: 'accepted', errorClass: null });
  });

  test('Of a daemon that lives but forgot it is unknown a minute after its deadline', async () => {
    const id = await recorded(parts.operations);
    const deadline = parts.clock.now() + DEADLINE_MS;
    await database.db.sql`
      update tallyhook.daemons set alive_until = '2100-01-01' where id = ${parts.daemonId}`;
    await parts.operations.runOnce(deadline + 60_000);
    expect(await stateOf(id)).toBe('sending');
    await parts.operations.runOnce(deadline + 60_001);
    expect(await stateOf(id)).toBe('unknown');
  });

  test('Is called unknown once, by two daemons at once', async () => {
    const id = await recorded(parts.operations);
    const other = await openOperations(database.db, { clock: parts.clock });
    const at = parts.clock.now() + 200_000;
    await Promise.all([parts.operations.runOnce(at), other.operations.runOnce(at)]);
    expect((await eventsOf(id)).map(({ type }) => type)).toEqual(['operation.unknown']);
  });
});

describe('A tx_log_no that came before', () => {
  const numbers = { txAppNo: 8n, txLogNo: 4711n };
  const problem = async (id: string) => {
    const rows = await database.owner.sql<{ quarantineReason: string | null }[]>`
      select quarantine_reason from tallyhook.due_postings where operation_id = ${id}`;
    return rows[0]?.quarantineReason ?? null;
  };
  const accepted = async (more: object) => {
    const id = await recorded(parts.operations);
    await parts.operations.conclude(conclusion(id, 'accepted', parts.clock.now(), more));
    return id;
  };

  test('Is kept, and is not posted; another app may have the same', async () => {
    const first = await accepted(numbers);
    const again = await accepted(numbers);
    const elsewhere = await accepted({ ...numbers, txAppNo: 9n });
    expect(await problem(first)).toBeNull();
    expect(await problem(again)).toBe('repeated_tx_log_no');
    expect(await problem(elsewhere)).toBeNull();
    expect((await findOperation(database.db, again))?.txLogNo).toBe(4711n);
  });

  test('In one commit with another is not posted either', async () => {
    const ids = await Promise.all([recorded(parts.operations), recorded(parts.operations)]);
    const same = { txAppNo: 8n, txLogNo: 4712n, effectiveAt: 1, effectiveBasis: 'answer' };
    const at = parts.clock.now();
    const moves = ids.map((id): Move => ({ id, to: 'accepted', at, cause: 'test', ...same }));
    await database.db.begin((tx) => parts.operations.move(tx, moves));
    expect(await Promise.all(ids.map(problem))).toEqual([
      'repeated_tx_log_no',
      'repeated_tx_log_no',
    ]);
  });
});
