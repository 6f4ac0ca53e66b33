/** Sends that no daemon ends, and commits whose result is lost. */
import { describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { findByIdempotencyKey } from '../../src/operations/operations.ts';
import { ALIVE_MS, losing, useOperations, write } from './rig.ts';

const rig = useOperations();

describe('An abandoned send', () => {
  const DEADLINE_MS = 30_000;

  it('A send is unknown once its deadline has passed and its daemon is dead', async () => {
    const id = await rig.record();
    const start = rig.clock.now();
    const pass = (at: number) => rig.other.operations.runOnce(at);
    const alive = (until: number) => rig.database.db.sql`
      update tallyhook.daemons set alive_until = ${isoText(until)} where id = ${rig.first.id}`;
    await pass(start + ALIVE_MS + 1);
    expect(await rig.stateOf(id)).toBe('sending');
    await alive(start + DEADLINE_MS + 10_000);
    await pass(start + DEADLINE_MS + 1);
    expect(await rig.stateOf(id)).toBe('sending');
    await alive(start + DEADLINE_MS);
    await pass(start + DEADLINE_MS);
    expect(await rig.stateOf(id)).toBe('sending');
    expect(await pass(start + DEADLINE_MS + 1)).toBe(1);
    expect(await rig.stateOf(id)).toBe('unknown');
    expect(await rig.eventsOf(id)).toMatchObject([
      { type: 'operation.unknown', error: { class: 'abandoned' } },
    ]);
    const late = await rig.conclude(id, 'accepted');
    expect(late).toMatchObject({ state: 'accepted', errorClass: null });
  });

  it('A send of a living daemon is unknown a minute after its deadline', async () => {
    const id = await rig.record();
    const deadline = rig.clock.now() + DEADLINE_MS;
    await rig.keepAlive();
    await rig.first.operations.runOnce(deadline + 60_000);
    expect(await rig.stateOf(id)).toBe('sending');
    await rig.first.operations.runOnce(deadline + 60_001);
    expect(await rig.stateOf(id)).toBe('unknown');
  });

  it('Two daemons at once make an abandoned send unknown once', async () => {
    const id = await rig.record();
    const at = rig.clock.now() + 200_000;
    await Promise.all([rig.first, rig.other].map(({ operations }) => operations.runOnce(at)));
    expect((await rig.eventsOf(id)).map(({ type }) => type)).toEqual(['operation.unknown']);
  });
});

describe('An unconfirmed intent', () => {
  it('An unconfirmed intent ends as not sent and releases its key', async () => {
    const lossy = await rig.open({}, losing(rig.database.db));
    const key = { idempotencyKey: 'lost-1' };
    await expect(rig.record(key, lossy)).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
    const held = await findByIdempotencyKey(rig.database.db, 'app', key.idempotencyKey);
    expect(held?.operation.state).toBe('sending');
    expect(await lossy.operations.runOnce(rig.clock.now())).toBe(1);
    expect(await rig.eventsOf(held?.operation.id ?? '')).toMatchObject([
      { type: 'operation.rejected', error: { class: 'not_sent', code: 'unconfirmed' } },
    ]);
    await rig.record(key, lossy);
  });

  it('An unconfirmed intent that may wait is answered as unknown and stays in the queue', async () => {
    const { operations } = await rig.open({}, losing(rig.database.db));
    const expiresAt = rig.clock.now() + 60_000;
    const one = write({ idempotencyKey: 'lost-2', expiresAt, queue: true });
    await expect(operations.record(one)).rejects.toMatchObject({
      code: 'outcome_unknown',
      members: { operation_id: expect.stringMatching(/^op_/) },
    });
    const queued = { held: { operation: { state: 'queued' } } };
    expect(await operations.record(one)).toMatchObject(queued);
    expect(await operations.runOnce(rig.clock.now())).toBe(0);
    expect(await operations.record(one)).toMatchObject(queued);
  });
});
