import { describe, expect, it } from 'vitest';
import { must } from '../../../src/kernel/errors.ts';
import { asOf, giveOf, lateReports, makePeople } from '../late.ts';
import { openRig } from '../rig.ts';

const rig = await openRig();
const report = lateReports(rig);
const people = makePeople(rig);

/** Drifts of a wallet in the order of their change: amount, state and what closed them. */
async function driftsOf(addr: string) {
  const rows = await rig.database.owner.sql<{ amount: bigint; state: string }[]>`
    select amount, state from tallyhook.drifts where wallet_key = ${addr.toLowerCase()}
    order by window_to, opened_at, id`;
  return rows.map(({ amount, state }) => `${amount} ${state}`);
}

/** Changes a wallet elsewhere and observes it twice; answers an instant between. */
async function change(addr: string, balance: bigint): Promise<number> {
  rig.clock.advance(10_000);
  const at = rig.clock.now();
  await rig.observeSeries(addr, balance, balance);
  return at;
}

describe('What becomes known late', () => {
  it('Of two equal drifts, a report ends the one in whose window the transfer was', async () => {
    const cases = [
      [0, ['-50 explained', '-50 open'], [50n, 50n]],
      [1, ['-50 open', '-50 explained'], [100n, 50n]],
    ] as const;
    for (const [which, states, balances] of cases) {
      const addr = await rig.opened(100n);
      const times = [await change(addr, 50n), await change(addr, 0n)];
      expect(await driftsOf(addr)).toEqual(['-50 open', '-50 open']);
      await report(giveOf(addr, -50n, must(times[which], 'time')));
      await rig.observeSeries(addr, 0n, 0n);
      expect(await driftsOf(addr)).toEqual(states);
      const [first = 0, second = 0] = times;
      expect([await asOf(rig, addr, second), await asOf(rig, addr, rig.clock.now())]).toEqual(
        balances,
      );
      expect(await asOf(rig, addr, first)).toBe(100n);
    }
  });

  it('A change between the report of an earlier one and the next poll is a drift of its own', async () => {
    const addr = await rig.opened(500n);
    const at = await change(addr, 377n);
    await report(giveOf(addr, -123n, at));
    await rig.post();
    await rig.observeSeries(addr, 151n, 151n, 151n);
    expect(await driftsOf(addr)).toEqual(['-123 explained', '-226 open']);
    expect((await rig.typesOf(addr)).filter((type) => type.includes('drift'))).toEqual([
      'wallet.drift_opened',
      'wallet.drift_closed',
      'wallet.drift_opened',
    ]);
  });

  it('A report of a part of a drift leaves a drift of the rest in the same window', async () => {
    const addr = await rig.opened(100n);
    const at = await change(addr, 30n);
    await report(giveOf(addr, -50n, at));
    await rig.observeSeries(addr, 30n, 30n, 30n);
    expect(await driftsOf(addr)).toEqual(['-70 explained', '-20 open']);
    const [whole, rest] = await rig.database.owner.sql<{ from: number; to: number }[]>`
      select window_from as from, window_to as to from tallyhook.drifts
      where wallet_key = ${addr.toLowerCase()} order by opened_at, id`;
    expect(rest).toEqual(whole);
    await report(giveOf(addr, -20n, at));
    await rig.observe(addr, 30n);
    expect(await driftsOf(addr)).toEqual(['-70 explained', '-20 explained']);
    expect(await asOf(rig, addr, rig.clock.now())).toBe(30n);
  });

  it('Reports of all parts of a drift end it at once', async () => {
    const addr = await rig.opened(100n);
    const at = await change(addr, 30n);
    await report(giveOf(addr, -50n, at), giveOf(addr, -20n, at));
    await rig.observe(addr, 30n);
    expect(await driftsOf(addr)).toEqual(['-70 explained']);
  });

  it('A report of a write from after a drift does not end it', async () => {
    const addr = await rig.opened(100n);
    await change(addr, 50n);
    rig.clock.advance(10_000);
    const later = rig.clock.now();
    await report(giveOf(addr, -50n, later));
    await rig.observeSeries(addr, 0n, 0n);
    expect(await driftsOf(addr)).toEqual(['-50 open']);
  });

  it('A change that a report brings to light began between the reported one and the next poll', async () => {
    const addr = await rig.opened(100n);
    rig.clock.advance(10_000);
    const given = rig.clock.now();
    rig.clock.advance(10_000);
    const taken = rig.clock.now();
    rig.clock.advance(10_000);
    const polled = rig.clock.now();
    await rig.observe(addr, 100n);
    const before = rig.clock.now();
    await rig.observeSeries(addr, 100n, 101n, 101n, 101n);
    await report(giveOf(addr, 50n, given));
    await rig.observe(addr, 101n);
    expect(await driftsOf(addr)).toEqual(['-50 open', '1 open']);
    const [hidden] = await rig.database.owner.sql<{ from: number; to: number }[]>`
      select window_from as from, window_to as to from tallyhook.drifts
      where wallet_key = ${addr.toLowerCase()} and amount = -50`;
    expect(hidden?.from).toBe(given);
    expect(hidden?.to).toBeGreaterThanOrEqual(polled);
    await report(giveOf(addr, -50n, taken));
    await rig.observe(addr, 101n);
    expect(await driftsOf(addr)).toEqual(['-50 explained', '1 open']);
    expect(await asOf(rig, addr, taken)).toBe(150n);
    expect(await asOf(rig, addr, before)).toBe(100n);
  });

  it('A report of a part of what took back a drift leaves the rest between the same polls', async () => {
    const addr = await rig.opened(100n);
    await change(addr, 80n);
    const before = rig.clock.now();
    // Two changes of 10 before the next poll, of which the second one is reported.
    rig.clock.advance(10_000);
    const first = rig.clock.now();
    rig.clock.advance(10_000);
    const second = rig.clock.now();
    const after = await change(addr, 100n);
    expect(await driftsOf(addr)).toEqual(['-20 returned']);
    await report(giveOf(addr, 10n, second));
    await rig.observe(addr, 100n);
    expect(await driftsOf(addr)).toEqual(['-20 returned', '-10 open']);
    const [rest] = await rig.drifts(addr);
    expect(rest?.windowFrom).toBeLessThan(before);
    expect(rest?.windowTo).toBeGreaterThanOrEqual(after);
    await report(giveOf(addr, 10n, first));
    await rig.observe(addr, 100n);
    expect(await driftsOf(addr)).toEqual(['-20 returned', '-10 explained', '-20 open']);
    expect(await asOf(rig, addr, rig.clock.now())).toBe(120n);
  });

  it('A return in full ends the older of two equal drifts', async () => {
    const addr = await rig.opened(100n);
    await change(addr, 50n);
    await change(addr, 0n);
    await change(addr, 50n);
    expect(await driftsOf(addr)).toEqual(['-50 returned', '-50 open']);
  });

  it('A report ends a drift although it waits for its second owner', async () => {
    const addr = await rig.opened(100n);
    const at = await change(addr, 50n);
    const [drift] = await rig.drifts(addr);
    await people.drifts.propose([drift?.id ?? ''], { reason: 'r', proposal: 'book' }, people.ann);
    await report(giveOf(addr, -50n, at));
    await rig.observe(addr, 50n);
    expect(await driftsOf(addr)).toEqual(['-50 explained']);
  });

  it('A late report of one of two booked drifts is linked to the booking of its window', async () => {
    const addr = await rig.opened(100n);
    const first = await change(addr, 50n);
    await change(addr, 0n);
    for (const { id } of await rig.drifts(addr)) await people.end(id, { proposal: 'book' });
    await rig.observe(addr, 0n);
    await report(giveOf(addr, -50n, first));
    await rig.observeSeries(addr, 0n, 0n);
    const [back] = await rig.drifts(addr);
    await people.end(must(back, 'drift').id, {});
    await rig.observeSeries(addr, 0n, 0n);
    expect(await driftsOf(addr)).toEqual(['-50 linked', '50 explained', '-50 booked']);
    expect(await rig.drifts(addr)).toEqual([]);
  });
});

describe('A write that counts as not executed and shows later', () => {
  /** A give that two observations resolve as not executed, and that shows after all. */
  async function shownLate(addr: string) {
    const id = await rig.give(addr, 10n);
    await rig.lose(id);
    rig.clock.advance(36_000);
    await rig.observeSeries(addr, 100n, 100n);
    expect(await rig.stateOf(id)).toBe('not_executed');
    const before = rig.clock.now();
    await change(addr, 110n);
    expect(await driftsOf(addr)).toEqual(['10 open']);
    rig.clock.advance(60_000);
    return { id, before, shown: rig.clock.now() };
  }

  it.each([
    ['The late answer', (id: string) => rig.accept(id)],
    ['The decision of two owners', (id: string) => people.decide(id, 'executed')],
  ])(
    '%s takes effect in the window of the drift, for the operation and its entries',
    async (_title, known) => {
      const addr = await rig.opened(100n);
      const { id, before, shown } = await shownLate(addr);
      await known(id);
      await rig.observeSeries(addr, 110n, 110n);
      await rig.post();
      expect(await driftsOf(addr)).toEqual(['10 explained']);
      expect(await asOf(rig, addr, before)).toBe(100n);
      expect(await asOf(rig, addr, shown)).toBe(110n);
      const operation = must(await rig.operation(id), 'operation');
      const [posted] = await rig.database.owner.sql<{ at: number }[]>`
      select effective_at as at from tallyhook.transactions where operation_id = ${id}
      order by posting desc limit 1`;
      expect(posted?.at).toBe(operation.effectiveAt);
    },
  );
});
