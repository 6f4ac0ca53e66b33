/** What an endpoint sets for itself: its retry schedule, its timeout and its attempts in flight. */
import { describe, expect, it } from 'vitest';
import { type EndpointInput, webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { useRig, walletEvent, walletEvents } from './rig.ts';

const rig = useRig({
  send: { ...webhookDefaults.send, deadlineMs: 20_000 },
  inFlightPerEndpoint: 4,
});
const SECOND = 1_000;
const DAY_S = 86_400;

describe('An endpoint with a retry schedule of its own', () => {
  it('An endpoint with a retry schedule of its own is tried again at its steps and no more, each with jitter of a tenth at most', async () => {
    const steps = [2, 60, 600];
    const { endpoint } = await rig.subscribe('/hook', { retrySchedule: steps });
    rig.receiver.answer(500);
    await rig.emit(walletEvent());
    await rig.deliver();
    for (const [n, step] of steps.entries()) {
      rig.clock.advance(step * SECOND - 1);
      await rig.deliver();
      expect(rig.receiver.requests.length).toBe(n + 1);
      rig.clock.advance(step * 100 + 2);
      await rig.deliver();
      expect(rig.receiver.requests.length).toBe(n + 2);
    }
    expect(await rig.deliveriesOf(endpoint.id)).toMatchObject([
      { state: 'exhausted', attempts: 4 },
    ]);
  });

  it('has all its attempts though the last is later than the common limit of seven days', async () => {
    const { endpoint } = await rig.subscribe('/hook', { retrySchedule: Array(7).fill(DAY_S) });
    rig.receiver.answer(500);
    await rig.emit(walletEvent());
    await rig.deliver();
    for (let days = 0; days < 7; days++) {
      rig.clock.advance(DAY_S * 1_100);
      // The endpoint fails for so long that it is disabled in between.
      await rig.webhooks.enable(endpoint.id);
      await rig.deliver();
    }
    expect(rig.receiver.requests.length).toBe(8);
  });

  it('follows the common schedule again once its own is taken away', async () => {
    const { endpoint } = await rig.subscribe('/hook', { retrySchedule: [600] });
    await rig.webhooks.updateEndpoint(endpoint.id, { retrySchedule: null });
    rig.receiver.answer(500);
    await rig.emit(walletEvent());
    await rig.deliver();
    rig.clock.advance(6 * SECOND);
    await rig.deliver();
    expect(rig.receiver.requests.length).toBe(2);
  });
});

it('An attempt ends at the timeout of its endpoint, before the setting', async () => {
  const { endpoint } = await rig.subscribe('/hook', { timeoutMs: 1_000 });
  rig.receiver.behave({ do: 'hang' });
  await rig.emit(walletEvent());
  await rig.deliver();
  const [delivery] = await rig.deliveriesOf(endpoint.id);
  const [attempt] = await rig.webhooks.listAttempts(delivery?.id ?? '');
  expect(attempt).toMatchObject({ result: 'retry', error: 'timeout' });
  // A timer may end within the millisecond before its time.
  expect(attempt?.durationMs).toBeGreaterThanOrEqual(999);
  expect(attempt?.durationMs).toBeLessThan(10_000);
});

it('An endpoint never has more attempts in flight than it allows, and another has its own bound', async () => {
  rig.receiver.behave({ do: 'delay', ms: 20, status: 200 });
  const { endpoint } = await rig.subscribe('/two', { maxInFlight: 2 });
  await rig.subscribe('/four');
  await rig.emit(...walletEvents(60));
  await rig.deliver();
  expect([rig.receiver.openMax('/two'), rig.receiver.openMax('/four')]).toEqual([2, 4]);
  await rig.webhooks.updateEndpoint(endpoint.id, { maxInFlight: 1 });
  await rig.subscribe('/one', { maxInFlight: 1 });
  await rig.emit(...walletEvents(20));
  await rig.deliver();
  expect([rig.receiver.openMax('/one'), rig.receiver.openMax('/two')]).toEqual([1, 2]);
});

it.each<[string, Partial<EndpointInput>, RegExp]>([
  ['no step', { retrySchedule: [] }, /retry_schedule must have 1 to 20 steps/],
  ['21 steps', { retrySchedule: Array(21).fill(1) }, /retry_schedule must have 1 to 20 steps/],
  ['a step of zero', { retrySchedule: [5, 0] }, /retry_schedule\[1\] must be a whole number/],
  ['half a second', { retrySchedule: [0.5] }, /retry_schedule\[0\] must be a whole number/],
  ['a step above a day', { retrySchedule: [DAY_S + 1] }, /retry_schedule\[0\] .*86400/],
  ['eight days', { retrySchedule: Array(8).fill(DAY_S) }, /at most 604800 seconds in all/],
  ['a timeout below a second', { timeoutMs: 999 }, /timeout_ms must be .* 1000 to 20000/],
  ['a timeout above the setting', { timeoutMs: 20_001 }, /webhooks\.attempt_timeout_ms/],
  ['none in flight', { maxInFlight: 0 }, /max_in_flight must be a whole number from 1 to 4/],
  ['more in flight than the setting', { maxInFlight: 5 }, /in_flight_per_endpoint_max/],
])('An endpoint with %s is refused, and the refusal names the bound', async (_, input, text) => {
  const refusal = { code: 'invalid_request', detail: expect.stringMatching(text) };
  await expect(rig.subscribe('/hook', input)).rejects.toMatchObject(refusal);
});
