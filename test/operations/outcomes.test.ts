/**
 * An outcome, its transition and its event are one commit; nothing is guessed; late answers win.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import {
  FOLLOWS,
  findOperation,
  listTransitions,
  type Move,
  outcomeOf,
  type State,
  statesBefore,
} from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import {
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

const move = (id: string, to: State, more: Partial<Move> = {}): Move => ({
  id,
  to,
  at: parts.clock.now(),
  cause: 'test',
  ...more,
});
const moved = (moves: readonly Move[]) =>
  database.db.begin((tx) => parts.operations.move(tx, moves));

/** The shortest way to each state, from `sending`. */
const WAYS: Record<State, State[] | undefined> = {
  recorded: undefined,
  queued: undefined,
  cancelled: undefined,
  sending: [],
  accepted: ['accepted'],
  rejected: ['rejected'],
  unknown: ['unknown'],
  executed: ['unknown', 'executed'],
  not_executed: ['unknown', 'not_executed'],
  undecided: ['unknown', 'undecided'],
  settled: ['accepted', 'settled'],
  failed: ['accepted', 'failed'],
};
const REACHED = (Object.keys(WAYS) as State[]).filter((state) => WAYS[state]);

async function reached(state: State): Promise<string> {
  const id = await recorded(parts.operations);
  for (const to of WAYS[state] ?? []) await moved([move(id, to)]);
  return id;
}

describe('A conclusion', () => {
  it.each([
    ['accepted', 'accepted', 'executed', null],
    ['rejected', 'rejected', 'not_executed', { class: 'refused', status: 406, code: '198' }],
    ['unavailable', 'rejected', 'not_executed', { class: 'unavailable', code: 'maintenance' }],
    ['not_sent', 'rejected', 'not_executed', { class: 'not_sent', code: 'connection_refused' }],
    ['unknown', 'unknown', 'open', { class: 'unknown', code: 'reset' }],
  ] as const)('Of class %s makes it %s and says so, once', async (cls, state, outcome, error) => {
    const { operations, clock } = parts;
    const id = await recorded(operations);
    clock.advance(20);
    const said = await operations.conclude(conclusion(id, cls, clock.now()));
    expect(said).toMatchObject({ id, state, outcome, answeredAt: clock.now() });
    expect(await findOperation(database.db, id)).toEqual(said);
    const again = await operations.conclude(conclusion(id, cls, clock.now()));
    expect(again).toEqual(said);
    const [event, ...more] = await eventsOf(id);
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      type: `operation.${state}`,
      operation_id: id,
      state,
      outcome,
      amount: '10',
      tx_log_no: cls === 'accepted' ? '1180591620717411303424' : null,
      subject_seq: 1,
    });
    if (error) expect(event.error).toMatchObject(error);
    else expect(event.error).toBeNull();
  });

  test('Of 200 at once shares commits, and one that fails hurts only itself', async () => {
    const { operations, clock, begun } = parts;
    const ids = await Promise.all(Array.from({ length: 200 }, () => recorded(operations)));
    const before = begun();
    const done = await Promise.all(
      ids.map((id, i) =>
        operations.conclude(conclusion(id, 'accepted', clock.now(), { txLogNo: BigInt(i) })),
      ),
    );
    expect(done.map(({ id, txLogNo }) => [id, txLogNo])).toEqual(
      ids.map((id, i) => [id, BigInt(i)]),
    );
    expect(begun() - before).toBeLessThanOrEqual(8);
  });

  test('Whose words no database takes is recorded all the same', async () => {
    const { operations, clock } = parts;
    const id = await recorded(operations);
    const odd = { code: '1\0', message: 'bad \0 \ud800' };
    const said = await operations.conclude(conclusion(id, 'rejected', clock.now(), odd));
    expect(said).toMatchObject({ errorCode: '1\ufffd', errorMessage: 'bad \ufffd \ufffd' });
  });

  test('And its event are one commit: when one cannot be, neither is', async () => {
    let broken = true;
    const boom = new Error('no room for deliveries');
    const fanOut = async () => {
      if (broken) throw boom;
    };
    const { operations, clock } = await openOperations(database.db, { fanOut });
    const id = await recorded(operations);
    await expect(operations.conclude(conclusion(id, 'accepted', clock.now()))).rejects.toBe(boom);
    expect([await stateOf(id), await eventsOf(id)]).toEqual(['sending', []]);
    broken = false;
    await operations.conclude(conclusion(id, 'accepted', clock.now()));
    expect([await stateOf(id), (await eventsOf(id)).length]).toEqual(['accepted', 1]);
  });

  test('Of an operation that is not there is a failure', async () => {
    const late = conclusion('op_none', 'accepted', parts.clock.now());
    await expect(parts.operations.conclude(late)).rejects.toMatchObject({ code: 'internal' });
  });
});

describe('A move', () => {
  it.each(REACHED)('From %s goes where the table says, and nowhere else', async (from) => {
    for (const to of Object.keys(FOLLOWS) as State[]) {
      const id = await reached(from);
      const allowed = FOLLOWS[from].includes(to);
      const step = move(id, to);
      // What is settled is taken back by people only, and never against the service's own answer.
      const byPeople = from === 'settled' && allowed;
      if (byPeople) expect(await moved([step])).toEqual([]);
      expect((await moved([{ ...step, decided: true }])).length).toBe(allowed ? 1 : 0);
      expect(await stateOf(id)).toBe(allowed ? to : from);
    }
  });

  test('Is a row, so that replaying transitions gives the state', async () => {
    const steps = fc.array(fc.constantFrom(...(Object.keys(FOLLOWS) as State[])), {
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(steps, async (path) => {
        const id = await recorded(parts.operations);
        for (const to of path) await moved([move(id, to)]);
        const rows = await listTransitions(database.db, id);
        let state: string | null = null;
        for (const { fromState: from_state, toState: to_state } of rows) {
          expect(from_state).toBe(state);
          if (from_state !== null) expect(statesBefore(to_state as State)).toContain(from_state);
          state = to_state;
        }
        const operation = await findOperation(database.db, id);
        expect(operation).toMatchObject({ state, outcome: outcomeOf(state as State) });
      }),
      { numRuns: 25 },
    );
  });

  test('Wanted by many at once happens once', async () => {
    const id = await reached('unknown');
    const told = await Promise.all(
      (['executed', 'not_executed', 'undecided'] as const).flatMap((to) =>
        [1, 2].map(() => moved([move(id, to)])),
      ),
    );
    const rows = (await listTransitions(database.db, id)).slice(3);
    expect(rows.map(({ toState: to_state }) => to_state)).toHaveLength(told.flat().length);
    let state: string = 'unknown';
    for (const { fromState: from_state, toState: to_state } of rows) {
      expect(from_state).toBe(state);
      state = to_state;
    }
    expect(await stateOf(id)).toBe(state);
  });

  test('Keeps what it does not name', async () => {
    const { operations, clock } = parts;
    const id = await recorded(operations);
    await operations.conclude(conclusion(id, 'accepted', clock.now()));
    clock.advance(9);
    const [settled] = await moved([move(id, 'settled', { settledAt: clock.now() })]);
    expect(settled).toMatchObject({
      txLogNo: 2n ** 70n,
      effectiveBasis: 'answer',
      settledAt: clock.now(),
      evidence: null,
    });
  });
});

describe("The service's own answer", () => {
  it.each(['unknown', 'undecided', 'executed', 'not_executed'] as const)(
    'Wins over %s, however late',
    async (state) => {
      const { operations, clock } = parts;
      for (const cls of ['accepted', 'rejected'] as const) {
        const id = await reached(state);
        const said = await operations.conclude(conclusion(id, cls, clock.now()));
        expect(said.state).toBe(cls);
        expect((await eventsOf(id)).at(-1)?.type).toBe(`operation.${cls}`);
      }
    },
  );

  it.each(['settled', 'failed', 'accepted'] as const)('Changes nothing after %s', async (state) => {
    const id = await reached(state);
    const late = conclusion(id, 'rejected', parts.clock.now());
    expect((await parts.operations.conclude(late)).state).toBe(state);
  });
});
