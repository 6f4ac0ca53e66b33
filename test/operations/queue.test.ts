/** Writes in the request queue are sent in order, once and in time. */

import { describe, expect, it } from 'vitest';
import { findByIdempotencyKey, findOperation } from '../../src/operations/operations.ts';
import { refillOpen } from '../harness/open-operations.ts';
import { freshWallet, giveTo, queuedId, useOperations, write } from './rig.ts';

const rig = useOperations();
const now = () => rig.clock.now();
const TTL_MS = 3_600_000;

describe('A write whose caller chose to wait', () => {
  it('A queued write is handed out with everything that its sender needs', async () => {
    const expiresAt = now() + 10_000;
    const input = write({
      ...giveTo(),
      reference: 'r',
      preImage: { a: 2n ** 60n },
      expiresAt,
      queue: true,
      idempotencyKey: 'asked',
    });
    const recorded = await rig.first.operations.record(input);
    const id = queuedId(recorded);
    expect(recorded).toEqual({ queued: await findOperation(rig.database.db, id) });
    rig.clock.advance(5);
    const [send, ...more] = await rig.first.operations.claimQueued(now(), 10);
    expect(more).toEqual([]);
    expect(send).toMatchObject({
      id,
      kind: 'give',
      owner: 'app',
      keyId: 'key_1',
      idempotencyKey: 'asked',
      reference: 'r',
      method: 'POST',
      path: input.path,
      contentType: 'application/json',
      // No byte is sent after its caller stopped waiting.
      sendDeadlineAt: expiresAt,
      expiresAt,
    });
    expect(Buffer.from(send?.body ?? []).toString()).toBe('{"amount":10}');
    const sending = { state: 'sending', sentAt: now() };
    expect(await findOperation(rig.database.db, id)).toMatchObject(sending);
  });

  it('A write that is sent at once has a deadline no later than its expiry', async () => {
    const expiresAt = now() + 700;
    const recorded = await rig.first.operations.record(write({ expiresAt }));
    expect(recorded).toMatchObject({ sendDeadlineAt: expiresAt });
  });

  it.each(['unavailable', 'not_sent'] as const)(
    'After an answer of class %s a write is queued again with its key held, and sent again later',
    async (cls) => {
      await rig.keepAlive();
      const idempotencyKey = `again-${cls}`;
      const id = await rig.record({ ...giveTo(), idempotencyKey, expiresAt: now() + TTL_MS });
      expect((await rig.conclude(id, cls)).state).toBe('queued');
      const held = await findByIdempotencyKey(rig.database.db, 'app', idempotencyKey);
      expect(held?.operation).toMatchObject({ id, state: 'queued', outcome: 'open' });
      expect(await rig.eventsOf(id)).toEqual([]);
      for (const waitMs of [1_000, 2_000, 4_000]) {
        rig.clock.advance(waitMs - 1);
        expect(await rig.claim()).toEqual([]);
        rig.clock.advance(1);
        expect(await rig.claim()).toEqual([id]);
        await rig.conclude(id, cls);
      }
      rig.clock.advance(8_000);
      expect(await rig.claim()).toEqual([id]);
      expect((await rig.conclude(id, 'accepted')).state).toBe('accepted');
    },
  );

  it('A write is sent again when the service allows it, at least once a minute otherwise', async () => {
    await rig.keepAlive();
    const id = await rig.queue({ expiresAt: now() + 10 * TTL_MS });
    await rig.claim();
    await rig.conclude(id, 'unavailable', { retryAt: now() + 90_000 });
    rig.clock.advance(89_999);
    expect(await rig.claim()).toEqual([]);
    rig.clock.advance(1);
    for (let sends = 0; sends < 8; sends++) {
      expect(await rig.claim()).toEqual([id]);
      await rig.conclude(id, 'not_sent');
      rig.clock.advance(60_000);
    }
  });

  it('A write that was not sent when it expires is rejected, and its key released', async () => {
    const idempotencyKey = 'late';
    const id = await rig.queue({ idempotencyKey, expiresAt: now() + 10 });
    await rig.claim();
    rig.clock.advance(10);
    expect((await rig.conclude(id, 'not_sent')).state).toBe('rejected');
    expect(await findByIdempotencyKey(rig.database.db, 'app', idempotencyKey)).toBeUndefined();
  });

  it.each([
    ['', 0],
    [', although the clock of the next sender is behind', 5],
  ])('A repeated conclusion about a send does not affect a later send%s', async (_, aheadMs) => {
    const id = await rig.queue();
    await rig.claim();
    const endedAt = now() + aheadMs;
    for (let i = 0; i < 2; i++)
      expect((await rig.conclude(id, 'not_sent', {}, endedAt)).state).toBe('queued');
    rig.clock.advance(1_000 + aheadMs);
    expect(await rig.claim(10, rig.other)).toEqual([id]);
    expect((await rig.conclude(id, 'not_sent', {}, endedAt)).state).toBe('sending');
    expect(await rig.claim()).toEqual([]);
  });
});

describe('The request queue', () => {
  it('Writes of one wallet are sent in their order, of one kind or of several; others overtake', async () => {
    const [a, b] = [freshWallet(), freshWallet()];
    const first = await rig.queue(giveTo(a));
    const both = await rig.queue({
      kind: 'transfer',
      fields: { fromAddr: a.toUpperCase().replace('0X', '0x'), toAddr: b, amount: 3n },
    });
    const behind = await rig.queue({ kind: 'receive_from', fields: { fromAddr: b, amount: 4n } });
    const apart = await rig.queue();
    expect(await rig.claim()).toEqual([first, apart]);
    expect(await rig.claim()).toEqual([]);
    await rig.conclude(first, 'accepted');
    expect(await rig.claim()).toEqual([both]);
    await rig.conclude(both, 'unavailable');
    expect(await rig.claim()).toEqual([]);
    rig.clock.advance(1_000);
    expect(await rig.claim()).toEqual([both]);
    await rig.conclude(both, 'accepted');
    expect(await rig.claim()).toEqual([behind]);
  });

  it('A write is queued behind a waiting one of its wallet although it could be sent', async () => {
    const give = giveTo();
    const first = await rig.queue(give);
    const second = await rig.queue({ ...give, queue: false });
    expect(await rig.claim()).toEqual([first]);
    const third = await rig.queue({ ...give, queue: false });
    await rig.conclude(first, 'accepted');
    expect(await rig.claim()).toEqual([second]);
    await rig.conclude(second, 'accepted');
    expect(await rig.claim()).toEqual([third]);
  });

  it.each([
    ['one token', 'transfer_from', 'burn', { contractId: 7n, tokenId: 7n, toAddr: 'y' }],
    ['equal mints', 'mint_sequential', 'mint_sequential', { contractId: 8n, toAddr: 'z' }],
  ] as const)('Writes of %s are sent in their order', async (_, one, next, fields) => {
    const first = await rig.queue({ kind: one, fields });
    const second = await rig.queue({ kind: next, fields });
    expect(await rig.claim()).toEqual([first]);
    await rig.conclude(first, 'accepted');
    expect(await rig.claim()).toEqual([second]);
  });

  it('Two daemons that claim at once send each write once, and each wallet in order', async () => {
    const gives = Array.from({ length: 5 }, () => giveTo());
    const ids: string[] = [];
    for (let i = 0; i < 20; i++) ids.push(await rig.queue(gives[i % 5]));
    const claimed: string[] = [];
    for (let pass = 0; pass < 60 && claimed.length < 20; pass++) {
      const got = (await Promise.all([rig.claim(2), rig.claim(2, rig.other)])).flat();
      claimed.push(...got);
      await Promise.all(got.map((id) => rig.conclude(id, 'accepted')));
    }
    expect(claimed.toSorted()).toEqual(ids.toSorted());
    for (let w = 0; w < 5; w++) {
      const own = ids.filter((_, i) => i % 5 === w);
      expect(claimed.filter((id) => own.includes(id))).toEqual(own);
    }
  });

  it('Nothing is claimed while writes are frozen', async () => {
    const order = { by: 'ops', reason: 'test' };
    const queued = await rig.queue();
    await rig.first.operations.freeze(order);
    expect(await rig.claim()).toEqual([]);
    await rig.first.operations.unfreeze(order);
    expect(await rig.claim()).toEqual([queued]);
  });

  it('Queued writes that conflict with open ones do not delay those behind them', async () => {
    const strict = await rig.open({ settings: { refuseConflicts: true } });
    for (let i = 0; i < 3; i++) {
      const give = giveTo();
      await rig.conclude(await rig.record(give, strict), 'unknown');
      await rig.queue(give);
    }
    const free = await rig.queue();
    rig.clock.advance(10_000);
    expect(await rig.claim(1, strict)).toEqual([free]);
    const marked = await rig.claim();
    expect(marked).toHaveLength(3);
    for (const id of marked)
      expect(await findOperation(rig.database.db, id)).toMatchObject({ ambiguous: true });
  });

  it('Writes that wait for their retry delay no others, however many they are', async () => {
    const waiting: string[] = [];
    for (let i = 0; i < 20; i++) waiting.push(await rig.queue());
    const behind = giveTo();
    waiting.push(await rig.queue(behind));
    expect(await rig.claim()).toEqual(waiting);
    for (const id of waiting) await rig.conclude(id, 'unavailable');
    await rig.queue(behind);
    const other = await rig.queue();
    expect(await rig.claim(1)).toEqual([other]);
  });

  it('Nothing of the kinds that the caller leaves out is claimed', async () => {
    const give = await rig.queue();
    const mint = await rig.queue({ kind: 'mint', fields: { contractId: 9n, tokenId: 9n } });
    expect(
      (await rig.first.operations.claimQueued(now(), 9, ['give'])).map(({ id }) => id),
    ).toEqual([mint]);
    expect(await rig.claim()).toEqual([give]);
  });

  it('The queue takes queueMax writes and refuses one more', async () => {
    const small = await rig.open({ settings: { queueMax: 1 } });
    await rig.queue({}, small);
    await expect(rig.queue({}, small)).rejects.toMatchObject({ code: 'too_many_requests' });
  });

  it('A wallet with thousands of queued writes keeps its order and delays no other', async () => {
    const first = await rig.queue({ expiresAt: now() + TTL_MS });
    await rig.database.owner.sql`
      insert into tallyhook.operations (id, kind, state, source, owner, key_id, fingerprint,
        key_held, method, path, request_body, to_addr, operation_no, amount, recorded_at,
        expires_at)
      select o.id || '-' || lpad(i::text, 6, '0'), o.kind, o.state, o.source, o.owner, o.key_id,
        o.fingerprint, false, o.method, o.path, o.request_body, o.to_addr, o.operation_no, o.amount,
        o.recorded_at + i * interval '0.1 microsecond', o.expires_at
      from tallyhook.operations o cross join generate_series(1, 3000) i where o.id = ${first}`;
    await refillOpen(rig.database.owner);
    const other = await rig.queue();
    expect(await rig.claim(10)).toEqual([first, other]);
    expect(await rig.claim(10)).toEqual([]);
    for (let i = 1, last = first; i <= 12; i++) {
      await rig.conclude(last, 'rejected');
      last = `${first}-${String(i).padStart(6, '0')}`;
      expect(await rig.claim(10)).toEqual([last]);
    }
  });
});
