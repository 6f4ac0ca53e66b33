/**
 * An endpoint with a filter gets the events that it asks for, and no other: what the filter refuses
 * makes no delivery, so nothing of it is stored, sent or retried.
 */
import { expect, it } from 'vitest';
import { operationIdOf, useRig } from '../harness/rig.ts';

const rig = useRig();

/** More than a double holds exactly. */
const LIMIT = 9_007_199_254_740_993n;

it('Only the writes above an amount reach the endpoint that asks for them; the rest has no delivery', async () => {
  const { url } = await rig.receiver();
  const filter = {
    'data.amount': { $gt: LIMIT.toString() },
    'data.to_addr': { $in: [rig.world.ada.toUpperCase().replace('0X', '0x')] },
  };
  const body = { url: `${url}/large`, event_types: ['operation.accepted'], filter };
  const large = await rig.app.call('POST', '/api/endpoints', body);
  expect(large.status, large.text).toBe(201);
  await rig.subscribe('/all', ['operation.accepted']);
  const answers = [];
  for (const amount of [1n, LIMIT, LIMIT + 1n])
    answers.push(await rig.app.give(rig.world.ada, amount));
  const other = await rig.app.give(rig.world.ben, LIMIT + 1n);
  const accepted = [];
  for (const answer of [...answers, other])
    accepted.push((await rig.eventOf(answer, 'operation.accepted')).id);
  const receiver = await rig.receiver();
  await receiver.count(accepted.length + 1, 40_000);
  const gotBy = (path: string) =>
    receiver.requests.filter((r) => r.path === path).map(({ headers }) => headers['webhook-id']);
  expect(new Set(gotBy('/all'))).toEqual(new Set(accepted));
  expect(gotBy('/large')).toEqual([accepted[2]]);
  const made = await rig.app.call('GET', `/api/deliveries?endpoint_id=${large.json.id}`);
  expect(made.json.data.map((d: { event_id: string }) => d.event_id)).toEqual([accepted[2]]);
  const tested = await rig.app.call('POST', `/api/endpoints/${large.json.id}/filter/test`, {
    event_id: accepted[1],
  });
  expect(tested.json).toMatchObject({
    matches: false,
    body: { data: { operation_id: operationIdOf(answers[1] as never), amount: LIMIT.toString() } },
  });
});
