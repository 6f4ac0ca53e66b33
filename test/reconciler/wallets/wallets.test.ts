import { describe, expect, it } from 'vitest';
import { HOLD_AFTER_OBSERVATIONS } from '../../../src/reconciler/wallets/hold.ts';
import { freshAddr, openRig } from '../rig.ts';

const rig = await openRig();

describe('The opening of a wallet', () => {
  it('A first clean look opens it with what it shows, and the next look is explained', async () => {
    const addr = await rig.opened(100n);
    expect(await rig.balance(addr)).toBe(100n);
    await rig.observe(addr, 100n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained', cause: null });
    expect(await rig.typesOf(addr)).toEqual(['wallet.observed']);
  });

  it('Before the opening is posted another look is explained by it', async () => {
    const addr = freshAddr();
    await rig.observe(addr, 100n);
    await rig.observe(addr, 100n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
    await rig.post();
    expect(await rig.balance(addr)).toBe(100n);
  });

  it.each([
    ['posted', true],
    ['not posted yet', false],
  ])('A write from before, %s, is not part of the opening', async (_title, isPosted) => {
    const addr = freshAddr();
    await rig.accept(await rig.give(addr, 30n));
    if (isPosted) await rig.post();
    await rig.observe(addr, 100n);
    await rig.post();
    expect(await rig.balance(addr)).toBe(100n);
    const [opening] = await rig.database.db.sql<{ amount: bigint }[]>`
      select amount from tallyhook.posting_requests where id = ${`opening:${addr.toLowerCase()}`}`;
    expect(opening?.amount).toBe(70n);
  });

  it('A write that was posted but came after the look does not change the opening', async () => {
    const addr = freshAddr();
    await rig.putObservation(addr, 100n);
    await rig.accept(await rig.give(addr, 30n));
    await rig.post();
    await rig.process();
    await rig.post();
    expect(await rig.balance(addr)).toBe(130n);
    await rig.observe(addr, 130n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
  });

  it('A lost write keeps it unopened, and it is looked at less and less often', async () => {
    const addr = freshAddr();
    await rig.lose(await rig.give(addr, 30n));
    const gaps: number[] = [];
    for (let i = 0; i < 12; i++) {
      await rig.observe(addr, 100n);
      gaps.push(await rig.dueInMs({ kind: 'wallet', addr }));
    }
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'unopened', openedAt: null });
    expect(await rig.drifts(addr)).toEqual([]);
    expect(gaps[0]).toBe(1_000);
    expect(gaps.at(-1)).toBeGreaterThan(4_000);
  });

  it('Before its opening a changed balance is undetermined, never unexplained', async () => {
    const addr = freshAddr();
    const id = await rig.give(addr, 30n);
    await rig.observe(addr, 100n);
    await rig.accept(id);
    await rig.observe(addr, 130n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
    const changed = (await rig.eventsOf(addr)).find((e) => e.type === 'wallet.balance_changed');
    expect(changed?.data).toMatchObject({ explanation: 'undetermined' });
  });
});

describe('A drift', () => {
  it('It is suspected at first sight, opened by the second, and told once', async () => {
    const addr = await rig.opened(100n);
    await rig.observe(addr, 107n);
    expect(await rig.wallet(addr)).toMatchObject({ cause: 'suspected', suspectedAmount: 7n });
    expect(await rig.drifts(addr)).toEqual([]);
    expect(await rig.dueInMs({ kind: 'wallet', addr })).toBe(1_000);
    await rig.observe(addr, 107n);
    const [drift] = await rig.drifts(addr);
    expect(drift).toMatchObject({ amount: 7n, state: 'open', closedAt: null });
    for (let i = 0; i < 3; i++) await rig.observe(addr, 107n);
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
    const actions = await rig.database.db.sql<{ action: string }[]>`
      select action from tallyhook.drift_actions where drift_id = ${drift?.id ?? ''} order by id`;
    expect(actions.map(({ action }) => action)).toEqual(['opened']);
  });

  it('A change that is gone at the second look is none', async () => {
    const addr = await rig.opened(100n);
    await rig.observe(addr, 107n);
    await rig.observe(addr, 100n);
    expect(await rig.wallet(addr)).toMatchObject({
      verdict: 'explained',
      suspectedAmount: null,
    });
    await rig.observe(addr, 107n);
    expect(await rig.drifts(addr)).toEqual([]);
  });

  it('Several changes are drifts of their own, and a full return closes them all', async () => {
    const addr = await rig.opened(100n);
    for (const balance of [107n, 107n, 104n, 104n]) await rig.observe(addr, balance);
    expect((await rig.drifts(addr)).map(({ amount }) => amount)).toEqual([7n, -3n]);
    await rig.observe(addr, 100n);
    expect(await rig.drifts(addr)).toHaveLength(2);
    await rig.observe(addr, 100n);
    expect(await rig.drifts(addr)).toEqual([]);
    expect((await rig.typesOf(addr)).filter((type) => type.includes('drift'))).toEqual([
      'wallet.drift_opened',
      'wallet.drift_opened',
      'wallet.drift_closed',
      'wallet.drift_closed',
    ]);
  });

  it('A balance that never stands still is looked at less and less often', async () => {
    const addr = await rig.opened(100n);
    const gaps: number[] = [];
    for (let i = 1n; i < 14n; i++) {
      await rig.observe(addr, 100n + i * i);
      gaps.push(await rig.dueInMs({ kind: 'wallet', addr }));
    }
    expect(gaps[0]).toBe(1_000);
    expect(gaps.at(-1)).toBeGreaterThan(20_000);
    expect(await rig.drifts(addr)).toEqual([]);
  });

  it('A write that people have to decide neither hides it nor clouds the wallet', async () => {
    const addr = await rig.opened(100n);
    const id = await rig.give(addr, 30n);
    await rig.lose(id);
    await rig.wait(700_000);
    await rig.process();
    await rig.observe(addr, 100n);
    await rig.observe(addr, 100n);
    expect(await rig.stateOf(id)).toBe('undecided');
    await rig.observe(addr, 107n);
    await rig.observe(addr, 107n);
    expect((await rig.drifts(addr)).map(({ amount }) => amount)).toEqual([7n]);
    const other = await rig.give(addr, 5n);
    await rig.accept(other);
    await rig.observe(addr, 112n);
    expect(await rig.stateOf(other)).toBe('settled');
    expect(await rig.dueInMs({ kind: 'wallet', addr })).toBeGreaterThan(50_000);
  });

  it('One that appears beside a lost write comes to light when people are asked', async () => {
    const addr = await rig.opened(100n);
    const id = await rig.give(addr, 30n);
    await rig.lose(id);
    await rig.observe(addr, 103n);
    expect(await rig.wallet(addr)).toMatchObject({ cause: 'no_subset_explains' });
    for (let i = 0; i < 14; i++) await rig.observe(addr, 103n, 60_000);
    expect(await rig.stateOf(id)).toBe('undecided');
    expect((await rig.drifts(addr)).map(({ amount }) => amount)).toEqual([3n]);
  });
});

describe('A write settles', () => {
  it('When a clean look that must show it is explained', async () => {
    const addr = await rig.opened(100n);
    const id = await rig.give(addr, 5n);
    await rig.accept(id);
    await rig.observe(addr, 105n, 100);
    expect(await rig.stateOf(id)).toBe('accepted');
    expect(await rig.dueInMs({ kind: 'wallet', addr })).toBe(1_000);
    await rig.observe(addr, 105n);
    expect(await rig.stateOf(id)).toBe('settled');
    const types = (await rig.events(`operation:${id}`)).map(({ type }) => type);
    expect(types).toEqual(['operation.accepted', 'operation.settled']);
  });

  it('Only when each of its wallets shows it', async () => {
    const [from, to] = [await rig.opened(100n), await rig.opened(0n)];
    const fields = { fromAddr: from, toAddr: to, amount: 10n, feeAmount: 1n };
    const id = await rig.send('transfer', fields);
    await rig.accept(id);
    await rig.observe(from, 89n);
    expect(await rig.stateOf(id)).toBe('accepted');
    await rig.observe(to, 10n);
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('Not when the balance does not show it: that is a drift', async () => {
    const addr = await rig.opened(100n);
    const id = await rig.give(addr, 5n);
    await rig.accept(id);
    for (let i = 0; i < 4; i++) await rig.observe(addr, 100n);
    expect((await rig.drifts(addr)).map(({ amount }) => amount)).toEqual([-5n]);
    expect(await rig.stateOf(id)).toBe('accepted');
  });

  it('Also one to oneself, which changes nothing', async () => {
    const addr = await rig.opened(100n);
    const id = await rig.send('transfer', { fromAddr: addr, toAddr: addr, amount: 5n });
    await rig.accept(id);
    await rig.post();
    await rig.observe(addr, 100n);
    expect(await rig.stateOf(id)).toBe('settled');
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
  });

  it('A look that began before the answer neither settles it nor calls it a drift', async () => {
    const addr = await rig.opened(100n);
    rig.clock.advance(2_000);
    const id = await rig.give(addr, 5n);
    await rig.putObservation(addr, 100n);
    await rig.accept(id);
    await rig.post();
    await rig.process();
    expect(await rig.stateOf(id)).toBe('accepted');
    expect(await rig.wallet(addr)).toMatchObject({
      verdict: 'explained',
      suspectedAmount: null,
    });
  });
});

/** Until when new writes on the wallet wait, in milliseconds from now; undefined when none do. */
async function heldMs(addr: string): Promise<number | undefined> {
  const rows = await rig.database.db.sql<{ until: number }[]>`
    select until from tallyhook.holds where wallet_key = ${addr.toLowerCase()}`;
  return rows[0] && rows[0].until - rig.clock.now();
}

describe('A wallet on which every look meets writes under way', () => {
  it('New writes wait for one look after several, and that look releases them', async () => {
    const addr = await rig.opened(100n);
    await rig.give(addr, 5n);
    for (let i = 1; i < HOLD_AFTER_OBSERVATIONS; i++) await rig.observe(addr, 100n);
    expect(await heldMs(addr)).toBeUndefined();
    await rig.observe(addr, 100n);
    expect(await heldMs(addr)).toBe(3_000);
    expect(await rig.dueInMs({ kind: 'wallet', addr })).toBe(1_001);
    await rig.observe(addr, 100n);
    expect(await heldMs(addr)).toBeUndefined();
    for (let i = 2; i < HOLD_AFTER_OBSERVATIONS; i++) await rig.observe(addr, 100n);
    expect(await heldMs(addr)).toBeUndefined();
    await rig.observe(addr, 100n);
    expect(await heldMs(addr)).toBeGreaterThan(0);
  });

  it('Nothing waits for a lost write alone, which no look makes clean', async () => {
    const addr = await rig.opened(100n);
    await rig.lose(await rig.give(addr, 5n));
    for (let i = 0; i < HOLD_AFTER_OBSERVATIONS; i++) await rig.observe(addr, 100n, 200);
    expect(await heldMs(addr)).toBeUndefined();
  });

  it('Nothing waits where looks are judged late', async () => {
    const addr = await rig.opened(100n);
    await rig.give(addr, 5n);
    for (let i = 1; i < HOLD_AFTER_OBSERVATIONS; i++) await rig.observe(addr, 100n);
    await rig.putObservation(addr, 100n);
    rig.clock.advance(6_000);
    await rig.process();
    expect(await heldMs(addr)).toBeUndefined();
  });
});
