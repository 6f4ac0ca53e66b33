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

describe('A drift', () => {
  it('It is suspected at first sight, opened by the second, and told once', async () => {
    const addr = await opened(100n);
    await rig.observation(addr, 107n);
    expect(await rig.wallet(addr)).toMatchObject({ cause: 'suspected', suspectedAmount: 7n });
    expect(await rig.drifts(addr)).toEqual([]);
    expect(await rig.dueInMs({ kind: 'wallet', addr })).toBe(1_000);
    await rig.observation(addr, 107n);
    const [drift] = await rig.drifts(addr);
    expect(drift).toMatchObject({ amount: 7n, state: 'open', closedAt: null });
    for (let i = 0; i < 3; i++) await rig.observation(addr, 107n);
    expect(await rig.drifts(addr)).toHaveLength(1);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
    const events = await rig.eventsOf(addr);
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
    await rig.observation(addr, 107n);
    await rig.observation(addr, 100n);
    expect(await rig.wallet(addr)).toMatchObject({
      verdict: 'explained',
      suspectedAmount: null,
    });
    await rig.observation(addr, 107n);
    expect(await rig.drifts(addr)).toEqual([]);
  });

  it('Several changes are drifts of their own, and a full return closes them all', async () => {
    const addr = await opened(100n);
    for (const balance of [107n, 107n, 104n, 104n]) await rig.observation(addr, balance);
    expect((await rig.drifts(addr)).map(({ amount }) => amount)).toEqual([7n, -3n]);
    await rig.observation(addr, 100n);
    expect(await rig.drifts(addr)).toHaveLength(2);
    await rig.observation(addr, 100n);
    expect(await rig.drifts(addr)).toEqual([]);
    expect((await rig.typesOf(addr)).filter((type) => type.includes('drift'))).toEqual([
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
      await rig.observation(addr, 100n + i * i);
      gaps.push(await rig.dueInMs({ kind: 'wallet', addr }));
    }
    expect(gaps[0]).toBe(1_000);
    expect(gaps.at(-1)).toBeGreaterThan(20_000);
    expect(await rig.drifts(addr)).toEqual([]);
  });

  it('A write that people have to decide neither hides it nor clouds the wallet', async () => {
    const addr = await opened(100n);
    const id = await give(addr, 30n);
    await rig.lose(id);
    await rig.wait(700_000);
    await rig.judge();
    await rig.observation(addr, 100n);
    await rig.observation(addr, 100n);
    expect(await rig.stateOf(id)).toBe('undecided');
    await rig.observation(addr, 107n);
    await rig.observation(addr, 107n);
    expect((await rig.drifts(addr)).map(({ amount }) => amount)).toEqual([7n]);
    const other = await give(addr, 5n);
    await rig.accept(other);
    await rig.observation(addr, 112n);
    expect(await rig.stateOf(other)).toBe('settled');
    expect(await rig.dueInMs({ kind: 'wallet', addr })).toBeGreaterThan(50_000);
  });

  it('One that appears beside a lost write comes to light when people are asked', async () => {
    const addr = await opened(100n);
    const id = await give(addr, 30n);
    await rig.lose(id);
    await rig.observation(addr, 103n);
    expect(await rig.wallet(addr)).toMatchObject({ cause: 'no_subset_explains' });
    for (let i = 0; i < 14; i++) await rig.observation(addr, 103n, 60_000);
    expect(await rig.stateOf(id)).toBe('undecided');
    expect((await rig.drifts(addr)).map(({ amount }) => amount)).toEqual([3n]);
  });
});

describe('A write settles', () => {
  it('When a clean look that must show it is explained', async () => {
    const addr = await opened(100n);
    const id = await give(addr, 5n);
    await rig.accept(id);
    await rig.observation(addr, 105n, 100);
    expect(await rig.stateOf(id)).toBe('accepted');
    expect(await rig.dueInMs({ kind: 'wallet', addr })).toBe(1_000);
    await rig.observation(addr, 105n);
    expect(await rig.stateOf(id)).toBe('settled');
    const types = (await rig.events(`operation:${id}`)).map(({ type }) => type);
    expect(types).toEqual(['operation.accepted', 'operation.settled']);
  });

  it('Only when each of its wallets shows it', async () => {
    const [from, to] = [await opened(100n), await opened(0n)];
    const fields = { fromAddr: from, toAddr: to, amount: 10n, feeAmount: 1n };
    const id = await rig.send('transfer', fields);
    await rig.accept(id);
    await rig.observation(from, 89n);
    expect(await rig.stateOf(id)).toBe('accepted');
    await rig.observation(to, 10n);
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('Not when the balance does not show it: that is a drift', async () => {
    const addr = await opened(100n);
    const id = await give(addr, 5n);
    await rig.accept(id);
    for (let i = 0; i < 4; i++) await rig.observation(addr, 100n);
    expect((await rig.drifts(addr)).map(({ amount }) => amount)).toEqual([-5n]);
    expect(await rig.stateOf(id)).toBe('accepted');
  });

  it('Also one to oneself, which changes nothing', async () => {
    const addr = await opened(100n);
    const id = await rig.send('transfer', { fromAddr: addr, toAddr: addr, amount: 5n });
    await rig.accept(id);
    await rig.post();
    await rig.observation(addr, 100n);
    expect(await rig.stateOf(id)).toBe('settled');
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
  });

  it('A look that began before the answer neither settles it nor calls it a drift', async () => {
    const addr = await opened(100n);
    rig.clock.advance(2_000);
    const id = await give(addr, 5n);
    await rig.putObservation(addr, 100n);
    await rig.accept(id);
    await rig.post();
    await rig.judge();
    expect(await rig.stateOf(id)).toBe('accepted');
    expect(await rig.wallet(addr)).toMatchObject({
      verdict: 'explained',
      suspectedAmount: null,
    });
  });
});
