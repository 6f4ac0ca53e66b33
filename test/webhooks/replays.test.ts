import { beforeEach, describe, expect, it } from 'vitest';
import { webhookDefaults } from '../../src/webhooks/webhooks.ts';
import { useRig } from './rig.ts';

const rig = useRig({ retry: { ...webhookDefaults.retry, scheduleMs: [0] } });

let subjects = 0;

/** Commits events of as many subjects; returns their ids. */
function emit(count: number): Promise<string[]> {
  const drafts = Array.from({ length: count }, () => ({
    type: 'report.completed' as const,
    subject: `report:${++subjects}`,
    occurredAt: rig.clock.now(),
    data: {} as never,
  }));
  return rig.emit(...drafts);
}

/** Runs pages until none is left; returns how many. */
async function runPages(webhooks = rig.webhooks): Promise<number> {
  for (let pages = 0; ; pages++) if (!(await webhooks.replayOnce(rig.clock.now()))) return pages;
}

// The events of former tests are older.
beforeEach(() => rig.clock.advance(7_200_000));

const hourAgo = () => rig.clock.now() - 3_600_000;

const allOf = (endpointId: string) => ({
  endpointId,
  since: hourAgo(),
  types: [],
  which: 'all' as const,
});

async function setState(endpointId: string, state: string): Promise<void> {
  await rig.database.db.sql`
    with gone as (
      delete from tallyhook.pending_deliveries
      where 'ep_' || endpoint_id = ${endpointId} returning *)
    insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, event_type, state,
      attempts, fence, finished_at)
    select id, created_at, endpoint_id, event_id, event_type, ${state}, attempts, fence, now()
    from gone`;
}

const statesOf = async (endpointId: string) =>
  (await rig.deliveriesOf(endpointId)).map(({ state }) => state);

describe('A replay', () => {
  it.each([
    ['failed', 'delivered', 'delivered'],
    ['failed', 'exhausted', 'pending'],
    ['failed', 'cancelled', 'pending'],
    ['missing', 'delivered', 'delivered'],
    ['missing', 'exhausted', 'exhausted'],
    ['all', 'delivered', 'pending'],
    ['all', 'exhausted', 'pending'],
    ['all', 'cancelled', 'pending'],
  ] as const)('of %s finds a delivery %s and leaves it %s', async (which, before, then) => {
    const { endpoint } = await rig.subscribe();
    await emit(1);
    await setState(endpoint.id, before);
    rig.clock.advance(1_000);
    const request = { endpointId: endpoint.id, since: hourAgo(), types: [], which };
    const counted = await rig.webhooks.countReplay(request);
    const replay = await rig.webhooks.startReplay(request, 'ops');
    await runPages();
    expect(await statesOf(endpoint.id)).toEqual([then]);
    const queued = then === 'pending' ? 1 : 0;
    expect(counted).toMatchObject({ queued });
    expect(await rig.webhooks.getReplay(replay.id)).toMatchObject({ state: 'done', queued });
  });

  it.each([
    ['failed', 0],
    ['missing', 3],
    ['all', 3],
  ] as const)(
    'A replay of %s makes %i deliveries of three events from before the endpoint',
    async (which, made) => {
      const ids = await emit(3);
      rig.clock.advance(120_000);
      const { endpoint } = await rig.subscribe();
      const since = hourAgo();
      await rig.webhooks.startReplay({ endpointId: endpoint.id, since, types: [], which }, 'ops');
      await runPages();
      const events = (await rig.deliveriesOf(endpoint.id)).map(({ eventId }) => eventId);
      expect(events.filter((id) => ids.includes(id))).toHaveLength(made);
    },
  );

  it('of a type queues events of that type only, and of the time only', async () => {
    const { endpoint } = await rig.subscribe();
    await emit(2);
    await setState(endpoint.id, 'exhausted');
    rig.clock.advance(1_000);
    const base = allOf(endpoint.id);
    const replay = async (types: string[], since: number) => {
      const { id } = await rig.webhooks.startReplay({ ...base, since, types }, 'ops');
      await runPages();
      return (await rig.webhooks.getReplay(id)).queued;
    };
    expect(await replay(['wallet.*'], hourAgo())).toBe(0);
    expect(await replay([], rig.clock.now() - 500)).toBe(0);
    expect(await replay(['report.*'], hourAgo())).toBe(2);
  });

  it('A replay of more than a page continues after a page that was not committed, and sends nothing twice', async () => {
    const { endpoint } = await rig.subscribe();
    for (let n = 0; n < 12; n++) await emit(100);
    await setState(endpoint.id, 'exhausted');
    rig.clock.advance(1_000);
    const request = allOf(endpoint.id);
    const { id } = await rig.webhooks.startReplay(request, 'ops');
    await rig.webhooks.replayOnce(rig.clock.now());
    const { db } = rig.database;
    const { examined } = await rig.webhooks.getReplay(id);
    expect(examined).toBe(500);
    // As after a kill before the commit.
    const broken = db.begin(async ({ sql }) => {
      await sql`select from tallyhook.replays where id = ${id} for update`;
      expect(await rig.webhooks.replayOnce(rig.clock.now())).toBe(false);
      throw new Error('killed');
    });
    await expect(broken).rejects.toThrow('killed');
    const other = rig.another();
    await Promise.all([runPages(), runPages(other)]);
    const done = await rig.webhooks.getReplay(id);
    expect(done).toMatchObject({ state: 'done', queued: 1_200 });
    const [pending] = await db.sql<{ n: number }[]>`
      select count(*)::int as n from tallyhook.pending_deliveries
      where 'ep_' || endpoint_id = ${endpoint.id}`;
    expect(pending?.n).toBe(1_200);
  });

  it('says which part of its time it has examined, and is listed with its endpoint', async () => {
    const { endpoint } = await rig.subscribe();
    const since = rig.clock.now();
    const request = { ...allOf(endpoint.id), since };
    for (let n = 0; n < 5; n++) await emit(100);
    rig.clock.advance(3_600_000);
    for (let n = 0; n < 2; n++) await emit(100);
    rig.clock.advance(3_600_000);
    const { id } = await rig.webhooks.startReplay(request, 'ops');
    const progress = async () => (await rig.webhooks.getReplay(id)).progress;
    expect(await progress()).toBe(0);
    await rig.webhooks.replayOnce(rig.clock.now());
    expect(await progress()).toBe(0);
    await rig.webhooks.replayOnce(rig.clock.now());
    expect(await progress()).toBe(1);
    const listed = (endpointId: string) =>
      rig.webhooks.listReplays({ endpointId, before: '', limit: 10 });
    expect((await listed(endpoint.id)).map((replay) => replay.id)).toEqual([id]);
    expect(await listed('ep_other')).toEqual([]);
    expect((await rig.webhooks.countReplay(request)).progress).toBeNull();
  });

  it('is half done when half of its time is examined', async () => {
    const { endpoint } = await rig.subscribe();
    const since = rig.clock.now();
    rig.clock.advance(3_600_000);
    for (let n = 0; n < 6; n++) await emit(100);
    rig.clock.advance(3_600_000);
    const request = { ...allOf(endpoint.id), since };
    const { id } = await rig.webhooks.startReplay(request, 'ops');
    await rig.webhooks.replayOnce(rig.clock.now());
    expect((await rig.webhooks.getReplay(id)).progress).toBeCloseTo(0.5);
    await runPages();
  });

  it('waits while its endpoint is disabled, and ends with the endpoint', async () => {
    const { endpoint } = await rig.subscribe();
    await emit(1);
    rig.clock.advance(1_000);
    await rig.webhooks.disable(endpoint.id);
    const request = allOf(endpoint.id);
    const { id } = await rig.webhooks.startReplay(request, 'ops');
    expect(await runPages()).toBe(0);
    await expect(rig.webhooks.startReplay(request, 'ops')).rejects.toMatchObject({
      code: 'conflict',
    });
    await rig.webhooks.deleteEndpoint(endpoint.id);
    expect(await runPages()).toBe(1);
    expect(await rig.webhooks.getReplay(id)).toMatchObject({ state: 'cancelled', queued: 0 });
  });

  it('is refused for a time in the future, a time without deliveries, and an empty one', async () => {
    const { endpoint } = await rig.subscribe();
    const start = (since: number, until?: number) =>
      rig.webhooks.startReplay(
        { endpointId: endpoint.id, since, until, types: [], which: 'all' },
        'ops',
      );
    const now = rig.clock.now();
    for (const refused of [start(now + 1), start(now - 91 * 86_400_000), start(now - 5, now - 5)])
      await expect(refused).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('that was cancelled queues no more, and cannot be cancelled again', async () => {
    const { endpoint } = await rig.subscribe();
    rig.clock.advance(1_000);
    const request = allOf(endpoint.id);
    const { id } = await rig.webhooks.startReplay(request, 'ops');
    expect(await rig.webhooks.cancelReplay(id)).toMatchObject({ state: 'cancelled' });
    expect(await runPages()).toBe(0);
    await expect(rig.webhooks.cancelReplay(id)).rejects.toMatchObject({ code: 'conflict' });
  });
});
