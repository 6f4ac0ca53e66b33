/** Writes in the request queue are sent in order, once and in time, or not at all. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { connect, type Db } from '../../src/db/connect.ts';
import { retireDaemon } from '../../src/db/leases.ts';
import { WRITER } from '../../src/db/roles.ts';
import {
  findByIdempotencyKey,
  findOperation,
  type NewWrite,
} from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import {
  clearQueue,
  conclusion,
  freshWallet,
  type OperationsDeps,
  openOperations,
  queuedId,
  readBack,
  withBooks,
  write,
} from './journal-parts.ts';
import { type Parking, parking } from './parking.ts';

const TTL_MS = 3_600_000;
let database: TestDatabase;
let pool: Db;
let park: Parking;
let parts: OperationsDeps, other: OperationsDeps;
beforeAll(async () => {
  database = await createDatabase();
  pool = connect({ url: database.url, role: WRITER, max: 6 });
});
beforeEach(async () => {
  await clearQueue(database.owner);
  park = parking();
  parts = await open(database.db);
  other = await open(pool);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

function open(db: Db, settings: object = {}) {
  return openOperations(db, { ...park, settings: { ...withBooks, ...settings } });
}
const now = () => park.clock.now();
const stateOf = (id: string) => readBack.stateOf(database.db, id);

async function queued(toAddr: string, more: Partial<NewWrite> = {}): Promise<string> {
  park.clock.advance(1);
  const fields = { toAddr, operationNo: 1n, amount: 10n, reasonType: 'gift' };
  const input = write({ fields, expiresAt: now() + TTL_MS, queue: true, ...more });
  return queuedId(await parts.operations.record(input));
}
async function claimed(limit = 100, by = parts): Promise<string[]> {
  return (await by.operations.claimQueued(now(), limit)).map(({ id }) => id);
}
const conclude = (id: string, cls: Parameters<typeof conclusion>[1], at = now()) =>
  parts.operations.conclude(conclusion(id, cls, at, cls === 'accepted' ? { txLogNo: next() } : {}));
let numbers = 0n;
const next = () => ++numbers;

describe('A write whose caller chose to wait', () => {
  test('Is queued as it was asked for, and handed out with what a sender needs', async () => {
    const toAddr = freshWallet();
    const expiresAt = now() + 10_000;
    const asked = write({
      ...{
        fields: { toAddr, operationNo: 1n, amount: 10n },
        reference: 'r',
        preImage: { a: 2n ** 60n },
      },
      ...{ expiresAt, queue: true, idempotencyKey: 'asked' },
    });
    const said = await parts.operations.record(asked);
    if (!('queued' in said)) throw new Error('not queued');
    const { id } = said.queued;
    expect(await findOperation(database.db, id)).toEqual(said.queued);
    park.clock.advance(5);
    const [send, ...more] = await parts.operations.claimQueued(now(), 10);
    expect(more).toEqual([]);
    expect(send).toMatchObject({
      ...{ id, kind: 'give', owner: 'app', keyId: 'key_1', idempotencyKey: 'asked' },
      ...{ reference: 'r', method: 'POST', path: asked.path, contentType: 'application/json' },
      // No byte leaves after its caller stopped waiting.
      ...{ sendDeadlineAt: expiresAt, expiresAt },
    });
    expect(Buffer.from(send?.body ?? []).toString()).toBe('{"amount":10}');
    expect(await findOperation(database.db, id)).toMatchObject({ state: 'sending', sentAt: now() });
  });

  test('Sent at once may not leave later than it may wait', async () => {
    const expiresAt = now() + 700;
    const said = await parts.operations.record(write({ expiresAt }));
    expect(said).toMatchObject({ sendDeadlineAt: expiresAt });
  });

  it.each(['unavailable', 'not_sent'] as const)(
    'Goes back after %s with its key still held, and is sent again',
    async (cls) => {
      const idempotencyKey = `back-${cls}`;
      const fields = { toAddr: freshWallet(), operationNo: 1n, amount: 10n };
      const asked = write({ fields, idempotencyKey, expiresAt: now() + TTL_MS });
      const said = await parts.operations.record(asked);
      const id = 'id' in said ? said.id : '';
      expect((await conclude(id, cls)).state).toBe('queued');
      const held = await findByIdempotencyKey(database.db, 'app', idempotencyKey);
      expect(held?.operation).toMatchObject({ id, state: 'queued', outcome: 'open' });
      expect(await readBack.eventsOf(database.owner, id)).toEqual([]);
      expect(await claimed()).toEqual([id]);
      expect((await conclude(id, 'accepted')).state).toBe('accepted');
    },
  );

  test('Is rejected and its key released when the time is over that it may wait', async () => {
    const idempotencyKey = 'late';
    const id = await queued(freshWallet(), { idempotencyKey, expiresAt: now() + 10 });
    await claimed();
    park.clock.advance(10);
    expect((await conclude(id, 'not_sent')).state).toBe('rejected');
    expect(await findByIdempotencyKey(database.db, 'app', idempotencyKey)).toBeUndefined();
  });

  test('Is left alone by a late word about an earlier send of it', async () => {
    const id = await queued(freshWallet());
    await claimed();
    const endedAt = now();
    expect((await conclude(id, 'not_sent', endedAt)).state).toBe('queued');
    expect((await conclude(id, 'not_sent', endedAt)).state).toBe('queued');
    park.clock.advance(3);
    expect(await claimed()).toEqual([id]);
    expect((await conclude(id, 'not_sent', endedAt)).state).toBe('sending');
    expect(await claimed()).toEqual([]);
  });
});

describe('The queue', () => {
  test('Keeps the order of a wallet, whatever the kind, and lets others pass', async () => {
    const [a, b, c] = [freshWallet(), freshWallet(), freshWallet()];
    const first = await queued(a);
    const both = await queued(a, {
      kind: 'transfer',
      fields: { fromAddr: a.toUpperCase().replace('0X', '0x'), toAddr: b, amount: 3n },
    });
    const behind = await queued(b, { kind: 'receive_from', fields: { fromAddr: b, amount: 4n } });
    const apart = await queued(c);
    expect(await claimed()).toEqual([first, apart]);
    expect(await claimed()).toEqual([]);
    await conclude(first, 'accepted');
    expect(await claimed()).toEqual([both]);
    await conclude(both, 'unavailable');
    expect(await claimed()).toEqual([both]);
    await conclude(both, 'accepted');
    expect(await claimed()).toEqual([behind]);
  });

  test('Takes a write that comes behind a waiting one, though the service is there', async () => {
    const wallet = freshWallet();
    const first = await queued(wallet);
    const second = await queued(wallet, { queue: false });
    expect(await claimed()).toEqual([first]);
    const third = await queued(wallet, { queue: false });
    await conclude(first, 'accepted');
    expect(await claimed()).toEqual([second]);
    await conclude(second, 'accepted');
    expect(await claimed()).toEqual([third]);
  });

  test('Keeps the order of a token', async () => {
    const fields = { contractId: 7n, tokenId: 7n, fromAddr: 'x', toAddr: 'y' };
    const first = await queued('', { kind: 'transfer_from', fields });
    const second = await queued('', { kind: 'burn', fields });
    expect(await claimed()).toEqual([first]);
    await conclude(first, 'accepted');
    expect(await claimed()).toEqual([second]);
  });

  test('Hands each out once, in order, to two daemons that ask at once', async () => {
    const wallets = Array.from({ length: 5 }, freshWallet);
    const ids: string[] = [];
    for (let i = 0; i < 20; i++) ids.push(await queued(wallets[i % 5] ?? ''));
    const handed: string[] = [];
    for (let pass = 0; pass < 60 && handed.length < 20; pass++) {
      const got = (await Promise.all([claimed(2), claimed(2, other)])).flat();
      handed.push(...got);
      await Promise.all(got.map((id) => conclude(id, 'accepted')));
    }
    expect(handed.toSorted()).toEqual(ids.toSorted());
    for (let w = 0; w < 5; w++) {
      const own = ids.filter((_, i) => i % 5 === w);
      expect(handed.filter((id) => own.includes(id))).toEqual(own);
    }
  });

  test('Has none while writes are frozen, and skips held wallets', async () => {
    const [held, free] = [freshWallet(), freshWallet()];
    const order = { by: 'ops', reason: 'test' };
    const waiting = await queued(held);
    const going = await queued(free);
    await parts.operations.freeze(order);
    expect(await claimed()).toEqual([]);
    await parts.operations.unfreeze(order);
    const hold = held.toLowerCase();
    await database.db.begin((tx) => parts.operations.hold(tx, hold, now() + 1_000));
    expect(await claimed()).toEqual([going]);
    park.clock.advance(1_000);
    expect(await claimed()).toEqual([waiting]);
  });

  test('Is not held up by those at its head that have to wait', async () => {
    const strict = await open(database.db, { refuseConflicts: true });
    for (let i = 0; i < 3; i++) {
      const wallet = freshWallet();
      const fields = { toAddr: wallet, operationNo: 1n, amount: 10n };
      const lost = await strict.operations.record(write({ fields }));
      await conclude('id' in lost ? lost.id : '', 'unknown');
      await queued(wallet);
    }
    const going = await queued(freshWallet());
    park.clock.advance(10_000);
    expect(await claimed(1, strict)).toEqual([going]);
    const marked = await claimed();
    expect(marked).toHaveLength(3);
    for (const id of marked)
      expect(await findOperation(database.db, id)).toMatchObject({ ambiguous: true });
  });

  test('Takes so many and no more', async () => {
    const small = await open(database.db, { queueMax: 1 });
    const asked = () =>
      write({
        fields: { toAddr: freshWallet(), operationNo: 1n, amount: 1n },
        ...{ expiresAt: now() + TTL_MS, queue: true },
      });
    expect(await small.operations.record(asked())).toHaveProperty('queued');
    const refused = small.operations.record(asked());
    await expect(refused).rejects.toMatchObject({ code: 'too_many_requests' });
  });
});

describe('What leaves the queue unsent', () => {
  test('Expired, is rejected with its event, and its key is free', async () => {
    const idempotencyKey = 'expired';
    const id = await queued(freshWallet(), { idempotencyKey, expiresAt: now() + 100 });
    park.clock.advance(98);
    expect(await parts.operations.runOnce(now())).toBe(0);
    park.clock.advance(2);
    expect(await claimed()).toEqual([]);
    const ended = await Promise.all(
      [parts, other].map(({ operations }) => operations.runOnce(now())),
    );
    expect(ended.toSorted()).toEqual([0, 1]);
    expect(await readBack.eventsOf(database.owner, id)).toMatchObject([
      { type: 'operation.rejected', error: { class: 'not_sent', code: 'expired' } },
    ]);
    expect(await findByIdempotencyKey(database.db, 'app', idempotencyKey)).toBeUndefined();
  });

  test('Is expired or handed out, never both', async () => {
    const expiresAt = now() + 1_000;
    for (let round = 0; round < 15; round++) {
      const id = await queued(freshWallet(), { expiresAt });
      const [got] = await Promise.all([claimed(), other.operations.runOnce(expiresAt)]);
      expect(await stateOf(id)).toBe(got.includes(id) ? 'sending' : 'rejected');
    }
  });

  test('Is cancelled by its owner or an admin, once, and not while it is on its way', async () => {
    const { operations } = parts;
    const id = await queued(freshWallet(), { idempotencyKey: 'cancelled' });
    const by = (owner: string, admin = false) => operations.cancel(id, { owner, admin });
    const none = operations.cancel('op_none', { owner: 'app', admin: true });
    await expect(none).rejects.toMatchObject({ code: 'not_found' });
    await expect(by('else')).rejects.toMatchObject({ code: 'forbidden' });
    const told = await Promise.allSettled([by('app'), by('ops', true)]);
    expect(told.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(await stateOf(id)).toBe('cancelled');
    await expect(by('app')).rejects.toMatchObject({ code: 'conflict' });
    expect(await claimed()).toEqual([]);
    const held = await findByIdempotencyKey(database.db, 'app', 'cancelled');
    expect(held?.operation.id).toBe(id);
    await queued(freshWallet());
    const [sending = ''] = await claimed();
    const late = operations.cancel(sending, { owner: 'app', admin: false });
    await expect(late).rejects.toMatchObject({ code: 'conflict' });
  });

  test('Claimed by a daemon that dies, is unknown and never sent again', async () => {
    const id = await queued(freshWallet());
    expect(await claimed(10, other)).toEqual([id]);
    await retireDaemon(database.db, { id: other.daemonId, epoch: 0n }, now());
    await database.owner.sql`
      update tallyhook.daemons set alive_until = '2100-01-01' where id = ${parts.daemonId}`;
    park.clock.advance(30_001);
    expect(await claimed()).toEqual([]);
    expect([await parts.operations.runOnce(now()), await stateOf(id)]).toEqual([1, 'unknown']);
  });
});
