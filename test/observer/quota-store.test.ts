/** The stored limits of the service, shared by several daemons. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeQuotaStore } from '../../src/observer/observer.ts';
import type { QuotaState } from '../../src/upstream/upstream.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';

const T0 = Date.UTC(2026, 0, 1);
let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

it('The later deadline and the later throttling stand, in any order of saving', async () => {
  const { load, save } = makeQuotaStore(database.db, manualClock());
  const none = { blockedUntil: null, rate: null, risesFrom: null };
  const polls = (state: Partial<QuotaState>) => save({ ...none, ...state, name: 'polls' });
  await save({ ...none, name: 'app-write', blockedUntil: T0 + 1000 });
  await polls({ blockedUntil: T0 + 5000 });
  expect(await load()).toContainEqual({ ...none, name: 'polls', blockedUntil: T0 + 5000 });
  await polls({ blockedUntil: T0 + 9000, rate: 2.5, risesFrom: T0 + 9000 });
  await polls({ blockedUntil: T0 + 7000, rate: 4, risesFrom: T0 + 7000 });
  await polls({ blockedUntil: null });
  expect(await load()).toHaveLength(2);
  expect(await load()).toEqual(
    expect.arrayContaining([
      { ...none, name: 'app-write', blockedUntil: T0 + 1000 },
      { name: 'polls', blockedUntil: T0 + 9000, rate: 2.5, risesFrom: T0 + 9000 },
    ]),
  );
});
