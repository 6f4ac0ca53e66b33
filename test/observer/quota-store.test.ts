/** The stored limits of the service, shared by several daemons. */
import { expect, it } from 'vitest';
import { makeQuotaStore } from '../../src/observer/observer.ts';
import type { QuotaState } from '../../src/upstream/upstream.ts';
import { useDatabase } from '../harness/database.ts';

const T0 = Date.UTC(2026, 0, 1);
const database = await useDatabase();

it('The later deadline and the later throttling stand, in any order of saving', async () => {
  const { load, save } = makeQuotaStore(database.db);
  const none = { blockedUntil: null, rate: null, risesFrom: null, riseMs: null, clearedAt: null };
  const polls = (state: Partial<QuotaState>) => save({ ...none, ...state, name: 'polls' });
  await save({ ...none, name: 'app-write', blockedUntil: T0 + 1000 });
  await polls({ blockedUntil: T0 + 5000 });
  expect(await load()).toContainEqual({ ...none, name: 'polls', blockedUntil: T0 + 5000 });
  await polls({ blockedUntil: T0 + 9000, rate: 2.5, risesFrom: T0 + 9000, riseMs: 300 });
  await polls({ blockedUntil: T0 + 7000, rate: 4, risesFrom: T0 + 7000, riseMs: 30 });
  await polls({ blockedUntil: null });
  expect(await load()).toHaveLength(2);
  expect(await load()).toEqual(
    expect.arrayContaining([
      { ...none, name: 'app-write', blockedUntil: T0 + 1000 },
      {
        ...none,
        name: 'polls',
        blockedUntil: T0 + 9000,
        rate: 2.5,
        risesFrom: T0 + 9000,
        riseMs: 300,
      },
    ]),
  );
});

it('A daemon that does not know yet that deadlines were removed cannot restore them', async () => {
  const { load, save, clear } = makeQuotaStore(database.db);
  const state = { name: 'app-read' as const, rate: null, risesFrom: null, riseMs: null };
  await save({ ...state, blockedUntil: T0 + 9_000, clearedAt: null });
  await clear(T0);
  await save({ ...state, blockedUntil: T0 + 9_000, clearedAt: null });
  expect(await load()).toContainEqual({ ...state, blockedUntil: null, clearedAt: T0 });
  await save({ ...state, blockedUntil: T0 + 5_000, clearedAt: T0 });
  expect(await load()).toContainEqual({ ...state, blockedUntil: T0 + 5_000, clearedAt: T0 });
});
