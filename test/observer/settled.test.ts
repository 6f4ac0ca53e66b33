/** Tokens leave the schedule when their operations have settled, and return when needed. */
import { expect, it } from 'vitest';
import { countLate, expedite, targetName } from '../../src/observer/observer.ts';
import { addr, putOperations } from '../ledger/fixture.ts';
import { processAll, useWorld } from './rig.ts';

const HOUR_MS = 3_600_000;
const TOKEN = { kind: 'token', contractId: 1n, tokenId: 7_000n } as const;
const NAME = targetName(TOKEN);

const world = useWorld();

/** An observer that has polled a token of such an operation, which was settled before. */
async function openObserver({ settled = true } = {}) {
  const { database, sandbox, clock } = world;
  sandbox.control.setToken(TOKEN.contractId, TOKEN.tokenId, { owner: addr(1) });
  const { contractId, tokenId } = TOKEN;
  const mint = { kind: 'mint', contractId, tokenId, recordedAt: clock.now() } as const;
  await putOperations(database.owner, [{ ...mint, id: 'op_1', state: 'accepted' }]);
  if (settled) await settle();
  const observer = await world.openObserver();
  await observer.add(database.db, [TOKEN]);
  await pollAfter(observer, 0);
  return observer;
}

async function settle() {
  await world.database.owner.sql`
    update tallyhook.operations set settled_at = now() where id = 'op_1'`;
}

async function pollAfter(observer: { runOnce(now: number): Promise<unknown> }, ms: number) {
  world.clock.advance(ms);
  await observer.runOnce(world.clock.now());
  await processAll(world.database);
}

async function dueInMs(name = NAME): Promise<number> {
  const rows = await world.database.db.sql<{ at: number }[]>`
    select next_poll_at as at from tallyhook.targets where name = ${name}`;
  return (rows[0]?.at ?? Number.NaN) - world.clock.now();
}

it('A token of settled operations is polled once a day, and does not count as late', async () => {
  await openObserver();
  expect(await dueInMs()).toBeGreaterThan(20 * HOUR_MS);
  world.clock.advance(2 * HOUR_MS);
  const { db } = world.database;
  expect(await countLate(db, world.clock.now() - HOUR_MS)).toMatchObject({ targets: 0 });
});

it('Tokens of settled operations take no part in the price of a poll', async () => {
  const observer = await openObserver();
  world.clock.advance(60_000);
  expect(await observer.pricing()).toMatchObject({ intervalMs: null });
});

it('A token with an open operation is steady until that has settled', async () => {
  const observer = await openObserver({ settled: false });
  expect(await dueInMs()).toBeLessThan(HOUR_MS);
  await settle();
  await pollAfter(observer, 70_000);
  expect(await dueInMs()).toBeGreaterThan(20 * HOUR_MS);
});

it('A new operation, or a watch, brings the token back at once', async () => {
  const observer = await openObserver();
  const { contractId, tokenId } = TOKEN;
  const burn = { kind: 'burn', contractId, tokenId, recordedAt: world.clock.now() } as const;
  await putOperations(world.database.owner, [{ ...burn, id: 'op_2', state: 'accepted' }]);
  await pollAfter(observer, 70_000);
  expect(await dueInMs()).toBeLessThan(HOUR_MS);
  await world.database.owner.sql`update tallyhook.operations set settled_at = now()`;
  await pollAfter(observer, 70_000);
  expect(await dueInMs()).toBeGreaterThan(20 * HOUR_MS);
  await observer.watch([TOKEN], 'ops');
  expect(await dueInMs()).toBe(0);
  await pollAfter(observer, 1);
  expect(await dueInMs()).toBeLessThan(HOUR_MS);
});

it('A token that only a list has shown is polled when that is asked for, and never after it', async () => {
  const { database, sandbox, clock } = world;
  sandbox.control.setToken(TOKEN.contractId, TOKEN.tokenId, { owner: addr(1) });
  const observer = await world.openObserver();
  await observer.watch([{ kind: 'contract', contractId: TOKEN.contractId }], 'ops');
  await pollAfter(observer, 1);
  expect(await dueInMs()).toBeGreaterThan(1_000 * HOUR_MS);
  await expedite(database.db, new Map([[NAME, clock.now()]]));
  await pollAfter(observer, 1_000);
  const [target] = await database.db.sql`
    select last_started_at = ${new Date(clock.now()).toISOString()} as polled
    from tallyhook.targets where name = ${NAME}`;
  expect(target).toEqual({ polled: true });
  expect(await dueInMs()).toBeGreaterThan(1_000 * HOUR_MS);
});
