import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dumpSchema } from '../../../db/schema-dump.ts';
import { createDatabase, type TestDatabase } from '../../../harness/database.ts';
import { faultsOf, NO_FAULTS } from '../../../ledger/fixture.ts';
import { generateHistory } from './generate.ts';

const OPERATIONS = 2_000;

let database: TestDatabase;
let schemaBefore: string;

beforeAll(async () => {
  database = await createDatabase();
  // Makes the partitions only.
  await generateHistory(database.url, 0);
  schemaBefore = await dumpSchema(database.owner);
  await generateHistory(database.url, OPERATIONS);
});
afterAll(() => database.drop());

describe('Generated history', () => {
  it('Every entry balances and continues its account', async () => {
    expect(await faultsOf(database.owner)).toEqual(NO_FAULTS);
  });

  it('Every operation is settled and posted once with its effects', async () => {
    const rows = await database.owner.sql`
      select count(*)::int as operations,
        (count(*) filter (where o.settled_at is not null and o.in_ledger))::int as settled,
        (count(*) filter (where (select count(*) from tallyhook.transactions t
          where t.operation_id = o.id and t.posting = 1) = 1))::int as posted,
        (select count(*) from (select operation_id, account, amount from tallyhook.operation_effects
          except select t.operation_id, a.name, e.amount from tallyhook.entries e
          join tallyhook.transactions t on t.id = e.transaction_id
          join tallyhook.accounts a on a.id = e.account_id) x)::int as different
      from tallyhook.operations o`;
    const all = { operations: OPERATIONS, settled: OPERATIONS, posted: OPERATIONS };
    expect(rows[0]).toEqual({ ...all, different: 0 });
  });

  it('The database keeps its indexes and guards', async () => {
    expect(await dumpSchema(database.owner)).toBe(schemaBefore);
  });
});
