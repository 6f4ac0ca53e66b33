/** A service of which one path fails alone: what the answers to real requests say decides. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { availableSince, makeQuotaStore, type Observer } from '../../src/observer/observer.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { type ManualClock, manualClock } from '../harness/manual-clock.ts';
import { ADDR, closeAll, ok, upstreamTo, wallet } from '../upstream/rig.ts';
import {
  type Reply,
  type ScriptedService,
  startScripted,
  TOKEN_PATH,
} from '../upstream/service.ts';
import { observerOf, processAll } from './rig.ts';

const MAINTENANCE = '/v1/system/maintenance';
const ACCOUNT = '/v1/app/token/account';
const DOWN: Reply = [503, { status: 503, message: 'under maintenance' }];
const PROXY: Reply = [502, '<html>bad gateway</html>'];
const state = (status: string): Reply => ok({ status, start: null, end: null, message: null });
const issued: Reply = [200, { access_token: 'token', token_type: 'bearer', expires_in: 86_400 }];

let database: TestDatabase;
let clock: ManualClock;
let service: ScriptedService;
let observer: Observer;
/** How the service answers these paths now. */
let replies: Record<string, Reply>;
beforeEach(async () => {
  database = await createDatabase();
  clock = manualClock();
  replies = { [ACCOUNT]: ok(wallet), [MAINTENANCE]: state('ACTIVE'), [TOKEN_PATH]: issued };
  const script = ({ url }: { url: string }) => replies[url.split('?')[0] ?? ''] ?? PROXY;
  service = await startScripted(script, script);
  const quota = makeQuotaStore(database.db);
  const { upstream } = await upstreamTo(service.origin, clock, { quota });
  observer = observerOf(database.db, clock, upstream);
  await observer.add(database.db, [{ kind: 'wallet', addr: ADDR }]);
});
afterEach(async () => {
  await closeAll();
  await database.drop();
});

/** Lets so many minutes pass; polls and probes run as in a daemon. */
async function pass(minutes: number) {
  for (let n = 0; n < minutes * 30; n++) {
    clock.advance(2_000);
    await observer.probeOnce(clock.now());
    await observer.runOnce(clock.now());
    await processAll(database);
  }
}
const eventTypes = async () => {
  const rows = await database.db.sql<{ type: string }[]>`
    select type from tallyhook.events order by recorded_at, subject_seq`;
  return rows.map(({ type }) => type);
};
const isUp = async () => Number.isFinite(await availableSince(database.db));
const countPolls = async (minutes: number) => {
  const before = service.count(ACCOUNT);
  await pass(minutes);
  return service.count(ACCOUNT) - before;
};

describe('While every wallet is answered', () => {
  it.each<[string, Record<string, Reply>]>([
    ['the maintenance path fails', { [MAINTENANCE]: PROXY }],
    ['the maintenance path says that it is down', { [MAINTENANCE]: state('INACTIVE') }],
    ['the maintenance path is down itself', { [MAINTENANCE]: DOWN }],
    ['the authorization host fails', { [MAINTENANCE]: PROXY, [TOKEN_PATH]: PROXY }],
  ])('polls go on and clocks run although %s', async (_title, failing) => {
    await pass(1);
    const since = await availableSince(database.db);
    Object.assign(replies, failing);
    expect(await countPolls(5)).toBeGreaterThanOrEqual(5);
    expect(await availableSince(database.db)).toBe(since);
    expect(await eventTypes()).toEqual([]);
  });

  it('a failing maintenance path is probed no more often than a healthy one', async () => {
    await pass(1);
    const healthy = service.count(MAINTENANCE);
    await pass(4);
    const perMinute = (service.count(MAINTENANCE) - healthy) / 4;
    replies[MAINTENANCE] = PROXY;
    const before = service.count(MAINTENANCE);
    await pass(4);
    expect(service.count(MAINTENANCE) - before).toBeLessThanOrEqual(perMinute * 4 + 1);
  });
});

describe('While no wallet is answered', () => {
  it.each<[string, Reply, string]>([
    ['fails', PROXY, 'service.unreachable'],
    ['is refused because of maintenance', DOWN, 'service.maintenance_started'],
  ])('a probe that says ACTIVE keeps no polls going when each %s', async (_t, reply, type) => {
    await pass(1);
    replies[ACCOUNT] = reply;
    await pass(5);
    expect(await isUp()).toBe(false);
    expect(await eventTypes()).toEqual([type]);
    replies[ACCOUNT] = ok(wallet);
    await pass(1);
    expect(await isUp()).toBe(true);
    expect(await eventTypes()).toHaveLength(2);
  });

  it('the outage ends with the first answer, although the maintenance path still fails', async () => {
    await pass(1);
    Object.assign(replies, { [ACCOUNT]: PROXY, [MAINTENANCE]: PROXY });
    await pass(3);
    expect(await isUp()).toBe(false);
    replies[ACCOUNT] = ok(wallet);
    expect(await countPolls(3)).toBeGreaterThan(2);
    expect(await eventTypes()).toEqual(['service.unreachable', 'service.recovered']);
  });
});

it('A daemon that alone does not reach the service stops no other', async () => {
  const path = ({ url }: { url: string }) => url.split('?')[0] ?? '';
  const broken = await startScripted((request) =>
    path(request) === MAINTENANCE ? state('ACTIVE') : PROXY,
  );
  const { upstream } = await upstreamTo(broken.origin, clock);
  const lonely = observerOf(database.db, clock, upstream, 2);
  await pass(1);
  for (let n = 0; n < 60; n++) {
    for (const each of [lonely, observer]) {
      clock.advance(1_000);
      await database.owner.sql`
        update tallyhook.targets set next_poll_at = added_at, lease_until = null, failures = 0`;
      await each.runOnce(clock.now());
      await processAll(database);
    }
  }
  expect(broken.count(ACCOUNT)).toBeGreaterThan(30);
  expect(await eventTypes()).toEqual([]);
});
