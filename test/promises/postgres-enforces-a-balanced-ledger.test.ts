/** Promise 4. Postgres refuses an unbalanced transaction, and any change of an entry. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { Db, Tx } from '../../src/db/connect.ts';
import { operationIdOf, useRig } from '../harness/rig.ts';
import { post, type Raw, refusalOf } from '../ledger/raw-posting.ts';

const rig = useRig();

/** A settled give of 100, and what the journal has of it. */
async function settledGive() {
  const answer = await rig.app.give(rig.world.ada, 100);
  await rig.eventOf(answer, 'operation.settled');
  const posted = () => rig.world.database.owner.sql<{ amount: bigint }[]>`
    select amount from finance_v1.journal where operation_id = ${operationIdOf(answer)}
    order by amount`;
  expect((await posted()).map(({ amount }) => amount)).toEqual([-100n, 100n]);
  return posted;
}

/** A posting that continues the ledger: 5 from one account, and so much to another. */
async function nextPosting({ sql }: Tx, received: bigint): Promise<Raw> {
  const [last] = await sql<{ batch: bigint; transaction: bigint; at: string }[]>`
    select b.id as batch, extract(epoch from b.recorded_at)::text as at,
      (select max(id) from tallyhook.transactions) as transaction
    from tallyhook.batches b order by b.id desc limit 1`;
  const accounts = await sql<{ name: string; balance: bigint; version: bigint }[]>`
    select name, balance, version from tallyhook.accounts where version > 0 order by id limit 2`;
  const batch = { id: Number(last?.batch) + 1, at: Number(last?.at) * 1000 + 1 };
  const id = Number(last?.transaction) + 1;
  const amounts = [-5n, received];
  const lines = accounts.map((account, i) => ({ ...account, amount: amounts[i] ?? 0n }));
  return {
    batch,
    transaction: { id, kind: 'give', operation: 'op_x', posting: 1, count: 2, batch: batch.id },
    entries: lines.map(({ name, balance, version, amount }, i) => ({
      line: i + 1,
      account: name,
      amount: String(amount),
      after: String(balance + amount),
      version: Number(version) + 1,
    })),
    accounts: lines.map(({ name, amount }) => ({ name, amount: String(amount), count: 1 })),
  };
}

const UNDONE = new Error('undone');

/** The SQLSTATE with which Postgres refuses it; undefined if it could be committed. Undoes it. */
async function refusalOfPosting(db: Db, received: bigint): Promise<string | undefined> {
  try {
    return await refusalOf(db, async (tx) => {
      await post(tx, await nextPosting(tx, received));
      await tx.sql`set constraints all immediate`;
      throw UNDONE;
    });
  } catch (error) {
    if (error === UNDONE) return undefined;
    throw error;
  }
}

it.each([
  ['a changed amount', 'update tallyhook.entries set amount = amount + 1'],
  ['a change that changes nothing', 'update tallyhook.entries set amount = amount'],
  ['a deleted entry', 'delete from tallyhook.entries'],
  ['a truncated ledger', 'truncate tallyhook.entries'],
])(
  '%s is refused to the owner by a guard, and to the daemon for want of the right',
  async (_what, statement) => {
    const posted = await settledGive();
    const before = await posted();
    const { owner, db } = rig.world.database;
    const refusal = (by: Db) => refusalOf(by, (tx) => tx.sql.unsafe(statement));
    expect(await refusal(owner)).toBe('TH001');
    expect(await refusal(db)).toBe('42501');
    expect(await posted()).toEqual(before);
  },
);

describe('Without the daemon, so that nothing else is posted', () => {
  beforeAll(async () => {
    await settledGive();
    await rig.daemon.kill();
  });

  it.each([
    ['sums to zero is accepted', 5n, undefined],
    ['sums to one is refused', 6n, 'TH002'],
    ['sums to minus one is refused', 4n, 'TH002'],
  ])('A transaction that continues the ledger and %s', async (_title, received, refusal) => {
    const { owner, db } = rig.world.database;
    for (const by of [owner, db]) expect(await refusalOfPosting(by, received)).toBe(refusal);
  });
});
