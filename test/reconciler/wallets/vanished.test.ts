/** Wallets that the service no longer shows while the ledger holds a balance of them. */
import { describe, expect, it } from 'vitest';
import { openRig } from '../rig.ts';

const rig = await openRig();

const absent = async (addr: string, times = 1) => {
  for (let n = 0; n < times; n++) {
    rig.clock.advance(2_000);
    await rig.put({ kind: 'wallet', addr }, 'absent', null);
    await rig.process();
  }
};
const seen = async (addr: string, balance: bigint, status = 1, times = 1) => {
  for (let n = 0; n < times; n++) {
    rig.clock.advance(2_000);
    await rig.put({ kind: 'wallet', addr }, 'seen', { addr, balance, status });
    await rig.process();
  }
};
const ends = async (addr: string) =>
  (await rig.eventsOf(addr)).filter(({ type }) => /vanished|reappeared/.test(type));

describe('A wallet that is not found', () => {
  it('is not called vanished after one observation, and is polled again soon', async () => {
    const addr = await rig.opened(150n);
    await absent(addr);
    expect(await ends(addr)).toEqual([]);
    expect(await rig.dueInMs({ kind: 'wallet', addr })).toBeLessThanOrEqual(30_000);
    await seen(addr, 150n);
    await absent(addr);
    expect(await ends(addr)).toEqual([]);
  });

  it('has vanished after the second observation, once', async () => {
    const addr = await rig.opened(150n);
    await absent(addr, 4);
    expect(await ends(addr)).toMatchObject([
      {
        type: 'wallet.vanished',
        data: {
          addr,
          reason: 'not_found',
          ledger_balance: '150',
          last: { balance: '150', status: 1 },
        },
      },
    ]);
    expect(await rig.wallet(addr)).toMatchObject({ verdict: 'vanished', observedBalance: 150n });
  });

  it('has not vanished when the ledger holds nothing of it', async () => {
    const addr = await rig.opened(0n);
    await absent(addr, 4);
    expect(await ends(addr)).toEqual([]);
  });

  it('reappears when it is observed again, also with another balance, which is a drift', async () => {
    const addr = await rig.opened(150n);
    await absent(addr, 2);
    await seen(addr, 100n, 1, 2);
    expect(await ends(addr)).toMatchObject([
      { type: 'wallet.vanished' },
      {
        type: 'wallet.reappeared',
        data: { how: 'observed', current: { balance: '100', status: 1 } },
      },
    ]);
    expect(await rig.driftAmounts(addr)).toEqual([-50n]);
  });

  it('stops being a break when the write that emptied it is reported', async () => {
    const addr = await rig.opened(150n);
    await absent(addr, 2);
    const other = await rig.opened(0n);
    const id = await rig.transfer(addr, other, 150n);
    await rig.accept(id);
    await rig.post();
    await absent(addr);
    expect(await ends(addr)).toMatchObject([
      { type: 'wallet.vanished' },
      { type: 'wallet.reappeared', data: { how: 'emptied', ledger_balance: '0', current: null } },
    ]);
  });

  it('concludes nothing about a write on it', async () => {
    const addr = await rig.opened(150n);
    const id = await rig.send('receive_from', { fromAddr: addr, amount: 150n, feeAmount: 0n });
    await rig.lose(id);
    rig.passQuiescence();
    await absent(addr, 4);
    expect(await rig.stateOf(id)).toBe('unknown');
  });
});

describe('A wallet that is withdrawn', () => {
  it('has vanished when it shows another balance than the ledger, twice', async () => {
    const addr = await rig.opened(150n);
    await seen(addr, 0n, 9);
    expect(await ends(addr)).toEqual([]);
    await seen(addr, 0n, 9, 3);
    expect(await ends(addr)).toMatchObject([
      { type: 'wallet.vanished', data: { reason: 'withdrawn', ledger_balance: '150' } },
    ]);
    expect(await rig.driftAmounts(addr)).toEqual([-150n]);
    await seen(addr, 150n);
    expect((await ends(addr))[1]).toMatchObject({
      type: 'wallet.reappeared',
      data: { how: 'observed' },
    });
  });

  it('has not vanished while it shows the balance of the ledger', async () => {
    const addr = await rig.opened(150n);
    await seen(addr, 150n, 9, 4);
    expect(await ends(addr)).toEqual([]);
  });
});
