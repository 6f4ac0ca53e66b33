/**
 * Of writes that a balance could not tell apart, one is sent at a time and the others wait for a
 * bounded time. A write without a conflict is recorded with one call.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Kind, NewWrite } from '../../src/operations/operations.ts';
import {
  changed,
  freshWallet,
  giveTo,
  nextNumber,
  POLL_MS,
  useOperations,
  WAIT_MS,
  write,
} from './rig.ts';

const rig = useOperations();
let toAddr: string;
beforeEach(() => {
  toAddr = freshWallet();
});

const give = (amount = 10n) => giveTo(toAddr, amount);
const settle = (id: string) => rig.conclude(id, 'accepted');
/** Starts to record a write, which then waits. */
async function waiting(more: Partial<NewWrite>, { by = rig.first, ms = WAIT_MS } = {}) {
  const recording = by.operations.record(write(more));
  await rig.clock.paused(1, ms);
  return { recording };
}

describe('A second equal amount on the wallet of a user', () => {
  it('A write waits for the answer to an equal one and is not marked ambiguous', async () => {
    const first = await rig.record(give());
    const { recording } = await waiting(give());
    await settle(first);
    expect(await recording).toMatchObject({ ambiguous: false });
  });

  it('A write is sent marked ambiguous when its wait is over', async () => {
    await rig.record(give());
    const { recording } = await waiting(give());
    rig.clock.advance(WAIT_MS);
    expect(await recording).toMatchObject({ ambiguous: true });
  });

  it('With refuseConflicts a write is refused after its wait, with the open operations', async () => {
    const strict = await rig.open({ settings: { refuseConflicts: true } });
    const first = await rig.record(give(), strict);
    const { recording } = await waiting(give(), { by: strict });
    rig.clock.advance(WAIT_MS);
    await expect(recording).rejects.toMatchObject({
      code: 'wallet_outcome_pending',
      members: { operation_ids: [first] },
    });
  });

  it('With refuseConflicts a write that conflicts with none of many new ones is sent without a wait', async () => {
    // Before each try to commit one more write on the wallet is open.
    let left = 0;
    const busy = changed(rig.database.db, {
      async single(work, deadlineMs) {
        if (left > 0) await rig.record(give(10n ** BigInt(left--)), rig.other);
        return rig.database.db.single(work, deadlineMs);
      },
    });
    const strict = await rig.open({ settings: { refuseConflicts: true } }, busy);
    left = 9;
    const recording = strict.operations.record(write(give(5n)));
    const waits = rig.clock.paused(1, WAIT_MS).then(() => 'waits');
    expect(await Promise.race([recording, waits])).toMatchObject({ ambiguous: false });
    expect(left).toBe(0);
  });

  it('With refuseConflicts a write that finds new ones until its wait ends is refused by their names', async () => {
    let isBusy = false;
    let n = 1;
    const open: string[] = [];
    const busy = changed(rig.database.db, {
      async single(work, deadlineMs) {
        if (isBusy) {
          open.push(await rig.record(give(10n ** BigInt(n++)), rig.other));
          rig.clock.advance(WAIT_MS / 8);
        }
        return rig.database.db.single(work, deadlineMs);
      },
    });
    const strict = await rig.open({ settings: { refuseConflicts: true } }, busy);
    isBusy = true;
    const refusal = await strict.operations.record(write(give(5n))).catch((error) => error);
    isBusy = false;
    expect(refusal).toMatchObject({ code: 'wallet_outcome_pending' });
    expect(refusal.members.operation_ids.toSorted()).toEqual(open);
  });

  it('A write does not wait when waitingMax writes wait already', async () => {
    const full = await rig.open({ settings: { waitingMax: 0 } });
    await rig.record(give(), full);
    expect(await full.operations.record(write(give()))).toMatchObject({ ambiguous: true });
  });

  it('A write that waits is refused as shutting down when its daemon stops', async () => {
    await rig.record(give());
    const { recording } = await waiting(give());
    rig.first.operations.close();
    await expect(recording).rejects.toMatchObject({ code: 'shutting_down' });
  });

  it('A write waits for an unknown operation and not for an undecided one', async () => {
    const first = await rig.record(give());
    await rig.conclude(first, 'unknown');
    const { recording } = await waiting(give());
    await rig.move(first, 'undecided');
    rig.clock.advance(POLL_MS);
    expect(await recording).toMatchObject({ ambiguous: false });
  });

  it('A write waits for two open ones whose amounts add up to its own', async () => {
    await rig.record(give(3n));
    const seven = await rig.record(give(7n));
    const { recording } = await waiting(give(10n));
    await settle(seven);
    expect(await recording).toMatchObject({ ambiguous: false });
  });

  it('Ten equal writes at once are sent one at a time, in the order in which they came', async () => {
    const order: number[] = [];
    const all = Array.from({ length: 10 }, async (_, i) => {
      const id = await rig.record(give());
      order.push(i);
      return id;
    });
    for (const [i, one] of all.entries()) {
      const id = await one;
      await rig.clock.paused(all.length - 1 - i, WAIT_MS);
      expect(order.length).toBe(i + 1);
      await settle(id);
    }
    expect(order).toEqual(Array.from(all, (_, i) => i));
  });

  it('A wait survives a poll that the database does not answer', async () => {
    let failing = false;
    const { db } = rig.database;
    const single: typeof db.single = (work) =>
      failing ? Promise.reject(new Error('away')) : db.single(work);
    const cut = await rig.open({}, changed(db, { single }));
    const first = await rig.record(give());
    const { recording } = await waiting(give(), { by: cut });
    failing = true;
    rig.clock.advance(POLL_MS);
    await rig.clock.paused(2, POLL_MS);
    failing = false;
    await settle(first);
    rig.clock.advance(POLL_MS);
    expect(await recording).toMatchObject({ ambiguous: false });
  });
});

describe('Writes without a conflict', () => {
  it('Different amounts on one wallet do not wait, at two daemons either', async () => {
    for (const [i, amount] of [10n, 11n, 22n, 44n].entries()) {
      const { operations } = i % 2 ? rig.other : rig.first;
      expect(await operations.record(write(give(amount)))).toMatchObject({ ambiguous: false });
    }
  });

  it('A write without a conflict costs one call, and 40 at once to one operator cost few', async () => {
    const { begun } = rig.first;
    const before = begun();
    await rig.record(give());
    expect(begun() - before).toBe(1);
    await Promise.all(Array.from({ length: 40 }, () => rig.record(giveTo())));
    expect(begun() - before).toBeLessThanOrEqual(4);
  });
});

it('A write to a wallet with open writes of the same daemon costs one call', async () => {
  for (let i = 0; i < 20; i++) {
    const before = rig.first.begun();
    await rig.record(give(3n ** BigInt(i)));
    expect(rig.first.begun() - before).toBe(1);
  }
});

describe('Writes from several wallets to one', () => {
  const transfer = (amount: bigint, fromAddr = freshWallet(), feeAmount = 0n) => ({
    kind: 'transfer' as const,
    fields: { fromAddr, toAddr, amount, feeAmount },
  });

  it('A write from a quiet wallet to a busy one costs one call, and is not ambiguous', async () => {
    for (let i = 0; i < 20; i++) {
      const before = rig.first.begun();
      const recorded = await rig.first.operations.record(write(transfer(10n)));
      expect(recorded).toMatchObject({ ambiguous: false });
      expect(rig.first.begun() - before).toBe(1);
    }
  });

  it('A second write of one wallet is told apart by that wallet, however busy the other is', async () => {
    const payer = freshWallet();
    for (let i = 0; i < 20; i++) await rig.record(transfer(10n));
    await rig.record(transfer(10n, payer));
    const { db } = rig.database;
    const single: typeof db.single = async (work) => {
      await rig.record(transfer(10n), rig.other);
      return db.single(work);
    };
    const overtaken = await rig.open({}, changed(db, { single }));
    const second = await overtaken.operations.record(write(transfer(11n, payer)));
    expect(second).toMatchObject({ ambiguous: false });
  });

  it('A write that only the receiver would tell apart waits if the receiver has others open', async () => {
    const payer = freshWallet();
    await rig.record(transfer(11n));
    // The commit of another write makes both share the next one.
    const before = rig.record();
    const first = rig.record(transfer(10n, payer, 1n));
    const { recording } = await waiting(transfer(11n, payer));
    await before;
    await settle(await first);
    expect(await recording).toMatchObject({ ambiguous: false });
  });
});

const token = () => ({ contractId: 5n, tokenId: nextNumber() });
const minted = () => ({ contractId: nextNumber(), toAddr, tokenUri: 'u', metaData: 'm' });

describe('NFT writes', () => {
  it.each([
    ['sequential mints to one receiver in any spelling', 'mint_sequential', minted],
    ['mints of one token', 'mint', token],
    ['burns of one token', 'burn', token],
    ['changes of one token', 'set_extra_data', token],
  ] as const)('Equal %s are sent one at a time', async (_, kind: Kind, make) => {
    const fields: NewWrite['fields'] = make();
    const first = await rig.record({ kind, fields });
    const same = fields.toAddr ? { toAddr: fields.toAddr.toLowerCase() } : {};
    const { recording } = await waiting({ kind, fields: { ...fields, ...same } });
    await settle(first);
    expect(await recording).toMatchObject({ ambiguous: false });
  });

  it('Sequential mints that differ in one field do not wait for each other', async () => {
    const fields = minted();
    const others = [
      {},
      { tokenUri: 'v' },
      { metaData: null },
      { extraData: '' },
      { toAddr: freshWallet() },
      { contractId: nextNumber() },
    ];
    for (const more of others)
      await rig.record({ kind: 'mint_sequential', fields: { ...fields, ...more } });
  });

  it('Writes whose token is not named do not wait for each other', async () => {
    const [contract, nothing] = [{ contractId: 5n }, { tokenId: 7n }];
    for (const [kind, fields] of [
      ['mint', contract],
      ['burn', nothing],
      ['mint_sequential', contract],
      ['other', { ...contract, ...nothing }],
    ] as const)
      for (let i = 0; i < 2; i++) await rig.record({ kind, fields });
  });
});
