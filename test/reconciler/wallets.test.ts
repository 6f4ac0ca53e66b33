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

  it('Before the opening is posted another look is explained by it', async () => {
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
