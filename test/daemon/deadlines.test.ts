/** A `Retry-After` that one daemon received stops the others from the commit that stores it on. */
import { beforeAll, expect, it } from 'vitest';
import { type App, makeApp } from '../harness/app.ts';
import { QUICK } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

/** No heartbeat, probe or poll of a steady target within the test. */
const rig = useRig({
  daemon: { ...QUICK.daemon, heartbeat_timeout_ms: 600_000 },
  observer: {
    ...QUICK.observer,
    steady_interval_ms: 600_000,
    min_gap_ms: 600_000,
    probe_interval_ms: 600_000,
  },
});
let other: App;
beforeAll(async () => {
  const { url } = await rig.another();
  other = makeApp(() => url);
  // Both have a client token.
  for (const app of [rig.app, other]) expect((await app.give(rig.world.ada, 1)).status).toBe(200);
});

const wallets = Array.from({ length: 40 }, (_, n) => `0x9${String(n).padStart(39, '0')}`);
function newWallet(): string {
  const addr = wallets.pop() ?? '';
  rig.world.sandbox.control.setWallet(addr, { amt_token: 0n });
  return addr;
}

/**
 * What the service received about these wallets, which the tests use after a deadline was stored: a
 * poll of another may have been on its way.
 */
function receivedAbout(addrs: readonly string[]): string[] {
  const all = rig.world.sandbox.control.requests(0, 10_000);
  expect(all.some(({ status }) => status === 429)).toBe(true);
  return all.flatMap(({ endpoint, query, body }) =>
    addrs.some((addr) => `${query} ${body}`.includes(addr)) ? [endpoint ?? ''] : [],
  );
}

/** Nothing is due: no poll is on its way. */
const settled = () =>
  until(async () => {
    const rows = await rig.world.database.owner.sql`
      select from tallyhook.operations where settled_at is null limit 1`;
    return rows.length === 0 || undefined;
  });

it('A deadline of polls that one daemon received stops first polls of another, and no write', async () => {
  await settled();
  rig.world.sandbox.control.addFault({ kind: 'throttle', endpoint: 'account', retry_after_s: 60 });
  expect((await rig.app.give(newWallet(), 2)).status).toBe(200);
  const after = Array.from({ length: 5 }, newWallet);
  for (const addr of after) expect((await other.give(addr, 3)).status).toBe(200);
  expect(receivedAbout(after)).toEqual(after.map(() => 'give'));
  const cleared = await rig.app.call('POST', '/api/deadlines/clear', { reason: 'the next test' });
  expect(cleared.status).toBe(200);
});

it('A deadline of writes that one daemon received stops writes of another, and its polls', async () => {
  await settled();
  rig.world.sandbox.control.addFault({ kind: 'throttle', endpoint: 'give', retry_after_s: 60 });
  expect((await rig.app.give(rig.world.ada, 4)).status).toBe(429);
  const after = Array.from({ length: 7 }, newWallet);
  for (const addr of after.slice(0, 5)) {
    const refused = await other.give(addr, 5);
    expect(refused).toMatchObject({ status: 429, json: { code: 'upstream_throttled' } });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(30);
  }
  const queued = await other.give(after[5] ?? '', 6, { prefer: 'respond-async' });
  expect(queued.status, queued.text).toBe(202);
  const key = { 'idempotency-key': 'again' };
  expect((await other.give(after[6] ?? '', 7, key)).status).toBe(429);
  expect(receivedAbout(after)).toEqual([]);
  expect(rig.effects(5)).toEqual([]);
});
