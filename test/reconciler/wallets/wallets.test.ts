import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../../harness/database.ts';
import { freshAddr, openRig, type Rig } from '../rig.ts';

let database: TestDatabase;
let rig: Rig;
beforeAll(async () => {
  database = await createDatabase();
  rig = await openRig(database.db);
});
afterAll(() => database.drop());

const give = (toAddr: string, amount: bigint) =>
  rig.send('give', { operationNo: 7n, toAddr, amount });

/** A wallet that is open in the books with so much. */
async function opened(balance: bigint): Promise<string> {
  const addr = freshAddr();
  await rig.observation(addr, balance);
  await rig.post();
  return addr;
}

describe('The opening of a wallet', () => {
  it('A first clean look opens it with what it shows, and the next look is explained', async () => {
    const addr = await opened(100n);
    expect(await rig.balance(addr)).toBe(100n);
    await rig.observation(addr, 100n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained', cause: null });
    expect(await rig.typesOf(addr)).toEqual(['wallet.observed']);
  });

  it('Before the opening is posted another look is explained by it', async () => {
    const addr = freshAddr();
    await rig.observation(addr, 100n);
    await rig.observation(addr, 100n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
    await rig.post();
    expect(await rig.balance(addr)).toBe(100n);
  });

  it.each([
    ['posted', true],
    ['not posted yet', false],
  ])('A write from before, %s, is not part of the opening', async (_title, isPosted) => {
    const addr = freshAddr();
    await rig.accept(await give(addr, 30n));
    if (isPosted) await rig.post();
    await rig.observation(addr, 100n);
    await rig.post();
    expect(await rig.balance(addr)).toBe(100n);
    const [opening] = await database.db.sql<{ amount: bigint }[]>`
      select amount from tallyhook.posting_requests where id = ${`opening:${addr.toLowerCase()}`}`;
    expect(opening?.amount).toBe(70n);
  });

  it('A write that was posted but came after the look does not change the opening', async () => {
    const addr = freshAddr();
    await rig.putObservation(addr, 100n);
    await rig.accept(await give(addr, 30n));
    await rig.post();
    await rig.judge();
    await rig.post();
    expect(await rig.balance(addr)).toBe(130n);
    await rig.observation(addr, 130n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
  });

  it('A lost write keeps it unopened, and it is looked at less and less often', async () => {
    const addr = freshAddr();
    await rig.lose(await give(addr, 30n));
    const gaps: number[] = [];
    for (let i = 0; i < 12; i++) {
      await rig.observation(addr, 100n);
      gaps.push(await rig.dueInMs({ kind: 'wallet', addr }));
    }
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'unopened', openedAt: null });
    expect(await rig.drifts(addr)).toEqual([]);
    expect(gaps[0]).toBe(1_000);
    expect(gaps.at(-1)).toBeGreaterThan(4_000);
  });

  it('Before its opening a changed balance is undetermined, never unexplained', async () => {
    const addr = freshAddr();
    const id = await give(addr, 30n);
    await rig.observation(addr, 100n);
    await rig.accept(id);
    await rig.observation(addr, 130n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
    const changed = (await rig.eventsOf(addr)).find((e) => e.type === 'wallet.balance_changed');
    expect(changed?.data).toMatchObject({ explanation: 'undetermined' });
  });
});

describe('Reads', () => {
  it('One that began earlier than the newest processed one changes nothing', async () => {
    const addr = await opened(100n);
    const late = await rig.putObservation(addr, 50n);
    rig.clock.advance(1_000);
    await rig.observation(addr, 100n);
    const before = await rig.wallet(addr);
    await database.owner.sql`
      update tallyhook.observations set processed_at = null where id = ${late.id}`;
    await rig.judge();
    expect(await rig.wallet(addr)).toEqual(before);
  });

  it('One of another address says nothing', async () => {
    const addr = await opened(100n);
    const before = await rig.wallet(addr);
    rig.clock.advance(1_000);
    const record = { addr: freshAddr(), balance: 5n, status: 1 };
    await rig.put({ kind: 'wallet', addr }, 'seen', record);
    await rig.judge();
    expect(await rig.wallet(addr)).toEqual(before);
  });

  it.each(['inconclusive', 'absent'] as const)('One that is %s changes nothing', async (result) => {
    const addr = await opened(100n);
    const before = await rig.wallet(addr);
    rig.clock.advance(1_000);
    await rig.put({ kind: 'wallet', addr }, result, null);
    expect(await rig.judge()).toBe(1);
    expect(await rig.wallet(addr)).toEqual(before);
  });

  it('One that cannot be processed does not hold up the others', async () => {
    const [addr, bad] = [await opened(100n), freshAddr()];
    rig.clock.advance(2_000);
    const stuck = await rig.put({ kind: 'wallet', addr: bad }, 'seen', { addr: bad });
    await rig.putObservation(addr, 107n);
    await expect(rig.judge()).rejects.toThrow();
    expect(await rig.wallet(addr)).toMatchObject({ observedBalance: 107n });
    await database.owner.sql`delete from tallyhook.observations where id = ${stuck.id}`;
  });

  it('Judging again what was processed does nothing', async () => {
    const addr = await opened(100n);
    await rig.observation(addr, 107n);
    await rig.observation(addr, 107n);
    const before = [await rig.wallet(addr), await rig.eventsOf(addr)];
    expect(await rig.judge()).toBe(0);
    expect(await rig.judge()).toBe(0);
    expect([await rig.wallet(addr), await rig.eventsOf(addr)]).toEqual(before);
  });

  it('A judgement that breaks before its commit leaves nothing behind', async () => {
    const addr = await opened(100n);
    await rig.observation(addr, 107n);
    rig.clock.advance(2_000);
    await rig.putObservation(addr, 107n);
    const before = [await rig.wallet(addr), await rig.eventsOf(addr)];
    const breaking = await rig.reconcilerOf(rig.name, {
      emit: () => Promise.reject(new Error('cut off')),
    });
    await expect(breaking.runOnce(rig.clock.now())).rejects.toThrow('cut off');
    expect([await rig.wallet(addr), await rig.eventsOf(addr)]).toEqual(before);
    expect(await rig.drifts(addr)).toEqual([]);
    expect(await rig.judge()).toBe(1);
    expect(await rig.drifts(addr)).toHaveLength(1);
    expect(await rig.typesOf(addr)).toHaveLength(3);
  });

  it('Two reconcilers judge each look once, and one of them has nothing to do', async () => {
    const addr = await opened(100n);
    rig.clock.advance(2_000);
    await rig.putObservation(addr, 90n);
    const other = await rig.reconcilerOf('dmn_other');
    const now = rig.clock.now();
    const passes = await Promise.all([rig.reconciler.runOnce(now), other.runOnce(now)]);
    expect(passes.map(({ processed }) => processed).sort()).toEqual([0, 1]);
    const changes = (await rig.typesOf(addr)).filter((type) => type.endsWith('balance_changed'));
    expect(changes).toHaveLength(1);
    // The lease runs out, and the other one goes on where the first stopped.
    rig.clock.advance(20_000);
    await rig.putObservation(addr, 90n);
    expect(await other.runOnce(rig.clock.now())).toMatchObject({ processed: 1 });
    expect(await rig.drifts(addr)).toHaveLength(1);
    rig.clock.advance(20_000);
    await rig.judge();
  });
});
