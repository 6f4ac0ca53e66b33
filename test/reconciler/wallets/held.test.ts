import { describe, expect, it } from 'vitest';
import { must } from '../../../src/kernel/errors.ts';
import { listTransitions } from '../../../src/operations/operations.ts';
import { makePeople } from '../late.ts';
import { openRig } from '../rig.ts';

const rig = await openRig();
const people = makePeople(rig);

/** What the newest transition of an operation says that it waits for. */
async function waitsFor(id: string) {
  const [newest] = (await listTransitions(rig.database.db, id)).toReversed();
  return newest?.fromState === newest?.toState ? newest?.evidence : null;
}

async function accepted(addr: string, amount: bigint): Promise<string> {
  const id = await rig.give(addr, amount);
  await rig.accept(id);
  return id;
}

describe('An accepted write that a balance does not show', () => {
  it('Two that are lost together wait beside their drift, and say so', async () => {
    const addr = await rig.opened(100n);
    const [seven, nine] = [await accepted(addr, 7n), await accepted(addr, 9n)];
    for (let i = 0; i < 5; i++) await rig.observe(addr, 100n);
    const [drift] = await rig.drifts(addr);
    expect(drift?.amount).toBe(-16n);
    expect([await rig.stateOf(seven), await rig.stateOf(nine)]).toEqual(['accepted', 'accepted']);
    const reason = { drifts: [drift?.id], operations: [] };
    expect([await waitsFor(seven), await waitsFor(nine)]).toEqual([reason, reason]);
    const transitions = await listTransitions(rig.database.db, seven);
    expect(transitions.map(({ toState }) => toState)).toEqual(['sending', 'accepted', 'accepted']);
  });

  it('Two owners take both back, and the drift ends with that', async () => {
    const addr = await rig.opened(100n);
    const ids = [await accepted(addr, 7n), await accepted(addr, 9n)];
    for (let i = 0; i < 4; i++) await rig.observe(addr, 100n);
    for (const id of ids) await people.decide(id, 'not_executed');
    await rig.observeSeries(addr, 100n, 100n);
    expect(await rig.drifts(addr)).toEqual([]);
    expect(await rig.balance(addr)).toBe(100n);
    for (const id of ids) expect((await rig.endOf(id)).types).toEqual(['accepted', 'resolved']);
    const closed = (await rig.eventsOf(addr)).find(({ type }) => type === 'wallet.drift_closed');
    expect(closed?.data).toMatchObject({ how: 'explained', closed_by: { operation_ids: ids } });
  });

  it('Both settle once two owners have booked the drift as a change made elsewhere', async () => {
    const addr = await rig.opened(100n);
    const ids = [await accepted(addr, 7n), await accepted(addr, 9n)];
    for (let i = 0; i < 4; i++) await rig.observe(addr, 100n);
    await people.end(must((await rig.drifts(addr))[0], 'drift').id, { proposal: 'book' });
    await rig.observeSeries(addr, 100n, 100n);
    for (const id of ids) expect(await rig.stateOf(id)).toBe('settled');
  });

  it('It waits while an unknown write could have made the change instead', async () => {
    const addr = await rig.opened(100n);
    const lost = await rig.give(addr, 7n);
    await rig.lose(lost);
    const id = await accepted(addr, 7n);
    await rig.observeSeries(addr, 107n, 107n);
    expect(await rig.stateOf(id)).toBe('accepted');
    expect(await waitsFor(id)).toEqual({ drifts: [], operations: [lost] });
    rig.passQuiescence();
    await rig.observeSeries(addr, 107n, 107n, 107n);
    expect(await rig.stateOf(lost)).toBe('not_executed');
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('It settles beside an unknown write or a drift that could not have made the change', async () => {
    const addr = await rig.opened(100n);
    await rig.lose(await rig.give(addr, 30n));
    await rig.observeSeries(addr, 90n, 90n);
    const id = await accepted(addr, 7n);
    await rig.observeSeries(addr, 97n, 97n);
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('It settles when its other wallet shows it without a doubt', async () => {
    const [from, to] = [await rig.opened(100n), await rig.opened(0n)];
    const lost = await rig.transfer(from, await rig.opened(0n), 10n);
    await rig.lose(lost);
    const id = await rig.transfer(from, to, 10n);
    await rig.accept(id);
    await rig.observeAll([from, 90n], [to, 10n], [from, 90n]);
    expect(await rig.stateOf(id)).toBe('settled');
  });
});

describe('A settled write that was wrong', () => {
  it('Two owners take it back, its events go on, and a drift that it hid ends', async () => {
    const addr = await rig.opened(100n);
    const id = await accepted(addr, 7n);
    await rig.observe(addr, 107n);
    expect(await rig.endOf(id)).toEqual({ state: 'settled', types: ['accepted', 'settled'] });
    await rig.observeSeries(addr, 100n, 100n);
    expect(await rig.driftAmounts(addr)).toEqual([-7n]);
    await people.decide(id, 'not_executed');
    await rig.observeSeries(addr, 100n, 100n);
    const end = { state: 'not_executed', types: ['accepted', 'settled', 'resolved'] };
    expect(await rig.endOf(id)).toEqual(end);
    expect(await rig.balance(addr)).toBe(100n);
    await people.decide(id, 'executed');
    expect((await rig.endOf(id)).types.at(-1)).toBe('resolved');
  });
});
