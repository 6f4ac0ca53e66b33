import { describe, expect, it } from 'vitest';
import { openRig } from '../rig.ts';

const rig = await openRig();

describe('A lost payment between two wallets that can be seen', () => {
  it('Is executed when two looks at both agree, is posted once, and settles', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(id);
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

  it('Is not executed only when both looks began after quiescence and read lag', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(id);
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

  it('That is applied late, after looks that did not show it, is executed', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(id);
    await rig.observeAll([a, 100n], [b, 0n], [a, 100n], [b, 0n]);
    rig.clock.advance(20_000);
    await rig.observeAll([a, 90n], [b, 10n], [a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('That one wallet shows and the other not yet waits', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(id);
    await rig.observeAll([a, 90n], [b, 0n], [a, 90n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    // The first explanation rests on the older look at one of them, the second on none of its
    // looks.
    await rig.observeAll([b, 10n], [a, 90n]);
    expect(await rig.stateOf(id)).toBe('unknown');
    await rig.observeAll([b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('That was shown once and then no more, when all was quiet, is given to people', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(id);
    await rig.observeAll([a, 90n], [b, 10n]);
    rig.passQuiescence();
    await rig.observeAll([a, 100n], [b, 0n]);
    expect(await rig.stateOf(id)).toBe('undecided');
    expect(await rig.operation(id)).toMatchObject({ evidence: { indicated: 'contradictory' } });
  });

  it('That shows only after all was quiet is given to people', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(id);
    rig.passQuiescence();
    await rig.observeAll([a, 100n], [b, 0n]);
    await rig.observeAll([a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('undecided');
  });

  it('Two equal ones in a row between the same wallets are given to people', async () => {
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

  it('The answer that comes late wins over the waiting, and over what was concluded', async () => {
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

describe('A lost payment beside others', () => {
  it('Writes under way on the same wallets do not keep it from its end', async () => {
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

  it('One that people have to decide does not keep others from their end', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const stuck = await rig.transfer(a, b, 40n);
    await rig.lose(stuck);
    await rig.wait(700_000);
    await rig.process();
    expect(await rig.stateOf(stuck)).toBe('undecided');
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(id);
    await rig.observeAll([a, 90n], [b, 10n], [a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
  });

  it('A fresh one that one wallet shows first is not taken for an older one', async () => {
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
    // Nobody knows the receiver for long, so that it alone does not prove the absence of the older.
    expect(await rig.stateOf(older)).toBe('undecided');
    expect(['executed', 'settled']).toContain(await rig.stateOf(fresh));
  });

  it('A wallet that others changed silences no neighbour, and its drift comes out', async () => {
    const [a, b, c] = [await rig.opened(100n), await rig.opened(0n), await rig.opened(0n)];
    const ids = [await rig.transfer(a, b, 10n), await rig.transfer(a, c, 7n)];
    for (const id of ids) await rig.lose(id);
    // Somebody gave 1,000 to c; nothing on c explains that.
    for (let i = 0; i < 3; i++) await rig.observeAll([a, 83n], [b, 10n], [c, 1_007n]);
    expect(['executed', 'settled']).toContain(await rig.stateOf(ids[0] ?? ''));
    // The other one is told by its sender alone, who is not known for long: it waits.
    expect(await rig.stateOf(ids[1] ?? '')).toBe('unknown');
    await rig.wait(700_000);
    for (let i = 0; i < 3; i++) await rig.observeAll([a, 83n], [b, 10n], [c, 1_007n]);
    expect(await rig.stateOf(ids[1] ?? '')).toBe('undecided');
    expect((await rig.drifts(c)).map(({ amount }) => amount)).toEqual([1_007n]);
  });

  it('One that changes nothing goes to people alone', async () => {
    const [a, b] = [await rig.opened(100n), await rig.opened(0n)];
    const idle = await rig.send('transfer', { fromAddr: a, toAddr: a, amount: 5n });
    const id = await rig.transfer(a, b, 10n);
    await rig.lose(idle);
    await rig.lose(id);
    await rig.observeAll([a, 90n], [b, 10n], [a, 90n], [b, 10n]);
    expect(await rig.stateOf(id)).toBe('executed');
    await rig.wait(700_000);
    await rig.process();
    expect(await rig.stateOf(idle)).toBe('undecided');
  });
});
