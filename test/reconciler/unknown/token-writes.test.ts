import { describe, expect, it } from 'vitest';
import { openRig } from '../rig.ts';

const DAY_MS = 86_400_000;
const rig = await openRig();

/** An unknown transfer of 10 from a wallet that held 100 to one that held nothing. */
async function lostTransfer() {
  const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
  const id = await rig.transfer(a, b, 10n);
  await rig.lose(id);
  return { a, b, id };
}

describe('An unknown transfer between two observed wallets', () => {
  it('An unknown transfer that two observations of both wallets show is executed, posted once and settled', async () => {
    const { a, b, id } = await lostTransfer();
    await rig.observeAll([a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.observeAll([a, 90n], [b, 10n]);
    expect(await rig.endOf(id)).toMatchObject({ state: 'executed' });
    expect(await rig.operation(id)).toMatchObject({
      evidence: { basis: 'two_sided' },
      effectiveBasis: 'observed',
    });
    await rig.post();
    expect([await rig.balance(a), await rig.balance(b)]).toEqual([90n, 10n]);
    await rig.observeAll([a, 90n], [b, 10n], [a, 90n]);
    expect(await rig.endOf(id)).toEqual({
      state: 'settled',
      types: ['unknown', 'resolved', 'settled'],
    });
    expect([...(await rig.drifts(a)), ...(await rig.drifts(b))]).toEqual([]);
  });

  it('A transfer is not executed only if both observations began after quiescence and read lag', async () => {
    const { a, b, id } = await lostTransfer();
    for (let i = 0; i < 5; i++) await rig.observeAll([a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    const sent = await rig.operation(id);
    const quiescent = (sent?.sendDeadlineAt ?? 0) + 30_000 + 1_000;
    rig.clock.set(quiescent - 6_000);
    await rig.observeAll([a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.observeAll([a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.observeAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    expect(await rig.endOf(id)).toEqual({ state: 'not_executed', types: ['unknown', 'resolved'] });
  });

  it('A transfer that is applied after observations without it is executed', async () => {
    const { a, b, id } = await lostTransfer();
    await rig.observeAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    rig.clock.advance(20_000);
    await rig.observeAll([a, 90n], [b, 10n], [a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('A transfer that only one of two wallets shows stays unknown', async () => {
    const { a, b, id } = await lostTransfer();
    await rig.observeAll([a, 90n], [b, 0n], [a, 90n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    // The candidate rests on the older observation of one of them; it needs two new ones.
    await rig.observeAll([b, 10n], [a, 90n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.observeAll([b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('A transfer that showed and is gone after quiescence becomes undecided', async () => {
    const { a, b, id } = await lostTransfer();
    await rig.observeAll([a, 90n], [b, 10n]);
    rig.passQuiescence();
    await rig.observeAll([a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('undecided');
    expect(await rig.operation(id)).toMatchObject({ evidence: { indicated: 'contradictory' } });
  });

  it('A transfer that first shows after quiescence becomes undecided', async () => {
    const { a, b, id } = await lostTransfer();
    rig.passQuiescence();
    await rig.observeAll([a, 100n], [b, 0n]);
    await rig.observeAll([a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('undecided');
  });

  it('A transfer becomes undecided after a day if one of its wallets is not observed again', async () => {
    const { a, b, id } = await lostTransfer();
    await rig.observeAll([a, 90n], [b, 10n]);
    await rig.observe(a, 90n, DAY_MS / 2);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.observe(a, 90n, DAY_MS);
    expect(await rig.stateOf(id)).toBe('undecided');
  });

  it('Two equal unknown transfers between the same wallets become undecided', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const ids = [await rig.transfer(a, b, 10n), await rig.transfer(a, b, 10n)];
    for (const id of ids) await rig.lose(id);
    rig.passQuiescence();
    for (let i = 0; i < 13; i++) {
      rig.clock.advance(50_000);
      await rig.observeAll([a, 90n], [b, 10n]);
    }
    for (const id of ids)
      expect(await rig.endOf(id)).toEqual({ state: 'undecided', types: ['unknown', 'undecided'] });
    expect([...(await rig.drifts(a)), ...(await rig.drifts(b))]).toEqual([]);
  });

  it('A late answer overrides an unknown state and a resolution by evidence', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const [waiting, concluded] = [await rig.transfer(a, b, 10n), await rig.transfer(a, b, 3n)];
    await rig.lose(waiting);
    await rig.lose(concluded);
    await rig.observeAll([a, 87n], [b, 13n]);
    await rig.accept(waiting);
    await rig.observeAll([a, 87n], [b, 13n]);
    expect(await rig.stateOf(concluded)).toBe('executed');
    const refused = { class: 'rejected', status: 406, code: '198', message: 'too low' } as const;
    await rig.conclude(concluded, refused);
    await rig.post();
    await rig.observeAll([a, 87n], [a, 87n], [b, 13n], [b, 13n]);
    expect((await rig.drifts(a)).map(({ amount }) => amount)).toEqual([-3n]);
    expect((await rig.drifts(b)).map(({ amount }) => amount)).toEqual([3n]);
  });
});

describe('An unknown token write beside others', () => {
  it('Operations in flight on the same wallets do not delay its resolution', async () => {
    const [a, b, c] = [await rig.opened(100n), await rig.opened(0n), await rig.opened(0n)];
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(id);
    for (let i = 1n; i <= 2n; i++) {
      const other = await rig.transfer(a, c, 7n);
      await rig.accept(other);
      await rig.observe(a, 90n - 7n * i, 100);
      await rig.observe(b, 10n, 100);
    }
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('An undecided operation does not delay the resolution of others', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const stuck = await rig.transfer(a, b, 40n);
    await rig.lose(stuck);
    rig.clock.advance(90_000_000);
    await rig.process();
    expect(await rig.stateOf(stuck)).toBe('undecided');
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(id);
    await rig.observeAll([a, 90n], [b, 10n], [a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('A new write that one wallet shows first is not taken for an equal older one', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const older = await rig.give(b, 5n, 9n);
    await rig.lose(older);
    rig.passQuiescence();
    const fresh = await rig.transfer(a, b, 5n);
    await rig.lose(fresh);
    const ends = async () => [await rig.stateOf(older), await rig.stateOf(fresh)];
    for (let i = 0; i < 3; i++) await rig.observeAll([a, 100n], [b, 5n]);
    expect(await ends()).toEqual(['unknown', 'unknown']);
    rig.passQuiescence();
    for (let i = 0; i < 3; i++) await rig.observeAll([a, 95n], [b, 5n]);
    expect(await rig.stateOf(older)).toBe('not_executed');
    expect(['executed', 'settled']).toContain(await rig.stateOf(fresh));
  });

  it('A wallet changed elsewhere does not block other wallets, and its drift is confirmed', async () => {
    const [a, b, c] = [await rig.opened(100n), await rig.opened(0n), await rig.opened(0n)];
    const ids = [await rig.transfer(a, b, 10n), await rig.transfer(a, c, 7n)];
    for (const id of ids) await rig.lose(id);
    // An outside change of 1,000 on c.
    for (let i = 0; i < 3; i++) await rig.observeAll([a, 83n], [b, 10n], [c, 1_007n]);
    expect(['executed', 'settled']).toContain(await rig.stateOf(ids[0] ?? ''));
    // Its sender alone shows the other one.
    expect(['executed', 'settled']).toContain(await rig.stateOf(ids[1] ?? ''));
    await rig.observeAll([c, 1_007n]);
    expect(await rig.driftAmounts(c)).toEqual([1_000n]);
  });

  it('A transfer of a wallet to itself becomes undecided without delaying others', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const idle = await rig.send('transfer', { fromAddr: a, toAddr: a, amount: 5n });
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(idle);
    await rig.lose(id);
    await rig.observeAll([a, 90n], [b, 10n], [a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
    rig.clock.advance(90_000_000);
    await rig.process();
    expect(await rig.stateOf(idle)).toBe('undecided');
  });
});
