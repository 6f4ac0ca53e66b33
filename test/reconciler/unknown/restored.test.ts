/** A database that was restored from a backup: the original may have sent what waits in it. */
import { describe, expect, it } from 'vitest';
import { insertFreeze, releaseRestored } from '../../../src/operations/freezes.ts';
import type { EffectSettings } from '../../../src/operations/operations.ts';
import { freshAddr, openRig } from '../rig.ts';

const OPERATOR = freshAddr();
const BOOKS: EffectSettings = { feeMode: 'on_top', operators: new Map([['7', OPERATOR]]) };
/** An operator without a readable wallet. */
const UNREADABLE = 9n;
const ORDER = { by: 'ops', reason: 'a backup was restored' };

/** A wallet with 100 and a give to it of 5 that is queued when the database turns out restored. */
async function queuedInBackup(operationNo = UNREADABLE) {
  const rig = await openRig({ books: BOOKS });
  if (operationNo === 7n) await rig.opened(1_000n, OPERATOR);
  const a = await rig.opened(100n);
  const id = await rig.queue('give', { operationNo, toAddr: a, amount: 5n });
  rig.clock.advance(10);
  const { db } = rig.database;
  await db.begin((tx) => insertFreeze(tx, { ...ORDER, cause: 'restored' }, rig.clock.now()));
  return {
    rig,
    a,
    id,
    /** A person has compared, and the write becomes unknown. */
    async release() {
      rig.clock.advance(10);
      const order = { ...ORDER, sendQueued: false };
      await db.begin((tx) => releaseRestored(tx, order, rig.clock.now()));
      await rig.operations.runOnce(rig.clock.now());
      expect(await rig.stateOf(id)).toBe('unknown');
      rig.passQuiescence();
    },
  };
}

describe('A give that is queued in a restored database', () => {
  it('What the original did with it is no drift, and one wallet leaves the outcome to people', async () => {
    const { rig, a, id, release } = await queuedInBackup();
    await rig.observeSeries(a, 105n, 105n);
    expect(await rig.drifts(a)).toEqual([]);
    await release();
    await rig.observeSeries(a, 105n, 105n);
    expect(await rig.operation(id)).toMatchObject({
      state: 'undecided',
      evidence: { basis: 'one_sided', indicated: 'executed' },
    });
  });

  it('It is never called not executed beside other writes of the original', async () => {
    const { rig, a, id, release } = await queuedInBackup();
    await rig.observeSeries(a, 112n, 112n);
    const [drift] = await rig.drifts(a);
    expect(drift).toMatchObject({ amount: null, min: 7n, max: 12n });
    await release();
    await rig.observeSeries(a, 112n, 112n);
    await rig.wait(700_000);
    expect(await rig.stateOf(id)).toBe('undecided');
  });

  it('That it was not sent is left to people too while only one wallet says so', async () => {
    const { rig, a, id, release } = await queuedInBackup();
    await release();
    await rig.observeSeries(a, 100n, 100n);
    expect(await rig.operation(id)).toMatchObject({
      state: 'undecided',
      evidence: { indicated: 'not_executed' },
    });
  });

  it.each([
    ['executed', 105n, 995n],
    ['not_executed', 100n, 1_000n],
  ])('Two wallets that agree prove it %s', async (state, payee, payer) => {
    const { rig, a, id, release } = await queuedInBackup(7n);
    await release();
    for (let i = 0; i < 2; i++) await rig.observeAll([a, payee], [OPERATOR, payer]);
    expect([state, state === 'executed' ? 'settled' : state]).toContain(await rig.stateOf(id));
  });

  it('A wallet that nobody observed before it is not opened with what the original may have added', async () => {
    const rig = await openRig({ books: BOOKS });
    const b = freshAddr();
    await rig.queue('give', { operationNo: UNREADABLE, toAddr: b, amount: 5n });
    rig.clock.advance(10);
    await rig.database.db.begin((tx) =>
      insertFreeze(tx, { ...ORDER, cause: 'restored' }, rig.clock.now()),
    );
    await rig.observe(b, 5n);
    expect(await rig.wallet(b)).toMatchObject({ verdict: 'unopened' });
  });
});

it('A write sent after the restore is resolved by polls from after it', async () => {
  const { rig, a, release } = await queuedInBackup();
  await release();
  const b = await rig.opened(0n);
  const id = await rig.give(b, 5n, UNREADABLE);
  await rig.lose(id);
  await rig.observeSeries(b, 5n, 5n);
  expect(await rig.stateOf(id)).toBe('executed');
  expect(await rig.wallet(a)).toMatchObject({ observedBalance: 100n });
});
