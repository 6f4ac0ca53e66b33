/** Promise 4. Postgres refuses an unbalanced transaction, and any change of an entry. */
import { expect, it } from 'vitest';
import { DatabaseError, toDatabaseError } from '../../src/db/sqlstate.ts';
import { operationIdOf, useRig } from '../harness/rig.ts';

const rig = useRig();

it.each([
  ['a changed amount', 'update tallyhook.entries set amount = amount + 1'],
  ['a deleted entry', 'delete from tallyhook.entries'],
  ['a truncated ledger', 'truncate tallyhook.entries'],
  [
    'half a transaction',
    `insert into tallyhook.entries (transaction_id, line, account_id, amount, balance_after,
       version, effective_at, recorded_at)
     select transaction_id, line + 2, account_id, 1, balance_after + 1, version + 1, effective_at,
       recorded_at
     from tallyhook.entries order by version desc limit 1`,
  ],
])('%s is refused to the owner and to the role of the daemon', async (_what, statement) => {
  const { database, ada } = rig.world;
  const answer = await rig.app.give(ada, 100);
  await rig.eventOf(answer, 'operation.settled');
  const posted = () => database.owner.sql<{ amount: bigint }[]>`
    select amount from finance_v1.journal where operation_id = ${operationIdOf(answer)}
    order by amount`;
  const before = await posted();
  expect(before.map(({ amount }) => amount)).toEqual([-100n, 100n]);
  for (const { sql } of [database.owner, database.db]) {
    const error = await sql.unsafe(statement).then(
      () => undefined,
      (raw: unknown) => toDatabaseError(raw),
    );
    const refused = error instanceof DatabaseError ? error.code : 'done';
    // TH…: refused by a guard. 42501: the role has no right to it.
    expect(refused).toMatch(/^(?:TH\d{3}|42501)$/);
  }
  expect(await posted()).toEqual(before);
});
