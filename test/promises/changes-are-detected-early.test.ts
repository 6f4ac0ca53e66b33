/**
 * Promise 9. With the default settings, a change made behind Tallyhook's back is a webhook soon:
 * the change itself after the next poll, the drift after a second poll that agrees.
 */
import { expect, it } from 'vitest';
import { printLine } from '../../src/kernel/telemetry/log.ts';
import type { FeedEvent } from '../harness/app.ts';
import { useRig } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

const CHANGES = 12;

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

const rig = useRig({ daemon: {}, upstream: {}, observer: {}, reconciler: {} });

/** When the sandbox got a read of a wallet, in its order. */
const readsOf = (addr: string) =>
  rig.world.sandbox.control
    .requests(0, 100_000)
    .filter(({ path, query }) => path === '/v1/app/token/account' && query.includes(addr))
    .map(({ at }) => at);

it('A change made elsewhere is a webhook after the first poll that shows it, and a drift after the second', async () => {
  const { ada, sandbox } = rig.world;
  const types = ['wallet.observed', 'wallet.balance_changed', 'wallet.drift_opened'];
  await rig.subscribe('/hook', types);
  const receiver = await rig.receiver();
  await rig.watch(ada);
  await receiver.next();
  const delays = new Map<string, number[]>(types.map((type) => [type, []]));
  for (let n = 0; n < CHANGES; n++) {
    const changedAt = Date.now();
    sandbox.control.setWallet(ada, { delta: BigInt(n + 1) });
    for (const polls of [1, 2]) {
      const { type, timestamp } = JSON.parse((await receiver.next()).body) as FeedEvent;
      const seenAt = Date.parse(timestamp);
      delays.get(type)?.push(Date.now() - changedAt);
      const between = readsOf(ada).filter((at) => at > changedAt && at < seenAt).length;
      // One more when a read was under way at the change.
      expect([type, Math.max(polls, between)]).toEqual([
        types[polls],
        expect.toBeOneOf([polls, polls + 1]),
      ]);
    }
  }
  for (const type of types.slice(1)) {
    const sorted = (delays.get(type) ?? []).sort((a, b) => a - b);
    const [p50, p95] = [0.5, 0.95].map((part) => sorted[Math.ceil(CHANGES * part) - 1]);
    printLine(`${type}: p50 ${p50} ms, p95 ${p95} ms after the change`);
  }
});

it('Three watched wallets share the polls, and while the service is slow a poll does not wait for the one before', async () => {
  const { ada, ben, sandbox } = rig.world;
  const { members } = sandbox.control.state();
  const third = members.find(({ addr }) => addr && addr !== ada && addr !== ben)?.addr ?? '';
  await rig.watch(ben, third);
  // Polls overlap when the service is slow.
  sandbox.control.addFault({ kind: 'delay', method: 'GET', delay_ms: 400, count: 1_000 });
  const times = () => [ada, ben, third].flatMap(readsOf).sort((a, b) => a - b);
  // Urgent polls of the test above count for a minute.
  const polling = async () => (await rig.app.call('GET', '/api/status')).json.polling;
  const waiting = { timeout: 90_000, interval: 500 };
  await expect.poll(async () => (await polling()).interval_ms, waiting).toBeLessThan(800);
  const from = times().length;
  const polls = await until(async () => {
    const since = times().slice(from);
    return since.length >= 50 ? since : undefined;
  });
  const gaps = (polls ?? []).slice(1).map((at, n) => at - (polls?.[n] ?? 0));
  printLine(`three wallets: ${(1_000 / mean(gaps)).toFixed(2)} polls per second`);
  // Each answer takes 400 ms: a poll that starts earlier did not wait for the one before.
  expect(gaps.filter((gapMs) => gapMs < 400).length).toBeGreaterThan(gaps.length / 5);
  const { json } = await rig.app.call('GET', '/api/status');
  expect(json.observation_age_max_ms).toBe(60_000);
  expect(json.polling.interval_ms).toBeGreaterThan(500);
  const counts = [ada, ben, third].map(
    (addr) => readsOf(addr).filter((at) => at >= (polls?.[0] ?? 0)).length,
  );
  expect(Math.min(...counts)).toBeGreaterThan(50 / 6);
});
