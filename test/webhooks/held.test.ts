/** No event is lost to an endpoint: while it is disabled, and while it is created or changed. */
import { expect, it } from 'vitest';
import { sequence } from '../../src/outbox/outbox.ts';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { useRig, walletEvent, walletEvents } from './rig.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const rig = useRig();

const received = () => rig.receiver.requests.map((r) => r.headers['webhook-id']);
const statesOf = async (endpointId: string) =>
  (await rig.deliveriesOf(endpointId)).map(({ state }) => state);
const number = () => sequence(rig.database.db);
/** Emits an event, and commits it only after `work`. */
const emitDuring = (work: () => Promise<unknown>) =>
  rig.database.db.begin(async (tx) => {
    const ids = await rig.emitIn(tx, walletEvent());
    await work();
    return ids;
  });

it('Deliveries of a disabled endpoint are held, and sent in order once it is enabled', async () => {
  const { endpoint } = await rig.subscribe('/hook', {
    ordering: 'subject',
    eventTypes: ['wallet.*'],
  });
  const operational = await rig.subscribe('/operational', { eventTypes: ['endpoint.*'] });
  const before = await rig.emit(walletEvent());
  await rig.webhooks.disable(endpoint.id);
  await rig.webhooks.disable(endpoint.id);
  const meanwhile = await rig.emit(walletEvent(), walletEvent());
  await rig.deliver();
  expect(rig.receiver.requests.map((r) => [r.path, JSON.parse(r.body).data.reason])).toEqual([
    ['/operational', 'requested'],
  ]);
  await rig.webhooks.disable(operational.endpoint.id);
  expect(await statesOf(endpoint.id)).toEqual(['held', 'held', 'held']);
  const page = { before: '', limit: 10 };
  const held = { endpointId: endpoint.id, state: 'held' as const };
  expect(await rig.webhooks.listDeliveries(held, page)).toHaveLength(3);
  expect(await rig.webhooks.listDeliveries({ ...held, state: 'pending' }, page)).toEqual([]);
  await rig.webhooks.enable(endpoint.id);
  const later = await rig.emit(walletEvent());
  await rig.deliver();
  expect(received().slice(1)).toEqual([...before, ...meanwhile, ...later]);
});

it('Enabling an endpoint with skip cancels what was held and sends what comes later', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.webhooks.disable(endpoint.id);
  await rig.emit(...walletEvents(1_100));
  await rig.webhooks.enable(endpoint.id, 'skip');
  rig.clock.advance(1);
  const later = await rig.emit(walletEvent());
  await rig.deliver();
  expect(received()).toEqual(later);
  const states = await statesOf(endpoint.id);
  expect([states.shift(), new Set(states)]).toEqual(['delivered', new Set(['cancelled'])]);
});

it('A 410 disables the endpoint, and its deliveries are held until it is enabled', async () => {
  const { endpoint } = await rig.subscribe();
  rig.receiver.answer(410);
  await rig.emit(walletEvent());
  await rig.deliver();
  expect(await rig.webhooks.getEndpoint(endpoint.id)).toMatchObject({
    state: 'disabled',
    stateReason: 'gone',
  });
  expect((await rig.events('endpoint.disabled')).at(-1)).toMatchObject({
    endpoint_id: endpoint.id,
    reason: 'gone',
  });
  await rig.emit(walletEvent());
  rig.clock.advance(2 * DAY);
  await rig.deliver();
  expect(rig.receiver.requests.length).toBe(1);
  expect(await statesOf(endpoint.id)).toEqual(['held', 'held']);
  rig.receiver.answer(200);
  await rig.webhooks.enable(endpoint.id);
  await rig.deliver();
  expect(await statesOf(endpoint.id)).toEqual(['delivered', 'delivered']);
});

it('An endpoint that is enabled begins anew: its failures and its pause are forgotten', async () => {
  const { endpoint } = await rig.subscribe();
  rig.receiver.answer(500);
  const { openAfter, disableAfterMs } = webhookDefaults.health;
  const requestsAfter = async (emitted: number) => {
    await rig.emit(...walletEvents(emitted));
    await rig.deliver();
    return rig.receiver.requests.length;
  };
  const anew = async (ms: number) => {
    await rig.webhooks.disable(endpoint.id);
    rig.clock.advance(ms);
    await rig.webhooks.enable(endpoint.id);
  };
  expect(await requestsAfter(openAfter)).toBe(openAfter);
  expect(await requestsAfter(1)).toBe(openAfter);
  await anew(0);
  // The second of two is only sent if the first did not open the circuit breaker again.
  expect(await requestsAfter(0)).toBe(openAfter + 1);
  expect(await requestsAfter(1)).toBe(openAfter + 2);
  await anew(disableAfterMs);
  await rig.deliver();
  expect(rig.receiver.requests.length).toBeGreaterThan(openAfter + 2);
  expect((await rig.webhooks.getEndpoint(endpoint.id))?.state).toBe('enabled');
});

it('A delivery that was held for a month is retried after it failed', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.webhooks.disable(endpoint.id);
  await rig.emit(walletEvent());
  rig.clock.advance(30 * DAY);
  await rig.webhooks.enable(endpoint.id);
  rig.receiver.answer(500);
  await rig.deliver();
  expect(await statesOf(endpoint.id)).toEqual(['pending']);
});

it('Held deliveries that retention will remove are exhausted, and announced', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.subscribe('/operational', { eventTypes: ['delivery.*'] });
  await rig.webhooks.disable(endpoint.id);
  const [expired] = await rig.emit(walletEvent());
  rig.clock.advance(90 * DAY);
  await rig.emit(walletEvent());
  const { signal } = new AbortController();
  expect(await rig.webhooks.endExpired(rig.clock.now(), signal)).toBe(true);
  expect(await statesOf(endpoint.id)).toEqual(['held', 'exhausted']);
  await rig.deliver();
  const bodies = rig.receiver.requests.map((r) => JSON.parse(r.body));
  expect(bodies.map(({ type, data }) => [type, data.event_id, data.reason])).toEqual([
    ['delivery.exhausted', expired, 'retention'],
  ]);
});

it('An event that commits after an endpoint was created reaches it once', async () => {
  const earlier = await rig.emit(walletEvent());
  const late = await emitDuring(() => rig.subscribe());
  const seen = await rig.emit(walletEvent());
  while ((await number()) > 0);
  await rig.deliver();
  expect(received().sort()).toEqual([...late, ...seen].sort());
  expect(received()).not.toContain(earlier[0]);
});

it('A delivery that ends while missing ones are looked for is not made again', async () => {
  const { endpoint } = await rig.subscribe();
  const ids = await rig.emit(...walletEvents(20));
  // The endpoint is younger than a minute, so that it may have missed them.
  const [numbered] = await Promise.all([number(), rig.deliver()]);
  expect(numbered).toBe(20);
  await rig.deliver();
  expect(received().sort()).toEqual(ids.sort());
  expect(new Set(await statesOf(endpoint.id))).toEqual(new Set(['delivered']));
});

it('An event that commits after the types of an endpoint were changed reaches it', async () => {
  const { endpoint } = await rig.subscribe('/hook', { eventTypes: ['token.*'] });
  await rig.emit(walletEvent());
  const changed = { eventTypes: ['wallet.*'] };
  const late = await emitDuring(() => rig.webhooks.updateEndpoint(endpoint.id, changed));
  await number();
  await rig.deliver();
  expect(received()).toEqual(late);
});

it('An event that commits after an endpoint was enabled reaches it', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.webhooks.disable(endpoint.id);
  const late = await emitDuring(() => rig.webhooks.enable(endpoint.id));
  await rig.deliver();
  expect(received()).toEqual(late);
});
