/**
 * Promise 2. A write with an idempotency key is applied at most once, however often it is repeated.
 */
import { expect, it } from 'vitest';
import { type App, makeApp } from '../harness/app.ts';
import { QUICK } from '../harness/daemon.ts';
import { operationIdOf, useRig } from '../harness/rig.ts';

// Nothing here is about time: a slow machine must not make a write one that was not sent in time.
const rig = useRig({
  daemon: { ...QUICK.daemon, heartbeat_timeout_ms: 60_000 },
  upstream: { ...QUICK.upstream, connect_timeout_ms: 60_000, write_timeout_ms: 60_000 },
});
const keyed = (key: string) => ({ 'idempotency-key': key });

/** A hundred equal requests at once, half of them through the other daemon. */
const hundred = (key: string, amount: number, other: App) =>
  Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      (i % 2 ? other : rig.app).give(rig.world.ada, amount, keyed(key)),
    ),
  );

it('A hundred equal requests on two daemons are sent once and get one answer', async () => {
  const { url } = await rig.another();
  const other = makeApp(() => url);
  const answers = await hundred('once', 31_001, other);
  expect(rig.effects(31_001)).toHaveLength(1);
  const fine = answers.filter(({ status }) => status === 200);
  expect(fine.length).toBeGreaterThan(0);
  expect(new Set(fine.map(({ text }) => text)).size).toBe(1);
  expect(fine.filter(({ headers }) => !headers['idempotency-replayed'])).toHaveLength(1);
  for (const { json } of answers.filter(({ status }) => status !== 200))
    expect(json.code).toBe('idempotency_in_flight');
  const again = await hundred('once', 31_001, other);
  expect(again.map(({ text }) => text)).toEqual(again.map(() => fine[0]?.text));

  rig.world.sandbox.control.addFault({ kind: 'lost_answer', contains: '31002', count: 100 });
  const lost = await hundred('lost', 31_002, other);
  expect(rig.effects(31_002)).toHaveLength(1);
  const codes = new Set(lost.map(({ json }) => json.code));
  codes.delete('idempotency_in_flight');
  expect([...codes]).toEqual(['outcome_unknown']);
  expect(new Set(lost.map(operationIdOf)).size).toBe(1);
});

it('A repeat after a restart gets the first answer and is not sent', async () => {
  const first = await rig.app.give(rig.world.ben, 31_003, keyed('restart'));
  await rig.restart();
  const again = await rig.app.give(rig.world.ben, 31_003, keyed('restart'));
  expect(again.text).toBe(first.text);
  expect(again.headers['idempotency-replayed']).toBe('true');
  expect(rig.effects(31_003)).toHaveLength(1);
});

it('A write that the service refused unapplied is sent again under the same key', async () => {
  rig.world.sandbox.control.addFault({ kind: 'throttle', contains: '31004', retry_after_s: 0 });
  const refused = await rig.app.give(rig.world.ben, 31_004, keyed('throttled'));
  expect(refused.status).toBe(429);
  const again = await rig.app.give(rig.world.ben, 31_004, keyed('throttled'));
  expect(again.status, again.text).toBe(200);
  expect(rig.effects(31_004)).toHaveLength(1);
});
