/** Endpoints that rest with a backlog do not make the passes for others slower. */
import { expect, it } from 'vitest';
import { Rounds } from '../../src/webhooks/delivery/rounds.ts';
import { useRig, walletEvent } from './rig.ts';

const RESTING = 400;
/** Endpoints that a pass of a round examines. */
const PAGE = 100;
const rig = useRig();
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
  await sql`
    with copies as (
      insert into tallyhook.endpoints (id, url, event_types, ordering, signing, encrypted_secrets,
        state, state_at, subscribed_at, created_by, created_at)
      select left(id, -12) || lpad(n::text, 12, '0'), url, event_types, ordering, signing,
        encrypted_secrets, state, state_at, subscribed_at, created_by, created_at
      from tallyhook.endpoints, generate_series(2, ${RESTING}) n where id = ${resting.id}
      returning id)
    insert into tallyhook.endpoint_health (endpoint_id, consecutive_failures)
    select id, 0 from copies`;
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
  await sql`update tallyhook.endpoints set deleted_at = state_at where url like '%/rests'`;
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
