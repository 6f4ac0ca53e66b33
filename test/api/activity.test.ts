/** `GET /api/activity`: what happened in each step of the last hour, day or month. */
import { expect, it } from 'vitest';
import { putOperations } from '../ledger/fixture.ts';
import { useApi } from './rig.ts';

const api = useApi();

interface Activity {
  step_s: number;
  steps: number;
  writes: { writes: number; not_executed: number; open: number; answer_p95_ms: number }[];
  attempts: object[];
  since: string;
  service: { from: string; to: string; state: string }[];
}
const read = async (range: string) =>
  JSON.parse((await api.call('GET', `/api/activity?range=${range}`)).text) as Activity;

it('Writes and attempts are counted by the step in which they were made', async () => {
  const now = api.clock.now();
  const write = (id: string, outcome: 'executed' | 'not_executed' | 'open', agoMs: number) => ({
    ...{ id, kind: 'give' as const, amount: 1n, toAddr: `0x${'a'.repeat(40)}` },
    ...{ outcome, state: outcome === 'open' ? ('unknown' as const) : outcome },
    ...{ recordedAt: now - agoMs, sentAt: now - agoMs, answeredAt: now - agoMs + 40 },
  });
  await putOperations(api.database.owner, [
    write('op_1', 'executed', 1_000),
    write('op_2', 'not_executed', 20 * 60_000),
    write('op_3', 'open', 20 * 60_000),
    // Before the last hour.
    write('op_4', 'executed', 3 * 3_600_000),
  ]);
  const instant = new Date(now - 1_000).toISOString();
  await api.database.owner.sql`
    insert into tallyhook.attempts (delivery_id, n, at, duration_ms, result)
    values ('dlv_1', 1, ${instant}, 30, 'delivered'), ('dlv_1', 2, ${instant}, 50, 'retry')`;

  const hour = await read('hour');
  expect(hour).toMatchObject({ step_s: 60, steps: 60 });
  const total = ({ writes }: Activity, name: 'writes' | 'not_executed' | 'open') =>
    writes.reduce((sum, row) => sum + row[name], 0);
  expect(hour.writes).toHaveLength(2);
  expect([total(hour, 'writes'), total(hour, 'not_executed'), total(hour, 'open')]).toEqual([
    3, 1, 1,
  ]);
  expect(hour.writes[0]?.answer_p95_ms).toBeCloseTo(40, 0);
  expect(hour.attempts).toMatchObject([{ delivered: 1, failed: 1, duration_p95_ms: 50 }]);

  const day = await read('day');
  expect([day.step_s, day.steps, total(day, 'writes')]).toEqual([900, 96, 4]);
  expect((await api.call('GET', '/api/activity?range=year')).status).toBe(400);
});

it('The states of the service are listed since the beginning of the range', async () => {
  const now = api.clock.now();
  const ago = (minutes: number) => new Date(now - minutes * 60_000).toISOString();
  const { sql } = api.database.owner;
  await sql`delete from tallyhook.service_changes`;
  for (const [minutes, state] of [
    [900, 'active'],
    [90, 'maintenance'],
    [30, 'active'],
    [10, 'unreachable'],
  ] as const)
    await sql`insert into tallyhook.service_changes values (${ago(minutes)}, ${state})`;
  const { since, service } = await read('hour');
  expect(service).toEqual([
    { from: since, to: ago(30), state: 'maintenance' },
    { from: ago(30), to: ago(10), state: 'active' },
    { from: ago(10), to: expect.any(String), state: 'unreachable' },
  ]);
  expect(Date.parse(service.at(-1)?.to ?? '')).toBeGreaterThanOrEqual(now);
  expect((await read('day')).service).toHaveLength(4);
});
