/**
 * Promise 8. Polls stay within the budget, and `Retry-After` is obeyed in full, across restarts.
 */
import { beforeAll, expect, it } from 'vitest';
import { makeApp } from '../harness/app.ts';
import { type DaemonProcess, QUICK } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

const PER_S = 10;
const RETRY_AFTER_S = 6;
/** Polls that daemons have sent and the service has not received yet. */
const ON_THEIR_WAY = 2;
/** More wallets are due at any time than the budget allows. */
const SETTINGS = {
  upstream: { ...QUICK.upstream, budget_per_s: PER_S, initial_rate_per_s: PER_S },
  observer: { ...QUICK.observer, steady_interval_ms: 50, min_gap_ms: 50 },
};
const rig = useRig(SETTINGS);
let other: DaemonProcess;
beforeAll(async () => {
  other = await rig.another();
});

const polls = () =>
  rig.world.sandbox.control
    .requests(0, 10_000)
    .filter(({ endpoint, path }) => !path.startsWith('/v1/oauth') && endpoint !== 'status');

it('Two daemons together poll no faster than the budget', async () => {
  const members = rig.world.sandbox.control.state().members.map(({ addr }) => addr ?? '');
  await rig.watch(...members.filter(Boolean));
  const from = polls().length;
  const enough = await until(async () => polls().length > from + 5 * PER_S || undefined, {
    deadlineMs: 25_000,
  });
  expect(enough).toBe(true);
  const times = polls()
    .slice(from)
    .map(({ at }) => at);
  const seconds = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1_000;
  // A token bucket lets two pass at once, for each daemon.
  expect(times.length - 4).toBeLessThan(PER_S * seconds * 1.1);
});

it('After a 429 no poll is sent until its Retry-After has passed, also after a restart', async () => {
  const { control } = rig.world.sandbox;
  control.addFault({ kind: 'throttle', method: 'GET', retry_after_s: RETRY_AFTER_S });
  const throttled = await until(async () => polls().find(({ status }) => status === 429));
  const at = throttled?.at ?? 0;
  expect(at).toBeGreaterThan(0);
  // The other daemons know of it by their next heartbeat.
  for (const { url } of [rig.daemon, other]) {
    const { call } = makeApp(() => url);
    const blocked = async () => (await call('GET', '/api/status')).json.budget.blocked_until.polls;
    expect(await until(async () => (await blocked()) ?? undefined)).toBeDefined();
  }
  const known = polls().length;
  await rig.restart();
  const next = await until(async () => polls()[known + ON_THEIR_WAY], { deadlineMs: 25_000 });
  expect((next?.at ?? 0) - at).toBeGreaterThan(RETRY_AFTER_S * 1_000 - 100);
  // The app's own traffic is not delayed by the silence of polls.
  const own = await rig.app.give(rig.world.ada, 5);
  expect(own.status, own.text).toBe(200);
});
