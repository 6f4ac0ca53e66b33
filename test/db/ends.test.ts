/** Every table has an end to its growth, and the ends that housekeeping brings. */
import { beforeEach, describe, expect, it } from 'vitest';
import { housekeepingWorker } from '../../src/daemon/workers/housekeeping.ts';
import { makePartitions } from '../../src/db/partitions.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { findEvent } from '../../src/outbox/outbox.ts';
import { putOperations } from '../ledger/fixture.ts';
import { useRig, walletEvent } from '../webhooks/rig.ts';
import { ENDS } from './growth/ends.ts';

const DAY_MS = 86_400_000;
const KEEP = { events: 400, observations: 90, deliveries: 90, attempts: 90, audit: 3650 };

const rig = useRig();

const sql = (strings: TemplateStringsArray, ...values: string[]) =>
  rig.database.owner.sql(strings, ...values);

/** One pass of housekeeping. */
async function keepHouse(
  at = rig.clock.now(),
  body_retention_days: Record<string, number> = {},
): Promise<void> {
  const { webhooks, database } = rig;
  const config = { database: { retention_days: KEEP, body_retention_days } } as Parameters<
    typeof housekeepingWorker
  >[0]['config'];
  const worker = housekeepingWorker({ config, db: database.db, webhooks });
  await worker.pass(at, new AbortController().signal);
}

const daysAgo = (days: number) => isoText(rig.clock.now() - days * DAY_MS);

async function names(table: string, column: string): Promise<string[]> {
  const rows = await rig.database.owner.sql.unsafe(
    `select ${column}::text as name from tallyhook.${table} order by 1`,
  );
  return rows.map(({ name }) => name);
}

describe('Every table', () => {
  it.each(Object.entries(ENDS))('%s ends as its line says', async (table, { end, by, moves }) => {
    const [found] = await rig.database.owner.sql<{ deletes: boolean; parts: boolean }[]>`
      select has_table_privilege('tallyhook_writer', c.oid, 'delete') as deletes,
        c.relkind = 'p' as parts
      from pg_class c where c.oid = ${`tallyhook.${table}`}::regclass`;
    const byFunction = by?.includes('function') ?? false;
    if (end !== 'bounded')
      expect(found).toEqual({
        deletes: (end === 'deleted' && !byFunction) || moves !== undefined,
        parts: end === 'month',
      });
    expect(by !== undefined).toBe(end === 'deleted');
  });

  it('whose rows churn is vacuumed before a fifth of it is dead, each partition too', async () => {
    await makePartitions(rig.database.db, rig.clock.now());
    const rows = await rig.database.owner.sql<{ name: string }[]>`
      select distinct coalesce(p.relname, c.relname) as name
      from pg_class c left join pg_inherits i on i.inhrelid = c.oid
      left join pg_class p on p.oid = i.inhparent
      where c.relnamespace = 'tallyhook'::regnamespace and c.relkind = 'r'
        and 'autovacuum_vacuum_scale_factor=0.05' = any(c.reloptions)
      except
      select p.relname from pg_class c join pg_inherits i on i.inhrelid = c.oid
      join pg_class p on p.oid = i.inhparent
      where c.relkind = 'r' and c.reloptions is null`;
    const churning = Object.keys(ENDS).filter((name) => ENDS[name]?.churns);
    expect(rows.map(({ name }) => name).toSorted()).toEqual(churning);
  });
});

describe('Housekeeping', () => {
  beforeEach(() => rig.clock.advance(DAY_MS));

  it('forgets daemons a month after their end', async () => {
    await sql`
      insert into tallyhook.daemons (id, started_at, alive_until, roles, server_start, data_file)
      values ('dmn_old', ${daysAgo(90)}, ${daysAgo(31)}, '{api}', now(), ''),
      ('dmn_new', ${daysAgo(90)}, ${daysAgo(29)}, '{api}', now(), '')`;
    await keepHouse();
    expect(await names('daemons', 'id')).toEqual(['dmn_new']);
  });

  it('removes the bodies of old events of the types that the setting names', async () => {
    const [id = ''] = await rig.emit(walletEvent());
    const isRemoved = async () =>
      (await findEvent(rig.database.db, id))?.includes('body_removed_at');
    rig.clock.advance(31 * DAY_MS);
    await keepHouse(rig.clock.now(), { 'wallet.*': 32, '*': 1 });
    expect(await isRemoved()).toBe(false);
    await keepHouse(rig.clock.now(), { 'wallet.*': 30 });
    expect(await isRemoved()).toBe(true);
  });

  it('deletes the candidates of operations that something else resolved', async () => {
    await putOperations(rig.database.owner, [
      { id: 'op_c1', state: 'unknown' },
      { id: 'op_c2', state: 'accepted' },
    ]);
    await sql`insert into tallyhook.candidates
      select id, 'executed', 'one_sided', '{}', recorded_at, recorded_at
      from tallyhook.operations where id like 'op_c%'`;
    await keepHouse();
    expect(await names('candidates', 'operation_id')).toEqual(['op_c1']);
  });

  it('prunes the audit after its retention, and nothing of the last year', async () => {
    const ages = [KEEP.audit + 2, KEEP.audit + 1, KEEP.audit - 2, 1];
    for (const age of ages)
      await sql`insert into tallyhook.audit (at, owner, key_id, action, detail)
        values (${daysAgo(age)}, 'ann', 'key_1', ${String(age)}, '{}')`;
    await keepHouse();
    expect(await names('audit', 'action')).toEqual(['1', String(KEEP.audit - 2)]);
    const recent = rig.database.db.sql`select tallyhook.prune_audit(now() - interval '364 days')`;
    await expect(recent).rejects.toMatchObject({ code: 'TH001' });
  });

  it('deletes the minutes of plots after the longest range of a plot', async () => {
    for (const days of [32, 30]) {
      await sql`insert into tallyhook.poll_minutes values (${daysAgo(days)}, 1, 1, null, null)`;
      await sql`insert into tallyhook.attempt_figures
        (endpoint_id, at, event_type, delivered, failed, duration_ms, slowest_ms, latencies)
        values (${`ep_${days}`}, ${daysAgo(days)}, '', 1, 1, 1, 1, '{}')`;
    }
    await keepHouse();
    expect(await names('attempt_figures', 'endpoint_id')).toEqual(['ep_30']);
    expect(await names('poll_minutes', 'requests')).toEqual(['1']);
  });

  it('removes deleted endpoints with their health and counter after the retention of deliveries', async () => {
    const { endpoint } = await rig.subscribe();
    const kept = await rig.subscribe('/other');
    await rig.emit({
      type: 'endpoint.test',
      subject: `endpoint:${endpoint.id}`,
      occurredAt: 0,
      data: { endpoint_id: endpoint.id, reason: 'test', url: 'https://example.com' },
    });
    await rig.webhooks.deleteEndpoint(endpoint.id);
    rig.clock.advance((KEEP.deliveries - 1) * DAY_MS);
    await keepHouse();
    expect(await names('endpoints', 'id')).toContain(endpoint.id);
    rig.clock.advance(2 * DAY_MS);
    await keepHouse();
    expect(await names('endpoints', 'id')).toEqual([kept.endpoint.id]);
    expect(await names('endpoint_health', 'endpoint_id')).toEqual([kept.endpoint.id]);
    expect(await names('subjects', 'subject')).not.toContain(`endpoint:${endpoint.id}`);
  });

  it('deletes rows of the default partitions after their retention, however they came there', async () => {
    // There is no partition of these months.
    rig.clock.advance(1_000 * DAY_MS);
    const put = (id: string, days: number) => sql`
      insert into tallyhook.observations (id, target, kind, started_at, first_ended_at,
        last_started_at, ended_at, result)
      values (${id}, 'wallet:x', 'wallet', ${daysAgo(days)}, now(), now(), now(), 'seen')`;
    await put('obs_old', KEEP.observations + 2);
    await put('obs_new', KEEP.observations - 2);
    const places = await rig.database.owner.sql`
      select id from tallyhook.observations_default order by id`;
    expect(places).toEqual([{ id: 'obs_new' }, { id: 'obs_old' }]);
    await keepHouse();
    expect(await names('observations', 'id')).toEqual(['obs_new']);
  });
});
