/**
 * An intent is durable before anything is sent, once per idempotency key, and cheaply under load.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { connect } from '../../src/db/connect.ts';
import { retireDaemon } from '../../src/db/leases.ts';
import { WRITER } from '../../src/db/roles.ts';
import {
  findByIdempotencyKey,
  findOperation,
  type Kind,
  listTransitions,
} from '../../src/operations/operations.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import {
  ALIVE_MS,
  conclusion,
  type OperationsDeps,
  openOperations,
  recorded,
  write,
} from './journal-parts.ts';

let database: TestDatabase;
let parts: OperationsDeps;
beforeAll(async () => {
  database = await createDatabase();
});
beforeEach(async () => {
  parts = await openOperations(database.db);
});
afterAll(() => database.drop());

let keys = 0;
const freshKey = () => `key-${keys++}`;

describe('Recording', () => {
  test('Keeps everything that was asked, exactly, in state sending', async () => {
    const { operations, clock, daemonId } = parts;
    const body = Uint8Array.from({ length: 256 }, (_, i) => i);
    const huge = 10n ** 60n + 7n;
    const id = await recorded(operations, {
      kind: 'mint',
      reference: 'order 7',
      body,
      fields: { contractId: huge, tokenId: -huge, toAddr: 'x\0y', extraData: '\ud800' },
      preImage: { balance: 9007199254740993n },
    });
    expect(await findOperation(database.db, id)).toMatchObject({
      id,
      kind: 'mint',
      state: 'sending',
      outcome: 'open',
      source: 'gateway',
      owner: 'app',
      reference: 'order 7',
      contractId: huge,
      tokenId: -huge,
      toAddr: 'x\ufffdy',
      extraData: '\ufffd',
      amount: null,
      preImage: { balance: 9007199254740993n },
      recordedAt: clock.now(),
      sentAt: clock.now(),
      sendDeadlineAt: clock.now() + 30_000,
      answeredAt: null,
      inLedger: false,
    });
    const [row] = await database.owner.sql`
      select o.request_body, s.n, s.daemon_id, s.deadline_at, s.after
      from tallyhook.operations o join tallyhook.sends s on s.operation_id = o.id
      where o.id = ${id}`;
    expect(new Uint8Array(row?.requestBody)).toEqual(body);
    expect(row).toMatchObject({ n: 1, daemonId: daemonId, after: null });
    expect(await listTransitions(database.db, id)).toMatchObject([
      { fromState: null, toState: 'recorded' },
      { fromState: 'recorded', toState: 'sending' },
    ]);
  });

  test('Of 200 at once takes few commits, and each is there', async () => {
    const { operations, begun } = parts;
    const ids = await Promise.all(Array.from({ length: 200 }, () => recorded(operations)));
    expect(new Set(ids).size).toBe(200);
    expect(begun()).toBeLessThanOrEqual(8);
    const [row] = await database.owner.sql<{ n: number }[]>`
      select count(*)::int as n from tallyhook.operations where id = any(${ids})`;
    expect(row?.n).toBe(200);
  });

  test('Of a row that cannot be recorded hurts only that row', async () => {
    const { operations } = parts;
    const nonsense = 'nonsense' as Kind;
    const told = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        recorded(operations, i === 11 ? { kind: nonsense } : {}),
      ),
    );
    expect(told.flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))).toEqual([11]);
    expect(told[11]).toMatchObject({ reason: { code: '23514' } });
  });

  test('That takes too long is not tried again one by one', async () => {
    const pool = connect({ url: database.url, role: WRITER, max: 2, statementTimeoutMs: 200 });
    try {
      const { operations, begun } = await openOperations(pool);
      await database.owner.begin(async (tx) => {
        await tx.sql`select pg_advisory_xact_lock(7240201, 0)`;
        const told = await Promise.allSettled(
          Array.from({ length: 9 }, () => recorded(operations)),
        );
        for (const one of told) expect(one).toMatchObject({ reason: { code: '57014' } });
      });
      expect(begun()).toBe(2);
    } finally {
      await pool.end();
    }
  });

  test('Is refused once this daemon no longer counts as alive', async () => {
    const { operations, clock } = parts;
    clock.advance(ALIVE_MS);
    await expect(recorded(operations)).rejects.toMatchObject({ code: 'lease_lost' });
    const fresh = await openOperations(database.db);
    await recorded(fresh.operations);
    const daemon = { id: fresh.daemonId, epoch: 0n };
    await retireDaemon(database.db, daemon, fresh.clock.now());
    await expect(recorded(fresh.operations)).rejects.toMatchObject({ code: 'lease_lost' });
  });

  test('Of one more send is a row, with the proof that allows it', async () => {
    const { operations, clock } = parts;
    const id = await recorded(operations);
    await operations.recordResend(id, 'unauthorized', clock.now() + 5);
    await operations.recordResend(id, 'unauthorized', clock.now() + 6);
    const rows = await database.owner.sql`
      select n, after from tallyhook.sends where operation_id = ${id} order by n`;
    expect(rows).toEqual([
      { n: 1, after: null },
      { n: 2, after: 'unauthorized' },
      { n: 3, after: 'unauthorized' },
    ]);
  });
});

describe('An idempotency key', () => {
  test('Of 100 identical requests, at two daemons, lets one through', async () => {
    const other = await openOperations(database.db);
    const idempotencyKey = freshKey();
    const told = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        (i % 2 ? parts : other).operations.record(write({ idempotencyKey, fingerprint: 'same' })),
      ),
    );
    const ids = told.flatMap((result) => ('id' in result ? [result.id] : []));
    expect(ids).toHaveLength(1);
    for (const result of told)
      if ('held' in result)
        expect(result.held).toMatchObject({ fingerprint: 'same', operation: { id: ids[0] } });
    const rows = await database.owner.sql`
      select s.n from tallyhook.operations o join tallyhook.sends s on s.operation_id = o.id
      where o.idempotency_key = ${idempotencyKey}`;
    expect(rows).toEqual([{ n: 1 }]);
  });

  test('Belongs to its owner', async () => {
    const idempotencyKey = freshKey();
    await recorded(parts.operations, { idempotencyKey, owner: 'one' });
    await recorded(parts.operations, { idempotencyKey, owner: 'two' });
    await expect(recorded(parts.operations, { idempotencyKey, owner: 'one' })).rejects.toThrow(
      'held',
    );
    expect(await findByIdempotencyKey(database.db, 'three', idempotencyKey)).toBeUndefined();
  });

  it.each([
    ['accepted', true],
    ['rejected', true],
    ['unknown', true],
    ['unavailable', false],
    ['not_sent', false],
  ] as const)('After %s is held: %s', async (cls, stillHeld) => {
    const { operations, clock } = parts;
    const idempotencyKey = freshKey();
    const id = await recorded(operations, { idempotencyKey });
    await operations.conclude(conclusion(id, cls, clock.now()));
    const again = await operations.record(write({ idempotencyKey }));
    expect('held' in again).toBe(stillHeld);
    if (!stillHeld) return;
    expect(again).toMatchObject({ held: { operation: { id }, fingerprint: 'f' } });
    if (cls === 'unknown') return;
    const { answer } = 'held' in again ? again.held : { answer: undefined };
    expect(answer).toMatchObject({ status: 200, headers: [['content-type', 'x']] });
    expect(Buffer.from(answer?.body ?? []).toString()).toBe('"answer"');
  });

  test('Once released is never held again by a late answer', async () => {
    const { operations, clock } = parts;
    const idempotencyKey = freshKey();
    const first = await recorded(operations, { idempotencyKey });
    await operations.conclude(conclusion(first, 'not_sent', clock.now()));
    const second = await recorded(operations, { idempotencyKey });
    await operations.conclude(conclusion(first, 'accepted', clock.now()));
    const held = await findByIdempotencyKey(database.db, 'app', idempotencyKey);
    expect(held?.operation.id).toBe(second);
  });
});
