import { describe, expect, it } from 'vitest';
import { openRig } from '../rig.ts';

const rig = await openRig();

describe('Settling', () => {
  it('A write settles when a quiet observation that requires it is explained', async () => {
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

  it('Each event of a write has the next number, also when two people take it back', async () => {
    const addr = await rig.opened(100n);
    const refused = await rig.give(addr, 9n);
    await rig.conclude(refused, { class: 'rejected', status: 400, code: '400', message: 'no' });
    const accepted = await rig.give(addr, 5n);
    await rig.accept(accepted);
    const lost = await rig.give(addr, 17n);
    await rig.lose(lost);
    await rig.report(lost);
    await rig.observe(addr, 122n);
    const numbers = async (id: string) => {
      const rows = await rig.database.owner.sql<{ subjectSeq: bigint }[]>`
        select subject_seq from tallyhook.events where subject = ${`operation:${id}`}
        order by recorded_at, id`;
      return rows.map(({ subjectSeq }) => subjectSeq);
    };
    expect(await numbers(refused)).toEqual([1n]);
    expect(await numbers(accepted)).toEqual([1n, 2n]);
    expect(await numbers(lost)).toEqual([1n, 2n, 3n]);
    for (const id of [accepted, lost]) expect((await rig.endOf(id)).state).toBe('settled');
  });

  it('An acceptance that follows a refusal continues the numbers of its events', async () => {
    const id = await rig.give(await rig.opened(100n), 5n);
    await rig.conclude(id, { class: 'rejected', status: 400, code: '400', message: 'no' });
    await rig.accept(id);
    expect(await rig.endOf(id)).toEqual({ state: 'accepted', types: ['rejected', 'accepted'] });
  });

  it('A transfer settles only when each of its wallets shows it', async () => {
    const [from, to] = [await rig.opened(100n), await rig.opened(0n)];
    const fields = { fromAddr: from, toAddr: to, amount: 10n, feeAmount: 1n };
    const id = await rig.send('transfer', fields);
    await rig.accept(id);
    await rig.observe(from, 89n);
    expect(await rig.stateOf(id)).toBe('accepted');
    await rig.observe(to, 10n);
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('A write that the balance does not show stays accepted, and a drift opens', async () => {
    const addr = await rig.opened(100n);
    const id = await rig.give(addr, 5n);
    await rig.accept(id);
    for (let i = 0; i < 4; i++) await rig.observe(addr, 100n);
    expect((await rig.drifts(addr)).map(({ amount }) => amount)).toEqual([-5n]);
    expect(await rig.stateOf(id)).toBe('accepted');
  });

  it('A transfer that one of its wallets does not show stays accepted, in both orders of observations', async () => {
    const [from, to] = [await rig.opened(100n), await rig.opened(0n)];
    const id = await rig.transfer(from, to, 10n);
    await rig.accept(id);
    await rig.observeSeries(to, 0n, 0n);
    expect(await rig.driftAmounts(to)).toEqual([-10n]);
    await rig.observe(from, 90n);
    expect(await rig.stateOf(id)).toBe('accepted');
    await rig.observeAll([to, 10n], [to, 10n], [from, 90n]);
    expect(await rig.driftAmounts(to)).toEqual([]);
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('An observation from before the outcome was known does not confirm it', async () => {
    const [from, to] = [await rig.opened(100n), await rig.opened(0n)];
    const id = await rig.transfer(from, to, 10n);
    await rig.lose(id);
    await rig.observe(to, 0n);
    await rig.report(id);
    await rig.observe(from, 90n);
    expect(await rig.stateOf(id)).toBe('executed');
    await rig.observe(to, 10n);
    expect(await rig.stateOf(id)).toBe('settled');
  });

  it('A transfer of a wallet to itself settles', async () => {
    const addr = await rig.opened(100n);
    const id = await rig.send('transfer', { fromAddr: addr, toAddr: addr, amount: 5n });
    await rig.accept(id);
    await rig.post();
    await rig.observe(addr, 100n);
    expect(await rig.stateOf(id)).toBe('settled');
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'explained' });
  });

  it('An observation that began before the answer neither settles the write nor opens a drift', async () => {
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
      suspectedMin: null,
    });
  });
});
