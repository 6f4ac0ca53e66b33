/** Receivers that hang, before they count as slow, leave room for those of other origins. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { type Receiver, startReceiver } from '../harness/receiver.ts';
import { useRig, walletEvent, walletEvents } from './rig.ts';

const MINUTE = 60_000;
const SETTINGS = {
  send: { ...webhookDefaults.send, deadlineMs: MINUTE },
  // Here no send counts as slow because of its duration.
  slowAfterMs: MINUTE,
  concurrency: 8,
  slowConcurrency: 8,
  connectionsPerOrigin: 4,
  claimMax: 16,
};
const rig = useRig(SETTINGS);
let other: Receiver;
beforeEach(async () => {
  other = await startReceiver();
});
afterEach(() => other.close());

const subscribe = (receiver: Receiver, path: string) =>
  rig.webhooks.createEndpoint({ url: `${receiver.url}${path}` }, 'ann');

it('Hanging endpoints of one origin do not fill the queue of claimed deliveries', async () => {
  rig.receiver.behave({ do: 'hang' });
  for (let i = 0; i < 20; i++) await subscribe(rig.receiver, `/hangs${i}`);
  await subscribe(other, '/healthy');
  await rig.emit(walletEvent());
  await rig.deliverUntil(1, '/healthy', { receiver: other });
  await expect.poll(() => rig.receiver.open()).toBe(SETTINGS.connectionsPerOrigin);
});

it('A claim takes no more of one origin than its room, also of endpoints with nothing known to be due', async () => {
  const { sql } = rig.database.db;
  const ids = [];
  for (const path of ['/a', '/b', '/c'])
    ids.push((await subscribe(rig.receiver, path)).endpoint.id);
  await rig.emit(...walletEvents(8));
  await rig.deliver();
  const emitTo = async (id = '') => {
    await rig.emit(...walletEvents(8));
    await sql`delete from tallyhook.pending_deliveries where endpoint_id <> ${id.slice(3)}`;
  };
  const now = rig.clock.now();
  await emitTo(ids[0]);
  await sql`update tallyhook.pending_deliveries set due_at = ${isoText(now + 500)}`;
  await rig.webhooks.runOnce(now);
  await rig.emit(...walletEvents(8));
  await sql`
    delete from tallyhook.pending_deliveries
    where endpoint_id = ${(ids[0] ?? '').slice(3)} and due_at <= ${isoText(now)}`;
  rig.clock.advance(500);
  rig.receiver.behave({ do: 'hang' });
  const { claimed } = await rig.webhooks.runOnce(rig.clock.now());
  expect(claimed).toBe(SETTINGS.connectionsPerOrigin);
});

it('After a start, endpoints that failed before leave the quick slots to the others', async () => {
  rig.receiver.behave({ do: 'hang' });
  for (let i = 0; i < 20; i++) await subscribe(rig.receiver, `/hangs${i}`);
  await rig.database.db.sql`update tallyhook.endpoint_health set consecutive_failures = 1`;
  await subscribe(rig.receiver, '/healthy');
  rig.receiver.answer(200, {}, '/healthy');
  await rig.emit(walletEvent());
  const started = rig.another({ ...SETTINGS, connectionsPerOrigin: 8 });
  await rig.deliverUntil(1, '/healthy', { webhooks: started });
  await expect.poll(() => rig.receiver.open()).toBe(8);
});
