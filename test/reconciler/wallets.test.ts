import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { freshAddr, type House, openHouse } from './house.ts';

let database: TestDatabase;
let house: House;
beforeAll(async () => {
  database = await createDatabase();
  house = await openHouse(database.db);
});
afterAll(() => database.drop());

const give = (toAddr: string, amount: bigint) =>
  house.send('give', { operationNo: 7n, toAddr, amount });

/** A wallet that is open in the books with so much. */
async function opened(balance: bigint): Promise<string> {
  const addr = freshAddr();
  await house.look(addr, balance);
  await house.post();
  return addr;
}

describe('The opening of a wallet', () => {
  it('A first clean look opens it with what it shows, and the next look is explained', async () => {
    const addr = await opened(100n);
    expect(await house.balance(addr)).toBe(100n);
    await house.look(addr, 100n);
    expect(await house.wallet(addr)).toMatchObject({ verdict: 'explained', cause: null });
    expect(await house.typesOf(addr)).toEqual(['wallet.observed']);
  });

  it('Between the look that wants the opening and its posting another look is explained', async () => {
    const addr = freshAddr();
    await house.look(addr, 100n);
    await house.look(addr, 100n);
    expect(await house.wallet(addr)).toMatchObject({ verdict: 'explained' });
    await house.post();
    expect(await house.balance(addr)).toBe(100n);
  });

  it.each([
    ['posted', true],
    ['not posted yet', false],
  ])('A write from before, %s, is not part of the opening', async (_title, isPosted) => {
    const addr = freshAddr();
    await house.accept(await give(addr, 30n));
    if (isPosted) await house.post();
    await house.look(addr, 100n);
    await house.post();
    expect(await house.balance(addr)).toBe(100n);
    const [opening] = await database.db.sql<{ amount: bigint }[]>`
      select amount from tallyhook.wanted_postings where id = ${`opening:${addr.toLowerCase()}`}`;
    expect(opening?.amount).toBe(70n);
  });

  it('A write that was posted but came after the look does not change the opening', async () => {
    const addr = freshAddr();
    await house.putLook(addr, 100n);
    await house.accept(await give(addr, 30n));
    await house.post();
    await house.judge();
    await house.post();
    expect(await house.balance(addr)).toBe(130n);
    await house.look(addr, 130n);
    expect(await house.wallet(addr)).toMatchObject({ verdict: 'explained' });
  });

  it('A lost write keeps it unopened, and it is looked at less and less often', async () => {
    const addr = freshAddr();
    await house.lose(await give(addr, 30n));
    const gaps: number[] = [];
    for (let i = 0; i < 12; i++) {
      await house.look(addr, 100n);
      gaps.push(await house.dueInMs({ kind: 'wallet', addr }));
    }
    expect(await house.wallet(addr)).toMatchObject({ verdict: 'unopened', opened_at: null });
    expect(await house.drifts(addr)).toEqual([]);
    expect(gaps[0]).toBe(1_000);
    expect(gaps.at(-1)).toBeGreaterThan(4_000);
  });

  it('Before its opening a changed balance is undetermined, never unexplained', async () => {
    const addr = freshAddr();
    const id = await give(addr, 30n);
    await house.look(addr, 100n);
    await house.accept(id);
    await house.look(addr, 130n);
    expect(await house.wallet(addr)).toMatchObject({ verdict: 'explained' });
    const changed = (await house.eventsOf(addr)).find((e) => e.type === 'wallet.balance_changed');
    expect(changed?.data).toMatchObject({ explanation: 'undetermined' });
  });
});

describe('Looks', () => {
  it('One that began earlier than the newest judged one changes nothing', async () => {
    const addr = await opened(100n);
    const late = await house.putLook(addr, 50n);
    house.clock.advance(1_000);
    await house.look(addr, 100n);
    const before = await house.wallet(addr);
    await database.owner.sql`
      update tallyhook.looks set judged_at = null where id = ${late.id}`;
    await house.judge();
    expect(await house.wallet(addr)).toEqual(before);
  });

  it('One of another address says nothing', async () => {
    const addr = await opened(100n);
    const before = await house.wallet(addr);
    house.clock.advance(1_000);
    const record = { addr: freshAddr(), balance: 5n, status: 1 };
    await house.put({ kind: 'wallet', addr }, 'seen', record);
    await house.judge();
    expect(await house.wallet(addr)).toEqual(before);
  });

  it.each(['inconclusive', 'absent'] as const)('One that is %s changes nothing', async (result) => {
    const addr = await opened(100n);
    const before = await house.wallet(addr);
    house.clock.advance(1_000);
    await house.put({ kind: 'wallet', addr }, result, null);
    expect(await house.judge()).toBe(1);
    expect(await house.wallet(addr)).toEqual(before);
  });

  it('One that cannot be judged does not hold up the others', async () => {
    const [addr, bad] = [await opened(100n), freshAddr()];
    house.clock.advance(2_000);
    const stuck = await house.put({ kind: 'wallet', addr: bad }, 'seen', { addr: bad });
    await house.putLook(addr, 107n);
    await expect(house.judge()).rejects.toThrow();
    expect(await house.wallet(addr)).toMatchObject({ observed_balance: 107n });
    await database.owner.sql`delete from tallyhook.looks where id = ${stuck.id}`;
  });

  it('Judging again what was judged does nothing', async () => {
    const addr = await opened(100n);
    await house.look(addr, 107n);
    await house.look(addr, 107n);
    const before = [await house.wallet(addr), await house.eventsOf(addr)];
    expect(await house.judge()).toBe(0);
    expect(await house.judge()).toBe(0);
    expect([await house.wallet(addr), await house.eventsOf(addr)]).toEqual(before);
  });

  it('A judgement that breaks before its commit leaves nothing behind', async () => {
    const addr = await opened(100n);
    await house.look(addr, 107n);
    house.clock.advance(2_000);
    await house.putLook(addr, 107n);
    const before = [await house.wallet(addr), await house.eventsOf(addr)];
    const breaking = await house.reconcilerOf(house.name, {
      emit: () => Promise.reject(new Error('cut off')),
    });
    await expect(breaking.runOnce(house.clock.now())).rejects.toThrow('cut off');
    expect([await house.wallet(addr), await house.eventsOf(addr)]).toEqual(before);
    expect(await house.drifts(addr)).toEqual([]);
    expect(await house.judge()).toBe(1);
    expect(await house.drifts(addr)).toHaveLength(1);
    expect(await house.typesOf(addr)).toHaveLength(3);
  });

  it('Two reconcilers judge each look once, and one of them has nothing to do', async () => {
    const addr = await opened(100n);
    house.clock.advance(2_000);
    await house.putLook(addr, 90n);
    const other = await house.reconcilerOf('dmn_other');
    const now = house.clock.now();
    const passes = await Promise.all([house.reconciler.runOnce(now), other.runOnce(now)]);
    expect(passes.map(({ judged }) => judged).sort()).toEqual([0, 1]);
    const changes = (await house.typesOf(addr)).filter((type) => type.endsWith('balance_changed'));
    expect(changes).toHaveLength(1);
    // The lease runs out, and the other one goes on where the first stopped.
    house.clock.advance(20_000);
    await house.putLook(addr, 90n);
    expect(await other.runOnce(house.clock.now())).toMatchObject({ judged: 1 });
    expect(await house.drifts(addr)).toHaveLength(1);
    house.clock.advance(20_000);
    await house.judge();
  });
});

describe('A drift', () => {
  it('It is suspected at first sight, opened by the second, and told once', async () => {
    const addr = await opened(100n);
    await house.look(addr, 107n);
    expect(await house.wallet(addr)).toMatchObject({ cause: 'suspected', suspected_amount: 7n });
    expect(await house.drifts(addr)).toEqual([]);
    expect(await house.dueInMs({ kind: 'wallet', addr })).toBe(1_000);
    await house.look(addr, 107n);
    const [drift] = await house.drifts(addr);
    expect(drift).toMatchObject({ amount: 7n, state: 'open', closed_at: null });
    for (let i = 0; i < 3; i++) await house.look(addr, 107n);
    expect(await house.drifts(addr)).toHaveLength(1);
    expect(await house.wallet(addr)).toMatchObject({ verdict: 'explained' });
    const events = await house.eventsOf(addr);
    expect(events.map(({ type }) => type)).toEqual([
      'wallet.observed',
      'wallet.balance_changed',
      'wallet.drift_opened',
    ]);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(events[1]?.data).toMatchObject({ explanation: 'unexplained' });
    const actions = await database.db.sql<{ action: string }[]>`
      select action from tallyhook.drift_actions where drift_id = ${drift?.id ?? ''} order by id`;
    expect(actions.map(({ action }) => action)).toEqual(['opened']);
  });

  it('A change that is gone at the second look is none', async () => {
    const addr = await opened(100n);
    await house.look(addr, 107n);
    await house.look(addr, 100n);
    expect(await house.wallet(addr)).toMatchObject({
      verdict: 'explained',
      suspected_amount: null,
    });
    await house.look(addr, 107n);
    expect(await house.drifts(addr)).toEqual([]);
  });

  it('Several changes are drifts of their own, and a full return closes them all', async () => {
    const addr = await opened(100n);
    for (const balance of [107n, 107n, 104n, 104n]) await house.look(addr, balance);
    expect((await house.drifts(addr)).map(({ amount }) => amount)).toEqual([7n, -3n]);
    await house.look(addr, 100n);
    expect(await house.drifts(addr)).toHaveLength(2);
    await house.look(addr, 100n);
    expect(await house.drifts(addr)).toEqual([]);
    expect((await house.typesOf(addr)).filter((type) => type.includes('drift'))).toEqual([
      'wallet.drift_opened',
      'wallet.drift_opened',
      'wallet.drift_closed',
      'wallet.drift_closed',
    ]);
  });

  it('A balance that never stands still is looked at less and less often', async () => {
    const addr = await opened(100n);
    const gaps: number[] = [];
    for (let i = 1n; i < 14n; i++) {
      await house.look(addr, 100n + i * i);
      gaps.push(await house.dueInMs({ kind: 'wallet', addr }));
    }
    expect(gaps[0]).toBe(1_000);
    expect(gaps.at(-1)).toBeGreaterThan(20_000);
    expect(await house.drifts(addr)).toEqual([]);
  });

  it('A write that people have to decide does not hide it, and does not keep the wallet unclean', async () => {
    const addr = await opened(100n);
    const id = await give(addr, 30n);
    await house.lose(id);
    house.clock.advance(700_000);
    await house.judge();
    await house.look(addr, 100n);
    await house.look(addr, 100n);
    expect(await house.stateOf(id)).toBe('undecided');
    await house.look(addr, 107n);
    await house.look(addr, 107n);
    expect((await house.drifts(addr)).map(({ amount }) => amount)).toEqual([7n]);
    const other = await give(addr, 5n);
    await house.accept(other);
    await house.look(addr, 112n);
    expect(await house.stateOf(other)).toBe('settled');
    expect(await house.dueInMs({ kind: 'wallet', addr })).toBeGreaterThan(50_000);
  });

  it('One that appears beside a lost write comes to light when people are asked', async () => {
    const addr = await opened(100n);
    const id = await give(addr, 30n);
    await house.lose(id);
    await house.look(addr, 103n);
    expect(await house.wallet(addr)).toMatchObject({ cause: 'no_subset_explains' });
    for (let i = 0; i < 14; i++) await house.look(addr, 103n, 60_000);
    expect(await house.stateOf(id)).toBe('undecided');
    expect((await house.drifts(addr)).map(({ amount }) => amount)).toEqual([3n]);
  });
});

describe('A write settles', () => {
  it('When a clean look that must show it is explained', async () => {
    const addr = await opened(100n);
    const id = await give(addr, 5n);
    await house.accept(id);
    await house.look(addr, 105n, 100);
    expect(await house.stateOf(id)).toBe('accepted');
    expect(await house.dueInMs({ kind: 'wallet', addr })).toBe(1_000);
    await house.look(addr, 105n);
    expect(await house.stateOf(id)).toBe('settled');
    const types = (await house.events(`operation:${id}`)).map(({ type }) => type);
    expect(types).toEqual(['operation.accepted', 'operation.settled']);
  });

  it('Only when each of its wallets shows it', async () => {
    const [from, to] = [await opened(100n), await opened(0n)];
    const fields = { fromAddr: from, toAddr: to, amount: 10n, feeAmount: 1n };
    const id = await house.send('transfer', fields);
    await house.accept(id);
    await house.look(from, 89n);
    expect(await house.stateOf(id)).toBe('accepted');
    await house.look(to, 10n);
    expect(await house.stateOf(id)).toBe('settled');
  });

  it('Not when the balance does not show it: that is a drift', async () => {
    const addr = await opened(100n);
    const id = await give(addr, 5n);
    await house.accept(id);
    for (let i = 0; i < 4; i++) await house.look(addr, 100n);
    expect((await house.drifts(addr)).map(({ amount }) => amount)).toEqual([-5n]);
    expect(await house.stateOf(id)).toBe('accepted');
  });

  it('Also one to oneself, which changes nothing', async () => {
    const addr = await opened(100n);
    const id = await house.send('transfer', { fromAddr: addr, toAddr: addr, amount: 5n });
    await house.accept(id);
    await house.post();
    await house.look(addr, 100n);
    expect(await house.stateOf(id)).toBe('settled');
    expect(await house.wallet(addr)).toMatchObject({ verdict: 'explained' });
  });

  it('A look that began before the answer neither settles it nor calls it a drift', async () => {
    const addr = await opened(100n);
    house.clock.advance(2_000);
    const id = await give(addr, 5n);
    await house.putLook(addr, 100n);
    await house.accept(id);
    await house.post();
    await house.judge();
    expect(await house.stateOf(id)).toBe('accepted');
    expect(await house.wallet(addr)).toMatchObject({
      verdict: 'explained',
      suspected_amount: null,
    });
  });
});
