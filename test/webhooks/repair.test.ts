/**
 * Repair: what a person asks for goes at once, and what waits is sent when an endpoint recovers.
 */
import { describe, expect, it } from 'vitest';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { untilLockWaits } from '../harness/lock-waits.ts';
import { useRig, walletEvent, walletEvents } from './rig.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const rig = useRig({
  // Attempts run one after the other, so that the count of failures is exact.
  inFlightPerEndpoint: 1,
  health: { ...webhookDefaults.health, openAfter: 3, pauseBaseMs: HOUR },
});

/** An endpoint whose circuit is open, with `waiting` deliveries that wait. */
async function failing(waiting: number, input: Parameters<typeof rig.subscribe>[1] = {}) {
  const { endpoint } = await rig.subscribe('/hook', input);
  rig.receiver.answer(500);
  // Of different subjects, and one a second.
  for (const digit of '123') {
    await rig.emit(walletEvent(`0x${digit.repeat(40)}`));
    await rig.deliver();
    rig.clock.advance(SECOND);
  }
  expect((await healthOf(endpoint.id)).pausedUntil).toBeGreaterThan(rig.clock.now());
  if (waiting > 0) await rig.emit(...walletEvents(waiting));
  rig.receiver.requests.length = 0;
  return endpoint.id;
}

async function healthOf(id: string) {
  return (await rig.webhooks.getEndpoint(id)).health;
}

const ids = () => rig.receiver.requests.map(({ headers }) => headers['webhook-id']);

describe('While the circuit of an endpoint is open', () => {
  it.each(['none', 'subject'] as const)(
    'a retry by hand goes at once and alone, and its success lets all others follow (ordering: %s)',
    async (ordering) => {
      const id = await failing(20, { ordering });
      const [last] = await rig.emit(walletEvent(`0x${'b'.repeat(40)}`));
      await rig.deliver();
      expect(ids()).toEqual([]);
      const chosen = (await rig.deliveriesOf(id)).find(({ eventId }) => eventId === last);
      rig.receiver.answer(200);
      await rig.webhooks.retryDelivery(chosen?.id ?? '');
      await rig.deliver();
      expect(ids()[0]).toBe(last);
      expect(ids()).toHaveLength(24);
      expect(await healthOf(id)).toMatchObject({ consecutiveFailures: 0, pausedUntil: null });
    },
  );

  it('While the circuit is open a test event goes at once, and its success lets all others follow', async () => {
    const id = await failing(5);
    rig.receiver.answer(200);
    const { eventId } = await rig.webhooks.sendTest(id);
    await rig.deliver();
    expect(ids()[0]).toBe(eventId);
    expect(ids()).toHaveLength(1 + 3 + 5);
    expect(await rig.events('endpoint.recovered')).toContainEqual(
      expect.objectContaining({ endpoint_id: id }),
    );
  });

  it('a test event that fails is one request, and changes neither pause nor the schedule of others', async () => {
    const id = await failing(5);
    const before = await healthOf(id);
    await rig.webhooks.sendTest(id);
    await rig.deliver();
    expect(ids()).toHaveLength(1);
    expect(await healthOf(id)).toEqual(before);
    await rig.deliver();
    expect(ids()).toHaveLength(1);
  });

  it('many retries by hand at once are one probe, by whichever daemon', async () => {
    const id = await failing(5);
    const other = rig.another();
    for (const delivery of await rig.deliveriesOf(id))
      await rig.webhooks.retryDelivery(delivery.id);
    rig.receiver.behave({ do: 'delay', ms: 50, status: 500 });
    await Promise.all([rig.deliver(), rig.deliver(other)]);
    expect(ids()).toHaveLength(1);
  });

  it('a retry by hand waits for the rate of its endpoint only', async () => {
    const id = await failing(2, { ratePerS: 1 });
    rig.clock.advance(2 * SECOND);
    rig.receiver.answer(200);
    const { eventId } = await rig.webhooks.sendTest(id);
    await rig.deliver();
    expect(ids()).toEqual([eventId]);
    rig.clock.advance(SECOND);
    await rig.deliver();
    expect(ids()).toHaveLength(2);
  });
});

describe('What a person asks for locks the health of an endpoint before all else, as results do', () => {
  it.each([
    ['A retry', 'retry'],
    ['A test event', 'test'],
    ['An enabling', 'enable'],
  ] as const)(
    '%s by hand waits for the lock of the endpoint health and holds no other lock',
    async (_, act) => {
      const id = await failing(0);
      const [delivery] = await rig.deliveriesOf(id);
      await rig.webhooks.sendTest(id);
      if (act === 'enable') await rig.webhooks.disable(id);
      const acts = {
        retry: () => rig.webhooks.retryDelivery(delivery?.id ?? ''),
        test: () => rig.webhooks.sendTest(id),
        enable: () => rig.webhooks.enable(id),
      };
      const { sql } = rig.database.owner;
      let acting: Promise<unknown> = Promise.resolve();
      const free = await rig.database.db.begin(async (tx) => {
        await tx.sql`
          select from tallyhook.endpoint_health where endpoint_id = ${id} for no key update`;
        acting = acts[act]();
        await untilLockWaits(rig.database.owner);
        const [row = ''] = [delivery?.id.slice(4)];
        const locked = await Promise.all([
          sql`select from tallyhook.endpoints where id = ${id} for update skip locked`,
          sql`select from tallyhook.pending_deliveries where id = ${row} for update skip locked`,
          sql`select from tallyhook.subjects where subject = ${`endpoint:${id}`}
            for update skip locked`,
        ]);
        return locked.map(({ length }) => length);
      });
      await acting;
      expect(free).toEqual([1, 1, 1]);
    },
  );
});

it('A retry by hand goes before the backlog of a healthy endpoint', async () => {
  const { endpoint } = await rig.subscribe();
  await rig.emit(...walletEvents(30));
  const [last] = await rig.emit(walletEvent());
  const chosen = (await rig.deliveriesOf(endpoint.id)).find(({ eventId }) => eventId === last);
  await rig.webhooks.retryDelivery(chosen?.id ?? '');
  await rig.deliver();
  expect(ids()[0]).toBe(last);
  expect(ids()).toHaveLength(31);
});

describe('When an endpoint recovers', () => {
  it('When an endpoint recovers, what waits for its retry is sent now, in portions, and not after hours', async () => {
    const id = await failing(0, { retrySchedule: [36_000], maxInFlight: 1 });
    rig.clock.advance(2 * HOUR);
    // More than one portion, all of which wait for eight hours more.
    const { sql } = rig.database.db;
    await rig.emit(...walletEvents(250));
    await sql`update tallyhook.pending_deliveries set attempts = 1, schedule_step = 1,
      due_at = due_at + interval '8 hours'`;
    rig.receiver.answer(200);
    await rig.webhooks.sendTest(id);
    await rig.deliver();
    expect(ids()).toHaveLength(1 + 3 + 250);
    expect((await rig.deliveriesOf(id)).every(({ state }) => state === 'delivered')).toBe(true);
    const [health] = await sql`select recovered_at from tallyhook.endpoint_health
      where endpoint_id = ${id}`;
    expect(health?.recoveredAt).toBeNull();
  });

  it('what fails again after that keeps its schedule', async () => {
    const id = await failing(0, { retrySchedule: [36_000, 36_000] });
    rig.clock.advance(2 * HOUR);
    // The three that failed fail again, after the probe.
    rig.receiver.behave({ do: 'in_turn', statuses: [200, 500, 500, 200] });
    await rig.webhooks.sendTest(id);
    await rig.deliver();
    expect(ids()).toHaveLength(4);
    const waiting = (await rig.deliveriesOf(id)).filter(({ state }) => state === 'pending');
    expect(waiting).toHaveLength(2);
    for (const { dueAt } of waiting) expect(dueAt).toBeGreaterThan(rig.clock.now() + 9 * HOUR);
  });

  it('what waits for another one of its subject waits on, and no pass searches for more', async () => {
    const id = await failing(0, { ordering: 'subject', retrySchedule: [300, 300, 300] });
    for (const digit of '123') await rig.emit(...walletEvents(3, `0x${digit.repeat(40)}`));
    // Of one subject the first fails again, and the others come after it.
    rig.receiver.behave({ do: 'in_turn', statuses: [200, 500, 200] });
    await rig.webhooks.sendTest(id);
    let more = true;
    for (let passes = 0; passes < 40; passes++) {
      ({ more } = await rig.webhooks.runOnce(rig.clock.now()));
      await rig.webhooks.drain(20_000);
    }
    expect(more).toBe(false);
    expect(ids()).toHaveLength(1 + 3 + 2 * 3);
    const [health] = await rig.database.db.sql`select recovered_at from tallyhook.endpoint_health
      where endpoint_id = ${id}`;
    expect(health?.recoveredAt).toBeNull();
    rig.clock.advance(400 * SECOND);
    await rig.deliver();
    expect(ids()).toHaveLength(1 + 4 + 3 * 3);
  });

  it('what failed is sent before others that wait for it, however many of them are due earlier', async () => {
    const { endpoint } = await rig.subscribe('/hook', { ordering: 'subject' });
    const [first, second] = ['1', '2'].map((digit) => `0x${digit.repeat(40)}`);
    rig.receiver.answer(500);
    await rig.emit(walletEvent(first));
    await rig.deliver();
    await rig.emit(...walletEvents(150, first));
    await rig.deliver();
    rig.clock.advance(6 * SECOND);
    const [chosen] = await rig.emit(walletEvent(second));
    await rig.deliver();
    // That opens the circuit. What failed before waits for five minutes, the others for one.
    expect((await healthOf(endpoint.id)).pausedUntil).toBeGreaterThan(rig.clock.now());
    rig.clock.advance(SECOND);
    rig.receiver.requests.length = 0;
    rig.receiver.answer(200);
    const all = await rig.deliveriesOf(endpoint.id);
    await rig.webhooks.retryDelivery(all.find(({ eventId }) => eventId === chosen)?.id ?? '');
    await rig.deliver();
    expect(ids()[0]).toBe(chosen);
    expect(ids()).toHaveLength(1 + 151);
  });

  it('one subject that fails again, with many that wait for it, does not end the recovery', async () => {
    const id = await failing(0, { ordering: 'subject', retrySchedule: [300, 300, 300] });
    const { sql } = rig.database.db;
    // The first of them fails again: more than are examined at once wait for it, due earlier than
    // what failed of the other subjects.
    await rig.emit(...walletEvents(1_100, `0x${'1'.repeat(40)}`));
    await sql`update tallyhook.pending_deliveries set due_at = due_at + interval '100 seconds'
      where attempts = 0`;
    await sql`update tallyhook.pending_deliveries set due_at = due_at + interval '8 hours'
      where subject <> ${`wallet:0x${'1'.repeat(40)}`}`;
    rig.receiver.behave({ do: 'in_turn', statuses: [200, 500, 200] });
    await rig.webhooks.sendTest(id);
    await rig.deliver();
    expect(ids()).toHaveLength(1 + 3);
    const [health] = await sql`select recovered_at from tallyhook.endpoint_health
      where endpoint_id = ${id}`;
    expect(health?.recoveredAt).toBeNull();
  });

  it('an endpoint that fails once more gets no more of what waits', async () => {
    const id = await failing(0, { retrySchedule: [36_000, 36_000] });
    rig.clock.advance(2 * HOUR);
    await rig.emit(...walletEvents(150));
    await rig.database.db.sql`update tallyhook.pending_deliveries set attempts = 1,
      schedule_step = 1, due_at = due_at + interval '8 hours'`;
    rig.receiver.behave({ do: 'in_turn', statuses: [200, 500] });
    await rig.webhooks.sendTest(id);
    await rig.deliver();
    // The probe, and the three that open the circuit again.
    expect(ids()).toHaveLength(4);
    expect((await healthOf(id)).pausedUntil).toBeGreaterThan(rig.clock.now());
  });

  it('what was held while it was disabled does not wait for its retry either', async () => {
    const id = await failing(0, { retrySchedule: [36_000] });
    await rig.webhooks.disable(id);
    rig.receiver.answer(200);
    await rig.webhooks.enable(id);
    await rig.deliver();
    expect(ids()).toHaveLength(3);
  });
});
