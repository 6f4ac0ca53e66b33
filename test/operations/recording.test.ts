/** An intent is durable before anything is sent, once per idempotency key, and cheap under load. */
import { describe, expect, it } from 'vitest';
import { WRITER } from '../../src/db/access/roles.ts';
import { connect } from '../../src/db/connect.ts';
import {
  findByIdempotencyKey,
  findOperation,
  type Kind,
  listSends,
  listTransitions,
} from '../../src/operations/operations.ts';
import { conclusion, useOperations, write } from './rig.ts';

const rig = useOperations();
const many = <T>(count: number, make: (i: number) => Promise<T>) =>
  Array.from({ length: count }, (_, i) => make(i));

describe('Recording', () => {
  it('A recorded write keeps every value that was asked for, in state sending', async () => {
    const at = rig.clock.now();
    const body = Uint8Array.from({ length: 256 }, (_, i) => i);
    const huge = 10n ** 60n + 7n;
    const id = await rig.record({
      kind: 'mint',
      reference: 'order 7',
      body,
      fields: { contractId: huge, tokenId: -huge, toAddr: 'x\0y', extraData: '\ud800' },
      preImage: { balance: 9007199254740993n },
    });
    expect(await findOperation(rig.database.db, id)).toMatchObject({
      id,
      kind: 'mint',
      state: 'sending',
      outcome: 'open',
      source: 'gateway',
      owner: 'app',
      reference: 'order 7',
      contractId: huge,
      tokenId: -huge,
      amount: null,
      toAddr: 'x\ufffdy',
      extraData: '\ufffd',
      preImage: { balance: 9007199254740993n },
      recordedAt: at,
      sentAt: at,
      sendDeadlineAt: at + 30_000,
      answeredAt: null,
      inLedger: false,
    });
    const [row] = await rig.database.owner.sql`
      select request_body from tallyhook.operations where id = ${id}`;
    expect(new Uint8Array(row?.requestBody)).toEqual(body);
    expect(await listTransitions(rig.database.db, id)).toMatchObject([
      { fromState: null, toState: 'sending' },
    ]);
  });

  it('200 writes at once take few commits, and each is recorded', async () => {
    const before = rig.first.begun();
    const ids = await Promise.all(many(200, () => rig.record()));
    expect(new Set(ids).size).toBe(200);
    expect(rig.first.begun() - before).toBeLessThanOrEqual(8);
    const [row] = await rig.database.owner.sql<{ n: number }[]>`
      select count(*)::int as n from tallyhook.operations where id = any(${ids})`;
    expect(row?.n).toBe(200);
  });

  it('A row that the database refuses does not affect rows of the same commit', async () => {
    const kind = 'nonsense' as Kind;
    const results = await Promise.allSettled(many(20, (i) => rig.record(i === 11 ? { kind } : {})));
    expect(results.flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))).toEqual([11]);
    expect(results[11]).toMatchObject({ reason: { code: '23514' } });
  });

  it('A commit that takes too long is not retried row by row', async () => {
    const url = rig.database.url;
    const pool = connect({ url, role: WRITER, max: 2, statementTimeoutMs: 200 });
    try {
      const slow = await rig.open({}, pool);
      await rig.database.owner.begin(async (tx) => {
        await tx.sql`select pg_advisory_xact_lock(7240201, 0)`;
        const results = await Promise.allSettled(many(9, () => rig.record({}, slow)));
        for (const one of results) expect(one).toMatchObject({ reason: { code: '57014' } });
      });
      expect(slow.begun()).toBe(2);
    } finally {
      await pool.end();
    }
  });

  it('Each resend is a row with the proof that allows it', async () => {
    const id = await rig.record();
    for (const ms of [5, 6])
      await rig.first.operations.recordResend(id, 'unauthorized', rig.clock.now() + ms);
    expect(await listSends(rig.database.db, id)).toMatchObject([
      { n: 1, daemonId: rig.first.id, deadlineAt: rig.clock.now() + 30_000, after: null },
      { n: 2, after: 'unauthorized' },
      { n: 3, after: 'unauthorized' },
    ]);
  });

  it.each<[string, (id: string) => unknown]>([
    ['from its deadline on', () => rig.clock.advance(1_000)],
    ['once it is accepted', (id) => rig.conclude(id, 'accepted')],
    ['once it is unknown', (id) => rig.conclude(id, 'unknown')],
  ])('A write is not sent again %s', async (_when, change) => {
    const id = await rig.record({ sendWithinMs: 1_000 });
    const resend = ({ operations } = rig.first) =>
      operations.recordResend(id, 'not_connected', rig.clock.now() + 5_000);
    rig.clock.advance(999);
    await resend();
    rig.clock.advance(-999);
    await change(id);
    const detail = 'this write may not be sent again';
    await expect(resend()).rejects.toMatchObject({ code: 'lease_lost', detail });
    expect(await listSends(rig.database.db, id)).toHaveLength(2);
  });

  it('A write is not sent again by another daemon', async () => {
    const id = await rig.record();
    const resend = rig.other.operations.recordResend(id, 'not_connected', rig.clock.now() + 5_000);
    const detail = 'this write may not be sent again';
    await expect(resend).rejects.toMatchObject({ code: 'lease_lost', detail });
    expect(await listSends(rig.database.db, id)).toHaveLength(1);
  });
});

describe('An idempotency key', () => {
  it('An idempotency key belongs to one owner', async () => {
    const key = { idempotencyKey: 'owned' };
    await rig.record({ ...key, owner: 'one' });
    await rig.record({ ...key, owner: 'two' });
    const again = await rig.first.operations.record(write({ ...key, owner: 'one' }));
    expect(again).toHaveProperty('held');
    expect(await findByIdempotencyKey(rig.database.db, 'three', 'owned')).toBeUndefined();
  });

  it.each([
    ['accepted', true],
    ['rejected', true],
    ['unknown', true],
    ['unavailable', false],
    ['not_sent', false],
  ] as const)(
    'Whether an idempotency key is held after an answer of class %s is %s',
    async (cls, isHeld) => {
      const key = { idempotencyKey: `after-${cls}` };
      const id = await rig.record(key);
      await rig.conclude(id, cls);
      const again = await rig.first.operations.record(write(key));
      expect('held' in again).toBe(isHeld);
      if (!('held' in again)) return;
      expect(again.held).toMatchObject({ operation: { id }, fingerprint: 'f' });
      if (cls === 'unknown') return;
      const { answer } = again.held;
      expect(answer).toMatchObject({ status: 200, headers: [['content-type', 'x']] });
      expect(Buffer.from(answer.body ?? []).toString()).toBe('"answer"');
    },
  );

  it('A released idempotency key is not held again by a late answer', async () => {
    const key = { idempotencyKey: 'released' };
    const first = await rig.record(key);
    await rig.conclude(first, 'not_sent');
    const second = await rig.record(key);
    await rig.conclude(first, 'accepted');
    const held = await findByIdempotencyKey(rig.database.db, 'app', key.idempotencyKey);
    expect(held?.operation.id).toBe(second);
  });

  it('A replayed answer keeps few headers and no cookies', async () => {
    const key = { idempotencyKey: 'headers' };
    const operationId = await rig.record(key);
    const kept = [
      ['Content-Type', 'application/json'],
      ['location', '/x'],
      ['retry-after', '3'],
      ['www-authenticate', 'Bearer'],
    ];
    const headers = [...kept, ['set-cookie', 'a=b'], ['date', 'x'], ['x-request-id', '1']];
    const answer = { status: 401, headers, body: Buffer.from('{}') };
    const rejected = conclusion(operationId, 'rejected', rig.clock.now());
    await rig.first.operations.conclude({ ...rejected, answer });
    const again = await rig.other.operations.record(write(key));
    expect(again).toMatchObject({ held: { answer: { status: 401, headers: kept } } });
  });
});
