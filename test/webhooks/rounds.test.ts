/** Endpoints that rest with a backlog do not make the passes for others slower. */
import { expect, it } from 'vitest';
import type { Tx } from '../../src/db/connect.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { type ActiveEndpoint, claimDeliveries } from '../../src/webhooks/delivery/queue.ts';
import { type Left, Rounds } from '../../src/webhooks/delivery/rounds.ts';
import { useRig, walletEvent } from './rig.ts';

const RESTING = 400;
/** Endpoints that a pass of a round examines. */
const PAGE = 100;
const rig = useRig();
/** Stores copies of an endpoint, so that there are so many: their ids follow. */
const copy = async (id: string, count: number) => {
  await rig.database.db.sql`
    with copies as (
      insert into tallyhook.endpoints (id, url, event_types, ordering, signing, encrypted_secrets,
        state, state_at, subscribed_at, created_by, created_at)
      select left(id, -12) || 'fff' || lpad(n::text, 9, '0'), url, event_types, ordering, signing,
        encrypted_secrets, state, state_at, subscribed_at, created_by, created_at
      from tallyhook.endpoints, generate_series(2, ${count}) n where id = ${id}
      returning id)
    insert into tallyhook.endpoint_health (endpoint_id, consecutive_failures)
    select id, 0 from copies`;
};
/** Deletes all of a path and what is left for them. */
const forget = async (path: string) => {
  const { sql } = rig.database.db;
  await sql`update tallyhook.endpoints set deleted_at = state_at where url like ${`%${path}`}`;
  await sql`delete from tallyhook.pending_deliveries`;
};
/** Passes until all pages of a round were examined. */
const deliverRound = async () => {
  for (let page = 0; page <= RESTING / PAGE; page++) {
    rig.clock.advance(PAGE / 10);
    await rig.deliver();
  }
};

it('While many endpoints rest, a pass examines those served lately, and a round all', async () => {
  const { sql } = rig.database.db;
  const { endpoint: resting } = await rig.subscribe('/rests');
  await copy(resting.id, RESTING);
  await sql`update tallyhook.endpoint_health set paused_until = 'infinity'`;
  await rig.subscribe('/served');
  await rig.emit(walletEvent());
  await deliverRound();
  expect(rig.receiver.requests.map(({ path }) => path)).toEqual(['/served']);

  await rig.subscribe('/new');
  await rig.emit(walletEvent());
  const { claimed } = await rig.webhooks.runOnce(rig.clock.now());
  expect(claimed).toBe(1);
  const { more, nextDueAt = 0 } = await rig.webhooks.runOnce(rig.clock.now());
  expect(more).toBe(false);
  expect(nextDueAt - rig.clock.now()).toBeGreaterThan(0);
  expect(nextDueAt - rig.clock.now()).toBeLessThanOrEqual((2 * PAGE) / 10);
  await deliverRound();
  const paths = rig.receiver.requests.map(({ path }) => path);
  expect(paths).toEqual(['/served', '/served', '/new']);
  await forget('/rests');
});

it('A page of a round searches no delivery of endpoints that rest', async () => {
  const { endpoint } = await rig.subscribe('/rests');
  await copy(endpoint.id, PAGE);
  await rig.database.db.sql`update tallyhook.endpoint_health set paused_until = 'infinity'`;
  await rig.emit(walletEvent());
  const searchesOf = async ({ sql }: Tx) => {
    const [row] = await sql<{ searches: number }[]>`
      select idx_scan::int as searches from pg_stat_xact_user_tables
      where relname = 'pending_deliveries'`;
    return row?.searches ?? 0;
  };
  const searches = await rig.database.db.begin(async (tx) => {
    const before = await searchesOf(tx);
    const now = rig.clock.now();
    const page = { after: '', limit: PAGE + 1, now, leaseUntil: now + 1_000 };
    expect(await claimDeliveries(tx, { ...page, quotas: [] })).toMatchObject({ resting: PAGE });
    return (await searchesOf(tx)) - before;
  });
  // One for each endpoint, and the one that finds no further.
  expect(searches).toBe(PAGE + 1);
  await forget('/rests');
});

it('The end of a round tells when the first of all its pages has something due', async () => {
  const { sql } = rig.database.db;
  const { endpoint } = await rig.subscribe('/later');
  await copy(endpoint.id, 2 * PAGE + 1);
  await rig.emit(walletEvent());
  const webhooks = rig.another();
  const now = rig.clock.now();
  await sql`update tallyhook.pending_deliveries set due_at = ${isoText(now + 3_600_000)}`;
  const [first] = await sql`
    update tallyhook.pending_deliveries set due_at = ${isoText(now + 500)}
    where endpoint_id = (select min(endpoint_id::text)::uuid from tallyhook.pending_deliveries)
    returning id`;
  expect(first).toBeDefined();
  const round = async () => {
    const pages = [];
    do pages.push(await webhooks.runOnce(rig.clock.now()));
    while (pages.at(-1)?.more);
    return { pages: pages.length, ...pages.at(-1) };
  };
  expect(await round()).toEqual({ pages: 3, claimed: 0, more: false, nextDueAt: now + 500 });
  rig.clock.advance(500);
  await round();
  await webhooks.drain(20_000);
  expect(rig.receiver.requests).toHaveLength(1);
  await forget('/later');
});

it('What is due of an endpoint stays known while other pages of a round are examined', async () => {
  const { sql } = rig.database.db;
  const { endpoint: first } = await rig.subscribe('/first');
  rig.clock.advance(1);
  const { endpoint: last } = await rig.subscribe('/last');
  await rig.emit(walletEvent());
  await rig.deliver();
  await sql`
    update tallyhook.endpoint_health set consecutive_failures = 1 where endpoint_id = ${last.id}`;
  await copy(first.id, 2 * PAGE - 2);
  await rig.emit(walletEvent());
  const now = rig.clock.now();
  const own = [first, last].map(({ id }) => id.slice(3));
  await sql`
    update tallyhook.pending_deliveries
    set due_at = case when endpoint_id = any(${own}::uuid[]) then ${isoText(now + 500)}::timestamptz
      else ${isoText(now + 3_600_000)} end`;
  for (const more of [true, false, true])
    expect(await rig.webhooks.runOnce(now)).toMatchObject({ claimed: 0, more });
  rig.clock.advance(500);
  expect(await rig.webhooks.runOnce(rig.clock.now())).toMatchObject({ claimed: 2 });
  await rig.webhooks.drain(20_000);
  await forget('/first');
});

it('Endpoints without capacity are known at the end of a round, whatever page they are on', () => {
  const rounds = new Rounds();
  const starved = (name: string) => [{ endpointId: name }] as ActiveEndpoint[];
  const idsOf = (left: Left) => left.starved.map(({ endpointId }) => endpointId);
  rounds.advance({ next: 'a', resting: 0 }, 5_000);
  rounds.leave({ dueAt: 5_050, starved: starved('a') });
  rounds.advance({ next: '', resting: 0 }, 5_000);
  const end = rounds.leave({ dueAt: 9_000, starved: [] });
  expect([end.dueAt, idsOf(end)]).toEqual([5_050, ['a']]);
  rounds.advance({ next: 'a', resting: 0 }, 6_000);
  const next = rounds.leave({ dueAt: 7_000, starved: starved('b') });
  expect([next.dueAt, idsOf(next)]).toEqual([7_000, ['b']]);
});

it.each([
  [0, 0],
  [100, 0],
  [101, 11],
  [10_000, 1_000],
])('With %i resting endpoints the pages of a round are %i ms apart, together', (resting, ms) => {
  const rounds = new Rounds();
  rounds.advance({ next: 'ep_1', resting: 1 }, 5_000);
  expect([rounds.isDue(5_000), rounds.after]).toEqual([true, 'ep_1']);
  rounds.advance({ next: '', resting: resting - 1 }, 5_000);
  expect([rounds.isDue(5_000), rounds.nextAt - 5_000]).toEqual([ms === 0, ms]);
  expect(rounds.isDue(5_000 + ms + 1)).toBe(true);
});

it('A round may begin after the clock was set back', () => {
  const rounds = new Rounds();
  rounds.advance({ next: '', resting: 10_000 }, 5_000);
  expect([rounds.isDue(5_001), rounds.isDue(4_999)]).toEqual([false, true]);
});

it('A new delivery is claimed together with what is known to be due of other endpoints', async () => {
  const { sql } = rig.database.db;
  const { endpoint: waiting } = await rig.subscribe('/waiting');
  const { endpoint: quick } = await rig.subscribe('/quick');
  await rig.emit(walletEvent());
  await rig.deliver();
  const forOne = async ({ id }: { id: string }) => {
    await rig.emit(walletEvent());
    await sql`delete from tallyhook.pending_deliveries
      where endpoint_id <> ${id.slice(3)} and due_at <= ${isoText(rig.clock.now())}`;
  };
  await forOne(waiting);
  await sql`update tallyhook.pending_deliveries set due_at = ${isoText(rig.clock.now() + 500)}`;
  expect(await rig.webhooks.runOnce(rig.clock.now())).toMatchObject({ claimed: 0 });
  rig.clock.advance(400);
  await forOne(quick);
  rig.clock.advance(100);
  rig.receiver.requests.length = 0;
  expect(await rig.webhooks.runOnce(rig.clock.now())).toMatchObject({ claimed: 2 });
  await rig.webhooks.drain(5_000);
  const paths = rig.receiver.requests.map(({ path }) => path);
  expect(paths.toSorted()).toEqual(['/quick', '/waiting']);
});
