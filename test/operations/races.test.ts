/** Two daemons on one database at once: what holds whoever commits first. */
import { describe, expect, it } from 'vitest';
import { Failure } from '../../src/kernel/errors.ts';
import { listSends, listTransitions } from '../../src/operations/operations.ts';
import { untilLockWaits } from '../harness/lock-waits.ts';
import { until } from '../harness/until.ts';
import { conclusion, freshWallet, giveTo, POLL_MS, useOperations, WAIT_MS, write } from './rig.ts';

const rig = useOperations();
const daemon = (i: number) => (i % 2 ? rig.first : rig.other);
const of = (i: number) => daemon(i).operations;
const HOUR_MS = 3_600_000;

it('Of 100 identical requests with a key one is recorded, with few calls', async () => {
  const begun = () => rig.first.begun() + rig.other.begun();
  const before = begun();
  const one = { ...giveTo(), owner: 'identical', idempotencyKey: 'k', fingerprint: 'same' };
  const results = await Promise.all(
    Array.from({ length: 100 }, (_, i) => of(i).record(write({ ...one }))),
  );
  const ids = results.flatMap((result) => ('id' in result ? [result.id] : []));
  expect(ids).toHaveLength(1);
  const [id = ''] = ids;
  for (const result of results)
    if ('held' in result)
      expect(result.held).toMatchObject({ fingerprint: 'same', operation: { id } });
  expect(await rig.count('owner', 'identical')).toBe(1);
  expect(await listSends(rig.database.db, id)).toHaveLength(1);
  // 99 calls to read what holds the key, and few to record.
  expect(begun() - before).toBeLessThanOrEqual(99 + 8);
});

it('Of two equal amounts on one wallet, one at each daemon, one waits for the other', async () => {
  for (let round = 0; round < 10; round++) {
    const give = giveTo();
    const ids: string[] = [];
    const writes = [0, 1].map(async (i) => {
      const id = await rig.record(give, daemon(i));
      ids.push(id);
      return id;
    });
    const first = await Promise.race(writes);
    await rig.clock.paused(1, WAIT_MS);
    expect(ids).toEqual([first]);
    await rig.conclude(first, 'rejected');
    rig.clock.advance(POLL_MS);
    await Promise.all(writes);
    const [row] = await rig.database.owner.sql`
      select count(*)::int as n from tallyhook.operations
      where id = any(${ids}) and not ambiguous`;
    expect(row).toEqual({ n: 2 });
  }
});

describe('The daily limit of a key', () => {
  const limited = (keyId: string, dayLimit: bigint, i = 0) =>
    rig.record({ ...giveTo(), keyId, dayLimit }, daemon(i));
  const refused = { code: 'key_limit' };

  it('50 writes at once reach the daily limit of their key and never exceed it', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) => limited('key_50', 200n, i)),
    );
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
    for (const one of results)
      if (one.status === 'rejected') expect(one.reason).toMatchObject(refused);
    expect(await rig.count('key_id', 'key_50')).toBe(20);
  });

  it('A rejected write frees its amount at once, an executed one after 25 hours at most', async () => {
    const one = () => limited('key_day', 10n);
    const id = await one();
    await expect(one()).rejects.toMatchObject(refused);
    await rig.conclude(id, 'rejected');
    await one();
    await expect(one()).rejects.toMatchObject(refused);
    await rig.keepAlive();
    rig.clock.advance(25 * HOUR_MS);
    await one();
  });

  it('Every daemon counts what was moved in earlier hours', async () => {
    const one = (i: number) => limited('key_hours', 30n, i);
    await rig.keepAlive();
    const first = await one(0);
    rig.clock.advance(HOUR_MS);
    await one(1);
    rig.clock.advance(HOUR_MS);
    await one(0);
    for (const i of [0, 1]) await expect(one(i)).rejects.toMatchObject(refused);
    await rig.conclude(first, 'rejected');
    rig.clock.advance(60_000);
    await one(1);
    await expect(one(0)).rejects.toMatchObject(refused);
  });

  it('A repeat in the same commit as its first request counts once', async () => {
    const filler = rig.record(giveTo());
    const key = { keyId: 'key_twice', dayLimit: 10n, idempotencyKey: 'twice' };
    const one = { ...giveTo(), ...key };
    const results = await Promise.all(Array.from({ length: 5 }, () => of(1).record(write(one))));
    await filler;
    expect(results.filter((result) => 'id' in result)).toHaveLength(1);
    expect(results.filter((result) => 'held' in result)).toHaveLength(4);
  });
});

describe('A freeze', () => {
  const order = { by: 'ops', reason: 'test' };

  it('Once a freeze is answered no intent commits, and a repeat still finds its operation', async () => {
    const owner = 'hammer';
    const keyed = { ...giveTo(), owner, idempotencyKey: 'before' };
    const before = await rig.record(keyed);
    /** Writes until it is refused as frozen. */
    const hammer = async (i: number) => {
      for (;;) {
        try {
          await rig.record({ ...giveTo(), owner }, daemon(i));
        } catch (error) {
          if (error instanceof Failure && error.code === 'frozen') return;
          throw error;
        }
      }
    };
    const writers = Array.from({ length: 16 }, (_, i) => hammer(i));
    await until(async () => ((await rig.count('owner', owner)) > 50 ? true : undefined));
    const [one, other] = await Promise.all([of(0).freeze(order), of(1).freeze(order)]);
    const atAnswer = await rig.count('owner', owner);
    expect(other.id).toBe(one.id);
    await Promise.all(writers);
    expect(await rig.count('owner', owner)).toBe(atAnswer);
    expect(await of(1).record(write(keyed))).toMatchObject({ held: { operation: { id: before } } });
    const resend = of(0).recordResend(before, 'not_connected', rig.clock.now() + 1);
    await expect(resend).rejects.toMatchObject({ code: 'frozen' });
    await of(1).unfreeze(order);
    await rig.record({ ...giveTo(), owner });
    await expect(of(0).unfreeze(order)).rejects.toMatchObject({ code: 'conflict' });
  });

  it('A freeze waits for the intent that is being committed', async () => {
    const keyed = { ...giveTo(freshWallet()), owner: 'slow', idempotencyKey: 'k' };
    const abort = new Error('rolled back');
    const done: string[] = [];
    let all: Promise<unknown> | undefined;
    // An uncommitted row with its key blocks the intent after it saw that nothing is frozen.
    const blocking = rig.database.owner.begin(async (tx) => {
      await tx.sql`
        insert into tallyhook.operations (id, kind, state, source, owner, key_id, idempotency_key,
          fingerprint, key_held, method, path, request_body, recorded_at)
        values ('op_blocking', 'other', 'sending', 'gateway', 'slow', 'k', 'k', 'f', true, 'POST',
          '/', '', now())`;
      const recording = rig.record(keyed).then(() => done.push('recorded'));
      await untilLockWaits(rig.database.owner, { wait: 'transactionid' });
      const freezing = of(1).freeze(order);
      all = Promise.all([recording, freezing.then(() => done.push('frozen'))]);
      await untilLockWaits(rig.database.owner, { wait: 'advisory' });
      throw abort;
    });
    await expect(blocking).rejects.toBe(abort);
    await all;
    expect(done.toSorted()).toEqual(['frozen', 'recorded']);
    await of(1).unfreeze(order);
  });
});

it('The same conclusion at both daemons many times at once is one move and one event', async () => {
  const id = await rig.record(giveTo());
  const accepted = conclusion(id, 'accepted', rig.clock.now());
  const results = await Promise.all(Array.from({ length: 12 }, (_, i) => of(i).conclude(accepted)));
  expect(new Set(results.map(({ state }) => state))).toEqual(new Set(['accepted']));
  const transitions = await listTransitions(rig.database.db, id);
  expect(transitions.map(({ toState }) => toState)).toEqual(['sending', 'accepted']);
  expect(await rig.eventsOf(id)).toHaveLength(1);
});
