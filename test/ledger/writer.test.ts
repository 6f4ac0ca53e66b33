/** Who may post, and what happens to rows that cannot be posted. */
import { describe, expect, it } from 'vitest';
import { acquireLease, registerDaemon } from '../../src/db/leases.ts';
import { listAccounts, listTransactions } from '../../src/ledger/ledger.ts';
import { give, START, useLedger } from './fixture.ts';

const rig = useLedger({ batchMax: 16 });

describe('The lease of the writer', () => {
  it('A writer posts nothing once another daemon has the lease, until that lease ends', async () => {
    await rig.put(give('op_1'));
    expect((await rig.runOnce()).posted).toBe(1);
    const other = await registerDaemon(rig.database.db, 'dmn_2', rig.clock.now(), 15_000);
    await acquireLease(rig.database.db, 'ledger', other, rig.clock.now() + 11_000, 10_000);
    await rig.put(give('op_2'));
    rig.clock.advance(1_000);
    expect((await rig.runOnce()).posted).toBe(0);
    rig.clock.advance(30_000);
    expect((await rig.runOnce()).posted).toBe(1);
  });
});

it('A pass whose signal aborts posts nothing, and the next one does', async () => {
  await rig.put(give('op_1'));
  const stopped = await rig.ledger.runOnce(rig.clock.now(), AbortSignal.abort());
  expect(stopped).toEqual({ posted: 0, quarantined: 0, more: true });
  expect((await rig.runOnce()).posted).toBe(1);
});

describe('A row that cannot be posted', () => {
  it('A row that cannot be posted is quarantined with the reason, and the others are posted', async () => {
    await rig.put(give('op_1', { amount: null }), give('op_2'), {
      id: 'op_3',
      kind: 'mint_sequential',
      contractId: 1n,
      state: 'settled',
    });
    expect(await rig.runOnce()).toEqual({ posted: 1, quarantined: 2, more: false });
    expect(await rig.quarantined()).toEqual({
      op_1: 'the amount is not known',
      op_3: 'the token is not known',
    });
  });

  it('Rows that the database refuses are found among many and quarantined alone', async () => {
    await rig.database.owner.sql`
      alter table tallyhook.transactions add constraint no_poison check (reference <> 'poison')`;
    const many = Array.from({ length: 50 }, (_, n) =>
      give(`op_${n}`, {
        recordedAt: START + n,
        reference: n === 0 || n % 17 === 5 ? 'poison' : null,
      }),
    );
    await rig.put(...many);
    expect(await rig.post()).toEqual({ posted: 46, quarantined: 4 });
    const refused = 'database error: 23514 (no_poison)';
    expect(await rig.quarantined()).toEqual({
      op_0: refused,
      op_5: refused,
      op_22: refused,
      op_39: refused,
    });
    expect(await rig.balances('operator:7')).toEqual({ 'operator:7': '-460' });
  });

  it.each(['insert on tallyhook.entries', 'delete on tallyhook.due_postings'])(
    'Without the right to %s nothing is posted and no row is quarantined',
    async (right) => {
      await rig.put(give('op_1'), give('op_2'));
      await rig.database.owner.sql.unsafe(`revoke ${right} from tallyhook_writer`);
      await expect(rig.runOnce()).rejects.toThrow('42501');
      expect(await listTransactions(rig.database.db, { limit: 10 })).toEqual([]);
      expect(await listAccounts(rig.database.db, { limit: 10 })).toEqual([]);
      await rig.database.owner.sql.unsafe(`grant ${right} to tallyhook_writer`);
      expect(await rig.post()).toEqual({ posted: 2, quarantined: 0 });
      expect(await rig.quarantined()).toEqual({});
    },
  );
});
