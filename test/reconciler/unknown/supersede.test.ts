import { describe, expect, it } from 'vitest';
import { openRig } from '../rig.ts';

const rig = await openRig();

/** An unknown transfer of 10 that two observations of both wallets resolve as not executed. */
async function notExecuted(a: string, b: string): Promise<string> {
  const fields = { fromAddr: a, toAddr: b, amount: 10n, feeAmount: 0n };
  const id = await rig.send('transfer', fields);
  await rig.lose(id);
  rig.clock.advance(36_000);
  for (let i = 0; i < 2; i++) for (const addr of [a, b]) await rig.observe(addr, 100n);
  expect(await rig.stateOf(id)).toBe('not_executed');
  return id;
}

describe('A write resolved as not executed', () => {
  it('It becomes executed when both wallets drift by its effect, and explains both drifts', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(100n)];
    const id = await notExecuted(a, b);
    for (let i = 0; i < 2; i++) await rig.observe(a, 90n);
    expect(await rig.stateOf(id)).toBe('not_executed');
    for (let i = 0; i < 2; i++) await rig.observe(b, 110n);
    expect(await rig.operation(id)).toMatchObject({ state: 'executed' });
    const events = await rig.events(`operation:${id}`);
    expect(events.at(-1)).toMatchObject({
      type: 'operation.resolved',
      data: { outcome: 'executed', supersedes: 'not_executed' },
    });
    expect([...(await rig.drifts(a)), ...(await rig.drifts(b))]).toEqual([]);
    expect((await rig.typesOf(b)).slice(-2)).toEqual([
      'wallet.drift_opened',
      'wallet.drift_closed',
    ]);
    await rig.post();
    expect([await rig.balance(a), await rig.balance(b)]).toEqual([90n, 110n]);
    await rig.observe(a, 90n);
    await rig.observe(b, 110n);
    await rig.observe(a, 90n);
    expect(await rig.stateOf(id)).toBe('settled');
    expect([...(await rig.drifts(a)), ...(await rig.drifts(b))]).toEqual([]);
  });

  it('It becomes executed when a drift with bounds turns out to be exactly its effect', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(100n)];
    const id = await notExecuted(a, b);
    const other = await rig.give(b, 30n);
    await rig.observeSeries(b, 110n, 110n);
    expect(await rig.drifts(b)).toMatchObject([{ amount: null, min: -20n, max: 10n }]);
    await rig.observeSeries(a, 90n, 90n);
    expect(await rig.stateOf(id)).toBe('not_executed');
    await rig.accept(other);
    await rig.observe(b, 140n);
    expect(await rig.stateOf(id)).toBe('executed');
    expect([...(await rig.drifts(a)), ...(await rig.drifts(b))]).toEqual([]);
    await rig.observeAll([a, 90n], [b, 140n], [a, 90n], [b, 140n]);
    expect([...(await rig.drifts(a)), ...(await rig.drifts(b))]).toEqual([]);
    expect([await rig.balance(a), await rig.balance(b)]).toEqual([90n, 140n]);
  });

  it('It is only listed in the evidence when one wallet drifts by its effect', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(100n)];
    const id = await notExecuted(a, b);
    for (let i = 0; i < 2; i++)
      for (const [w, n] of [
        [a, 90n],
        [b, 100n],
      ] as const)
        await rig.observe(w, n);
    expect(await rig.stateOf(id)).toBe('not_executed');
    expect(await rig.drifts(a)).toMatchObject([{ evidence: { equals_not_executed: [id] } }]);
  });

  it('It stays not executed when the change is too late to be its effect', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(100n)];
    const id = await notExecuted(a, b);
    await rig.wait(900_000);
    for (const addr of [a, b]) await rig.observe(addr, 100n);
    for (let i = 0; i < 2; i++)
      for (const [w, n] of [
        [a, 90n],
        [b, 110n],
      ] as const)
        await rig.observe(w, n);
    expect(await rig.stateOf(id)).toBe('not_executed');
    expect(await rig.drifts(b)).toMatchObject([{ evidence: { equals_not_executed: [id] } }]);
  });
});
