/** Holders of tokens that observations showed, on their way into the journal. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  exportLedger,
  type ObservedHolder,
  recordHolder,
  verifyFile,
  verifyLedger,
} from '../../src/ledger/ledger.ts';
import { listDueHolders } from '../../src/ledger/tokens/movements.ts';
import type { Operation } from '../../src/operations/operations.ts';
import { completeRecords } from '../harness/recorded-rows.ts';
import { addr, openLedger, PLAIN, runDry, START, useLedger } from './fixture.ts';

const rig = useLedger();
const [A, B] = [addr(1), addr(2)];
const token = { contractId: 3n, tokenId: 2n ** 64n };

const record = (...holders: Partial<ObservedHolder>[]) =>
  rig.database.db.begin(async (tx) => {
    for (const one of holders) {
      const unknown = { owner: A, isNew: false, txHash: null, notBefore: null, observedAt: START };
      await recordHolder(tx, { ...token, ...unknown, ...one }, rig.clock.now());
    }
  });

const transfer = (id: string, more: Partial<Operation> = {}): Partial<Operation> => ({
  id,
  kind: 'transfer_from',
  state: 'settled',
  ...token,
  fromAddr: A,
  toAddr: B,
  effectiveAt: START + 10,
  ...more,
});

async function journal() {
  const rows = await rig.database.db.sql<{ kind: string; operationId: string | null }[]>`
    select kind, operation_id from tallyhook.nft_movements order by id`;
  return rows.map(({ kind, operationId }) => (operationId ? `${kind} ${operationId}` : kind));
}

it('Holders are recorded in their order, in a batch of the chain, and are waiting no more', async () => {
  await record(
    { observedAt: START + 1 },
    { owner: B, observedAt: START + 2, notBefore: START + 1 },
  );
  await record({ owner: null, observedAt: START + 3 });
  expect(await rig.runOnce()).toEqual({ posted: 3, quarantined: 0, more: false });
  expect(await journal()).toEqual(['opening', 'transfer', 'burn']);
  expect(await rig.runOnce()).toEqual({ posted: 0, quarantined: 0, more: false });
  expect(await verifyLedger(rig.database.db, [])).toMatchObject({ ok: true, count: 1n });
});

it('A holder of whom a write in the same batch says the same is no movement', async () => {
  await rig.put(transfer('op_1'));
  await record({ owner: B, observedAt: START + 11 });
  expect(await rig.runOnce()).toMatchObject({ posted: 2 });
  expect(await journal()).toEqual(['opening', 'transfer op_1']);
});

it('A holder waits for the due posting of a write on its token, and no other holder does', async () => {
  await rig.put(transfer('op_1'));
  await completeRecords(rig.database.owner, PLAIN);
  await record({ owner: B, observedAt: START + 11 }, { tokenId: 1n });
  await rig.database.db.begin(async (tx) => {
    const due = await listDueHolders(tx, [], 10);
    expect(due.map(({ tokenId }) => tokenId)).toEqual([1n]);
    expect(await listDueHolders(tx, ['op_1'], 10)).toHaveLength(2);
  });
});

it('A posting that is quarantined delays no holder, replaces what was recorded meanwhile, and the chain and its export hold both', async () => {
  const { db, owner } = rig.database;
  await rig.put(transfer('op_1'));
  await record({ observedAt: START }, { owner: B, observedAt: START + 11 });
  await owner.sql`
    insert into tallyhook.due_postings (operation_id, due_at, quarantine_reason)
    values ('op_1', 'epoch', 'wait')`;
  const ledger = await openLedger({ db, clock: rig.clock, daemonId: 'dmn_2' });
  await runDry(ledger, rig.clock);
  expect(await journal()).toEqual(['opening', 'transfer']);
  await owner.sql`update tallyhook.due_postings set quarantine_reason = null`;
  await runDry(ledger, rig.clock);
  expect(await journal()).toEqual(['opening', 'transfer', 'reversal', 'transfer op_1']);
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-'));
  const file = join(folder, 'ledger.jsonl');
  await exportLedger(db, (lines) => writeFile(file, lines));
  const verdict = await verifyLedger(db, []);
  expect(verdict).toMatchObject({ ok: true, count: 2n });
  expect(await verifyFile(file, [])).toEqual(verdict);
  await rm(folder, { recursive: true });
});

it('A holder that the database refuses is quarantined, and delays no other', async () => {
  await rig.database.owner.sql`
    alter table tallyhook.nft_movements add constraint no_poison check (token_id <> 13)`;
  await record(...Array.from({ length: 20 }, (_, n) => ({ tokenId: BigInt(n) })));
  expect(await rig.post()).toEqual({ posted: 19, quarantined: 1 });
  const rows = await rig.database.db.sql`
    select token_id, problem from tallyhook.observed_holders`;
  expect([...rows]).toEqual([{ tokenId: 13n, problem: 'database error: 23514 (no_poison)' }]);
});

it('A movement is reversed once, and only with what it reverses', async () => {
  await record({ observedAt: START + 1 });
  await rig.post();
  const insert = (kind: string, reverses: string) =>
    rig.database.owner.sql.unsafe(`
    with b as (insert into tallyhook.batches (id, recorded_at, transactions, entries)
      values (2, now() + interval '1 day', 0, 0) returning id, recorded_at)
    insert into tallyhook.nft_movements (batch_id, kind, contract_id, token_id, effective_at,
      effective_basis, recorded_at, reverses)
    select id, kind, 3, 1, recorded_at, 'observed', recorded_at, ${reverses}
    from b, unnest(array[${kind}]) as k(kind)`);
  await expect(insert(`'reversal', 'reversal'`, '1')).rejects.toThrow(
    'nft_movements_reversed_once',
  );
  await expect(insert(`'reversal'`, 'null')).rejects.toThrow('nft_movements_reversals');
  await expect(insert(`'mint'`, '1')).rejects.toThrow('nft_movements_reversals');
  await expect(insert(`'reversal'`, '99')).rejects.toThrow('nft_movements_reverse_known');
});
