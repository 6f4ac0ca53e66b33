import { describe, expect, it } from 'vitest';
import { freshAddr, openRig } from '../rig.ts';

const rig = await openRig();

/** A new wallet whose observation before the first write is not processed yet. */
async function observedOnce(balance: bigint): Promise<string> {
  const addr = freshAddr();
  await rig.putObservation(addr, balance);
  return addr;
}

/** A give whose answer is lost. */
async function lostGive(addr: string, amount: bigint): Promise<string> {
  const id = await rig.give(addr, amount);
  await rig.lose(id);
  return id;
}

describe('The last observation before the first write of a wallet', () => {
  it('It opens the wallet although a newer one replaced it unprocessed', async () => {
    const addr = await observedOnce(100n);
    await lostGive(addr, 30n);
    await rig.observe(addr, 130n);
    await rig.post();
    expect(await rig.balance(addr)).toBe(100n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained', cause: null });
    expect(await rig.typesOf(addr)).toEqual(['wallet.observed']);
  });

  it('It proves that a write with a lost answer was executed', async () => {
    const addr = await observedOnce(100n);
    const id = await lostGive(addr, 30n);
    await rig.observeSeries(addr, 130n, 130n);
    expect(['executed', 'settled']).toContain(await rig.stateOf(id));
    expect(await rig.operation(id)).toMatchObject({ evidence: { basis: 'one_sided' } });
    await rig.post();
    expect(await rig.balance(addr)).toBe(130n);
  });

  it('It proves that a write with a lost answer was not executed', async () => {
    const addr = await observedOnce(100n);
    const id = await lostGive(addr, 30n);
    rig.passQuiescence();
    await rig.observeSeries(addr, 100n, 100n);
    expect(await rig.stateOf(id)).toBe('not_executed');
    await rig.post();
    expect(await rig.balance(addr)).toBe(100n);
  });

  it('It serves writes that were sent at the same time', async () => {
    const addr = await observedOnce(100n);
    const ids = [await lostGive(addr, 30n), await lostGive(addr, 5n)];
    rig.passQuiescence();
    await rig.observeSeries(addr, 105n, 105n);
    expect(await Promise.all(ids.map(rig.stateOf))).toEqual(['not_executed', 'executed']);
  });

  it('It opens a wallet that is never quiet, and the writes on it settle', async () => {
    const addr = await observedOnce(100n);
    const sent: string[] = [];
    for (let i = 1n; i <= 20n; i++) {
      sent.push(await rig.give(addr, 10n));
      const answered = sent.at(-16);
      if (answered) await rig.accept(answered);
      await rig.observe(addr, 100n + 10n * i);
    }
    expect(await rig.stateOf(sent[0] ?? '')).toBe('settled');
    expect(await rig.drifts(addr)).toEqual([]);
  });

  it('What changed elsewhere since then is a drift', async () => {
    const addr = await observedOnce(100n);
    await lostGive(addr, 30n);
    await rig.observeSeries(addr, 107n, 107n);
    expect(await rig.drifts(addr)).toMatchObject([{ amount: null, min: -23n, max: 7n }]);
  });
});

describe('An observation that is no evidence of the balance before the first write', () => {
  it('It does not open the wallet when it overlaps the send', async () => {
    const addr = freshAddr();
    const startedAt = rig.clock.now();
    const id = await lostGive(addr, 30n);
    await rig.put({ kind: 'wallet', addr }, 'seen', { addr, balance: 130n, status: 1 }, startedAt);
    rig.passQuiescence();
    await rig.observeSeries(addr, 130n, 130n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'unopened', openedAt: null });
    expect(await rig.stateOf(id)).toBe('unknown');
  });

  it('It does not open the wallet when it ends in the millisecond of the send', async () => {
    const addr = freshAddr();
    await rig.putObservation(addr, 130n);
    // `send` lets 10 ms pass first.
    rig.clock.advance(-10);
    await lostGive(addr, 30n);
    await rig.observeSeries(addr, 130n, 130n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'unopened' });
  });

  it('It does not open the wallet when it is about another address', async () => {
    const addr = freshAddr();
    const other = { addr: freshAddr(), balance: 100n, status: 1 };
    await rig.put({ kind: 'wallet', addr }, 'seen', other);
    await lostGive(addr, 30n);
    await rig.observeSeries(addr, 130n, 130n);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'unopened' });
  });
});
