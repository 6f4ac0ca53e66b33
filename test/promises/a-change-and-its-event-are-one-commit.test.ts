/**
 * Promise 6. Every change has its event, in order per subject, and every event reaches its
 * subscriber. The receiver verifies each webhook with the library `standardwebhooks`.
 */
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { operationIdOf, useRig } from '../harness/rig.ts';

/** A claim of the killed daemon ends with its lease, which follows this deadline. */
const rig = useRig({ webhooks: { attempt_timeout_ms: 1_000 } });

it('Every event reaches the subscriber under its own id, signed, also across a kill', async () => {
  const webhook = new Webhook(await rig.subscribe('/hook'));
  const { ada, ben } = rig.world;
  const first = await rig.app.give(ada, 100);
  await rig.app.transfer(ada, ben, 20);
  await rig.restart();
  const last = await rig.app.mint(ada, 777);
  await rig.eventOf(first, 'operation.settled');
  await rig.eventOf(last, 'operation.settled');
  const events = await rig.app.events();
  expect(events.length).toBeGreaterThan(6);
  const receiver = await rig.receiver();
  const received = async (id: string) => {
    for (let seen = 0; ; seen++) {
      const found = receiver.requests.find((r) => r.headers['webhook-id'] === id);
      if (found) return found;
      await receiver.count(Math.max(receiver.requests.length, seen) + 1, 40_000);
    }
  };
  for (const event of events) {
    const { body, headers } = await received(event.id);
    expect(webhook.verify(body, headers as Record<string, string>)).toEqual(event);
  }
});

it('Every transition of an operation has its event', async () => {
  const answer = await rig.app.give(rig.world.ben, 5);
  await rig.eventOf(answer, 'operation.settled');
  const id = operationIdOf(answer);
  const { json } = await rig.app.call('GET', `/api/operations/${id}`);
  const states = json.transitions.map((t: { to_state: string }) => t.to_state);
  expect(states).toEqual(['sending', 'accepted', 'settled']);
  const events = (await rig.app.events()).filter((e) => e.data.operation_id === id);
  expect(events.map((e) => e.type)).toEqual(['operation.accepted', 'operation.settled']);
});

it('The numbers of the events of a subject have no gap', async () => {
  const bySubject = new Map<string, number[]>();
  for (const { data } of await rig.app.events()) {
    const subject = data.operation_id ?? data.token_id ?? data.addr ?? 'service';
    bySubject.set(subject, [...(bySubject.get(subject) ?? []), data.subject_seq]);
  }
  expect(bySubject.size).toBeGreaterThan(3);
  for (const numbers of bySubject.values()) {
    expect(numbers).toEqual(numbers.map((_, i) => i + 1));
  }
});
