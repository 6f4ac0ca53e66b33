/** The stored limits of the service, shared by several daemons. */
import { afterEach, expect, it } from 'vitest';
import { expedite, makeQuotaStore } from '../../src/observer/observer.ts';
import type { QuotaState } from '../../src/upstream/upstream.ts';
import { useDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { accountError, closeAll, ok, upstreamTo, wallet } from '../upstream/rig.ts';
import { startScripted } from '../upstream/service.ts';
import { observerOf, processAll } from './rig.ts';

const T0 = Date.UTC(2026, 0, 1);
const database = await useDatabase();
afterEach(closeAll);

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

it('A deadline stored by another daemon during a refused poll stops the read to confirm it', async () => {
  const quota = makeQuotaStore(database.db);
  const [addr, other] = [`0x${'aa'.repeat(20)}`, `0x${'bb'.repeat(20)}`];
  const clock = manualClock(T0 + 60_000);
  let isGone = false;
  const service = await startScripted(async ({ url }) => {
    if (!url.includes(addr) || !isGone)
      return ok({ ...wallet, token_addr: url.slice(-addr.length) });
    const blockedUntil = clock.now() + 60_000;
    const [row] = await quota.load();
    const clearedAt = row?.clearedAt ?? null;
    const none = { rate: null, risesFrom: null, riseMs: null, clearedAt };
    await quota.save({ ...none, name: 'polls', blockedUntil });
    return accountError(406, 398);
  });
  const { upstream } = await upstreamTo(service.origin, clock, { quota });
  const observer = observerOf(database.db, clock, upstream);
  await observer.add(database.db, [
    { kind: 'wallet', addr },
    { kind: 'wallet', addr: other },
  ]);
  expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 2 });
  await processAll(database);
  isGone = true;
  await expedite(database.db, new Map([[`wallet:${addr}`, clock.now()]]));
  expect(await observer.runOnce(clock.now())).toMatchObject({ observations: 1 });
  expect(service.count('/v1/app/token/account')).toBe(3);
});
