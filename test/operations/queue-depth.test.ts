/** A long queue of one wallet does not hide what waits behind it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import {
  conclusion,
  freshWallet,
  type OperationsDeps,
  openOperations,
  withBooks,
  write,
} from './journal-parts.ts';

let database: TestDatabase;
let parts: OperationsDeps;
beforeAll(async () => {
  database = await createDatabase();
  parts = await openOperations(database.db, { settings: withBooks });
});
afterAll(() => database.drop());

async function queued(toAddr: string): Promise<string> {
  const { clock, operations } = parts;
  clock.advance(1);
  const fields = { toAddr, operationNo: 1n, amount: 10n, reasonType: 'gift' };
  const expiresAt = clock.now() + 3_600_000;
  const said = await operations.record(write({ fields, expiresAt, queue: true }));
  if (!('queued' in said)) throw new Error('not queued');
  return said.queued.id;
}

/** Puts as many more behind a queued write, a microsecond apart. */
async function multiply(id: string, count: number): Promise<void> {
  await database.owner.sql`
    insert into tallyhook.operations (id, kind, state, source, owner, key_id, fingerprint, key_held,
      method, path, request_body, to_addr, operation_no, amount, recorded_at, expires_at)
    select o.id || '-' || lpad(i::text, 6, '0'), o.kind, o.state, o.source, o.owner, o.key_id,
      o.fingerprint, false, o.method, o.path, o.request_body, o.to_addr, o.operation_no, o.amount,
      o.recorded_at + i * interval '0.1 microsecond', o.expires_at
    from tallyhook.operations o cross join generate_series(1, ${count}) i where o.id = ${id}`;
}

test('A wallet with thousands in the queue is one among others, and keeps its order', async () => {
  const { operations, clock } = parts;
  const first = await queued(freshWallet());
  await multiply(first, 3_000);
  const other = await queued(freshWallet());
  const claimed = async () => (await operations.claimQueued(clock.now(), 10)).map(({ id }) => id);
  expect(await claimed()).toEqual([first, other]);
  expect(await claimed()).toEqual([]);
  for (let i = 1, last = first; i <= 12; i++) {
    await operations.conclude(conclusion(last, 'rejected', clock.now()));
    last = `${first}-${String(i).padStart(6, '0')}`;
    expect(await claimed()).toEqual([last]);
  }
});
