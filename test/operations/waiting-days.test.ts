/** What waits in the queue for long: through lost commits, other clocks, many tries, and days. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { connect, type Db } from '../../src/db/connect.ts';
import { WRITER } from '../../src/db/roles.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import {
  clearQueue,
  conclusion,
  freshWallet,
  losing,
  type OperationsDeps,
  openOperations,
  readBack,
  withBooks,
  write,
} from './journal-parts.ts';
import { type Parking, parking } from './parking.ts';

const DAY_MS = 24 * 3_600_000;
let database: TestDatabase;
let pool: Db;
let park: Parking;
let parts: OperationsDeps;
let other: OperationsDeps;
beforeAll(async () => {
  database = await createDatabase();
  pool = connect({ url: database.url, role: WRITER, max: 6 });
});
beforeEach(async () => {
  await clearQueue(database.owner);
  park = parking();
  parts = await open(database.db);
  other = await open(pool);
  await database.owner.sql`update tallyhook.daemons set alive_until = '2100-01-01'`;
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const open = (db: Db) => {
  const { clock, pause } = park;
  return openOperations(db, { clock, pause, settings: withBooks });
};
const now = () => park.clock.now();
/** A give of 10 to a wallet of its own, that may wait for a week. */
const asked = (more: object = {}) => {
  const fields = { toAddr: freshWallet(), operationNo: 1n, amount: 10n, reasonType: 'gift' };
  return write({ fields, queue: true, expiresAt: now() + 7 * DAY_MS, ...more });
};
async function queued(more: object = {}): Promise<string> {
  const said = await parts.operations.record(asked(more));
  if (!('queued' in said)) throw new Error('not queued');
  return said.queued.id;
}
const claimed = async (by: OperationsDeps) =>
  (await by.operations.claimQueued(now(), 10)).map(({ id }) => id);

test('A repeated word about a send is known as late, though the next sender is behind', async () => {
  const id = await queued();
  await claimed(parts);
  // The other daemon's clock shows less than what the first one's showed.
  const neverLeft = conclusion(id, 'not_sent', now() + 5);
  expect((await parts.operations.conclude(neverLeft)).state).toBe('queued');
  expect(await claimed(other)).toEqual([id]);
  expect((await parts.operations.conclude(neverLeft)).state).toBe('sending');
  expect(await claimed(parts)).toEqual([]);
});

test('What was tried ever so often is handed out again', async () => {
  const id = await queued();
  await database.owner.sql`
    insert into tallyhook.sends (operation_id, n, started_at, deadline_at, daemon_id, epoch, after)
    values (${id}, 32767, now(), now(), ${parts.daemonId}, 1, 'queued')`;
  expect(await claimed(parts)).toEqual([id]);
});

test('What was queued unseen stands as its repeat was told', async () => {
  const { operations } = await open(losing(database.db));
  const one = asked({ idempotencyKey: 'unseen' });
  await expect(operations.record(one)).rejects.toMatchObject({ code: 'outcome_unknown' });
  const standing = { held: { operation: { state: 'queued' } } };
  expect(await operations.record(one)).toMatchObject(standing);
  expect(await operations.runOnce(now())).toBe(0);
  expect(await operations.record(one)).toMatchObject(standing);
});

test('What waits is of every day until it left, and of the day after that', async () => {
  const late = { keyId: 'key_late', dayLimit: 10n };
  const id = await queued(late);
  park.advance(2 * DAY_MS);
  await expect(queued(late)).rejects.toMatchObject({ code: 'key_limit' });
  expect(await claimed(parts)).toEqual([id]);
  await parts.operations.conclude(conclusion(id, 'accepted', now()));
  park.advance(DAY_MS - 1);
  await expect(queued(late)).rejects.toMatchObject({ code: 'key_limit' });
  park.advance(3_600_001);
  await queued(late);
});

test('What waits under a key that is revoked leaves no more, and ends', async () => {
  const keyId = 'key_stolen';
  await database.owner.sql`
    insert into tallyhook.keys (id, name, owner, hash, scopes, created_at)
    values (${keyId}, 'stolen', 'app', 'hash', '{gateway}', now())`;
  const [id, kept] = [await queued({ keyId }), await queued()];
  await database.owner.sql`update tallyhook.keys set revoked_at = now() where id = ${keyId}`;
  expect(await claimed(parts)).toEqual([kept]);
  expect(await parts.operations.runOnce(now())).toBe(1);
  expect(await readBack.stateOf(database.db, id)).toBe('rejected');
  expect(await readBack.eventsOf(database.db, id)).toMatchObject([
    { type: 'operation.rejected', error: { class: 'not_sent', code: 'key_revoked' } },
  ]);
});
