import { describe, expect, it } from 'vitest';
import { freshAddr, openRig } from '../rig.ts';

const rig = await openRig();

describe('The opening of a wallet', () => {
  it('The first quiet observation opens a wallet, and the next one is explained', async () => {
    const addr = await rig.opened(100n);
    expect(await rig.balance(addr)).toBe(100n);
    await rig.observe(addr, 100n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained', cause: null });
    expect(await rig.typesOf(addr)).toEqual(['wallet.observed']);
  });

  it('An observation before the opening is posted is explained by it', async () => {
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
  ])('An earlier write, %s, is not part of the opening', async (_title, isPosted) => {
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

  it('A posted write from after the observation does not change the opening', async () => {
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

  it('An unknown write keeps a wallet unopened, and its polls become rarer', async () => {
    const addr = freshAddr();
    await rig.lose(await rig.give(addr, 30n));
    const gaps: number[] = [];
    for (let i = 0; i < 12; i++) {
      await rig.observe(addr, 100n);
      gaps.push(await rig.dueInMs({ kind: 'wallet', addr }));
    }
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'unopened', openedAt: null });
    expect(await rig.drifts(addr)).toEqual([]);
    expect(gaps[0]).toBeLessThan(2_000);
    expect(gaps.at(-1)).toBeGreaterThan(4_000);
  });

  it('A balance change before the opening is undetermined', async () => {
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

it('A changed status of a wallet is announced with the one before', async () => {
  const addr = await rig.opened(100n);
  rig.clock.advance(2_000);
  await rig.put({ kind: 'wallet', addr }, 'seen', { addr, balance: 100n, status: 3 });
  await rig.process();
  const [, changed, ...others] = await rig.eventsOf(addr);
  expect(others).toEqual([]);
  expect(changed).toMatchObject({
    type: 'wallet.status_changed',
    data: { addr, previous: { status: 1 }, current: { balance: '100', status: 3 } },
  });
});

describe('A drift', () => {
  it('A drift is suspected by one observation, opened by the next, and announced once', async () => {
    const addr = await rig.opened(100n);
    await rig.observe(addr, 107n);
    expect(await rig.wallet(addr)).toMatchObject({
      cause: 'suspected',
      suspectedMin: 7n,
      suspectedMax: 7n,
    });
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

  it('Its window begins at the last poll that showed the old balance, also if that was not evaluated', async () => {
    const addr = await rig.opened(100n);
    await rig.observe(addr, 100n);
    rig.clock.advance(20_000);
    const last = await rig.putObservation(addr, 100n);
    await rig.observe(addr, 90n);
    await rig.observe(addr, 93n);
    await rig.observe(addr, 93n);
    const [drift] = await rig.drifts(addr);
    expect(drift).toMatchObject({ amount: -7n, windowFrom: last.startedAt });
  });

  it('A change that the second observation does not show is no drift', async () => {
    const addr = await rig.opened(100n);
    await rig.observe(addr, 107n);
    await rig.observe(addr, 100n);
    expect(await rig.wallet(addr)).toMatchObject({
      verdict: 'explained',
      suspectedMin: null,
    });
    await rig.observe(addr, 107n);
    expect(await rig.drifts(addr)).toEqual([]);
  });

  it('Several changes are separate drifts, and a full return closes all of them', async () => {
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

  it('A balance that keeps changing is polled less and less often', async () => {
    const addr = await rig.opened(100n);
    const gaps: number[] = [];
    for (let i = 1n; i < 14n; i++) {
      await rig.observe(addr, 100n + i * i);
      gaps.push(await rig.dueInMs({ kind: 'wallet', addr }));
    }
    expect(gaps[0]).toBe(1_000);
    expect(gaps.at(-1)).toBeGreaterThan(4_000);
    expect(await rig.drifts(addr)).toEqual([]);
  });

  it('An undecided write hides no drift, and other writes on the wallet settle', async () => {
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

  it('An undecided write keeps what people decide by, of each wallet that was observed', async () => {
    const addr = await rig.opened(100n);
    const id = await rig.give(addr, 40n);
    await rig.lose(id);
    const other = await rig.give(addr, 9n);
    await rig.lose(other);
    for (let i = 0; i < 14; i++) await rig.observe(addr, 145n, 60_000);
    expect(await rig.stateOf(id)).toBe('undecided');
    expect(await rig.operation(id)).toMatchObject({
      evidence: {
        wallets: [
          {
            wallet: addr.toLowerCase(),
            balance: '145',
            without_open: '100',
            if_executed: '40',
            others_count: 1,
            others: [{ operation_id: other, if_executed: '9' }],
          },
        ],
      },
    });
  });

  it('A drift beside an unknown write has bounds until the write is undecided', async () => {
    const addr = await rig.opened(100n);
    const id = await rig.give(addr, 30n);
    await rig.lose(id);
    await rig.observeSeries(addr, 103n, 103n);
    expect(await rig.drifts(addr)).toMatchObject([{ amount: null, min: -27n, max: 3n }]);
    for (let i = 0; i < 14; i++) await rig.observe(addr, 103n, 60_000);
    expect(await rig.stateOf(id)).toBe('undecided');
    expect(await rig.drifts(addr)).toMatchObject([{ amount: 3n, min: 3n, max: 3n }]);
    const types = await rig.typesOf(addr);
    expect(types.filter((type) => type.includes('drift'))).toEqual(['wallet.drift_opened']);
  });
});

describe('A drift with bounds', () => {
  it('It closes when the change is taken back after the operations beside it have ended', async () => {
    const addr = await rig.opened(100n);
    const id = await rig.give(addr, 30n);
    await rig.observeSeries(addr, 150n, 150n);
    expect(await rig.drifts(addr)).toMatchObject([{ amount: null, min: 20n, max: 50n }]);
    await rig.accept(id);
    await rig.observeSeries(addr, 130n, 130n);
    expect(await rig.drifts(addr)).toEqual([]);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
  });
});

describe('Two drifts with bounds', () => {
  it('They become one when only their sum is known exactly', async () => {
    const addr = await rig.opened(100n);
    const ids = [await rig.give(addr, 30n), await rig.give(addr, 7n)];
    await rig.observeSeries(addr, 150n, 150n);
    await rig.observeSeries(addr, 350n, 350n);
    const two = await rig.drifts(addr);
    expect(two.map(({ amount }) => amount)).toEqual([null, null]);
    for (const id of ids) await rig.lose(id);
    rig.passQuiescence();
    for (const id of ids) await rig.report(id);
    await rig.observeSeries(addr, 350n, 350n);
    const [drift, ...others] = await rig.drifts(addr);
    const [first] = two;
    expect(others).toEqual([]);
    expect(drift).toMatchObject({ amount: 213n, windowFrom: first?.windowFrom });
    const events = (await rig.eventsOf(addr)).filter(({ type }) => type.includes('drift')).slice(2);
    const merged = { how: 'merged', closed_by: { drift_id: drift?.id } };
    expect(events).toMatchObject([
      ...two.map(({ id }) => ({ type: 'wallet.drift_closed', data: { drift_id: id, ...merged } })),
      { type: 'wallet.drift_opened', data: { drift_id: drift?.id, amount: '213' } },
    ]);
  });
});

describe('A wallet under constant traffic', () => {
  /** Gives of 10, of which the last 15 are in flight at any time and show at once. */
  async function busyWallet() {
    const addr = await rig.opened(100n);
    const sent: string[] = [];
    let balance = 100n;
    /** Sends one more give, accepts the one that was sent 15 before, and observes the wallet. */
    return {
      addr,
      sent,
      async next(outside = 0n) {
        sent.push(await rig.give(addr, 10n));
        balance += 10n + outside;
        const answered = sent.at(-16);
        if (answered) await rig.accept(answered);
        await rig.post();
        await rig.observe(addr, balance, 200);
      },
    };
  }

  it('Its writes settle although no observation is quiet', async () => {
    const wallet = await busyWallet();
    for (let i = 0; i < 40; i++) await wallet.next();
    const states = await Promise.all(wallet.sent.slice(0, 15).map((id) => rig.stateOf(id)));
    expect(new Set(states)).toEqual(new Set(['settled']));
    expect(await rig.drifts(wallet.addr)).toEqual([]);
    expect(await rig.stateOf(wallet.sent.at(-1) ?? '')).toBe('sending');
  });

  it('What is taken from it elsewhere is a drift with bounds, and its writes go on settling', async () => {
    const wallet = await busyWallet();
    for (let i = 0; i < 20; i++) await wallet.next();
    await wallet.next(-50_000n);
    for (let i = 0; i < 20; i++) await wallet.next();
    const [drift, ...others] = await rig.drifts(wallet.addr);
    expect(others).toEqual([]);
    expect(drift?.min).toBeLessThanOrEqual(-50_000n);
    expect(drift?.max).toBeGreaterThanOrEqual(-50_000n);
    expect(drift?.max).toBeLessThan(-49_000n);
    expect(await rig.stateOf(wallet.sent[15] ?? '')).toBe('settled');
  });
});
