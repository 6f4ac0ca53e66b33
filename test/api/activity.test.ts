/** `GET /api/activity`: what happened in each step of the last hour, day or month. */
import { expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { uuidAt } from '../../src/kernel/ids.ts';
import { countAttemptMinutes } from '../../src/webhooks/webhooks.ts';
import { putOperations } from '../ledger/fixture.ts';
import { useApi } from './rig.ts';

const api = useApi();

interface Activity {
  step_s: number;
  steps: number;
  writes: { writes: number; not_executed: number; open: number; answer_p95_ms: number }[];
  attempts: { delivered: number; failed: number }[];
  polling: object[];
  since: string;
  service: { from: string; to: string; state: string }[];
}
const read = async (range: string) =>
  JSON.parse((await api.call('GET', `/api/activity?range=${range}`)).text) as Activity;

it('Writes are counted by the step in which they were made', async () => {
  const now = api.clock.now();
  const write = (id: string, outcome: 'executed' | 'not_executed' | 'open', agoMs: number) => ({
    id,
    kind: 'give' as const,
    amount: 1n,
    toAddr: `0x${'a'.repeat(40)}`,
    outcome,
    state: outcome === 'open' ? ('unknown' as const) : outcome,
    recordedAt: now - agoMs,
    sentAt: now - agoMs,
    answeredAt: now - agoMs + 40,
  });
  await putOperations(api.database.owner, [
    write('op_1', 'executed', 1_000),
    write('op_2', 'not_executed', 20 * 60_000),
    write('op_3', 'open', 20 * 60_000),
    // Before the last hour.
    write('op_4', 'executed', 3 * 3_600_000),
  ]);

  const hour = await read('hour');
  expect(hour).toMatchObject({ step_s: 60, steps: 60 });
  const total = ({ writes }: Activity, name: 'writes' | 'not_executed' | 'open') =>
    writes.reduce((sum, row) => sum + row[name], 0);
  expect(hour.writes).toHaveLength(2);
  expect([total(hour, 'writes'), total(hour, 'not_executed'), total(hour, 'open')]).toEqual([
    3, 1, 1,
  ]);
  expect(hour.writes[0]?.answer_p95_ms).toBeCloseTo(40, 0);

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

it('The attempts of each endpoint are counted by the minute, once, however often it is done', async () => {
  const now = api.clock.now();
  const { sql } = api.database.owner;
  const made = await api.call('POST', '/api/endpoints', { body: { url: 'https://a.example' } });
  const { id } = made.body;
  const uuid = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
  // What is delivered at once is in the row of its delivery, others have rows of their own.
  const put = async (n: number, agoMs: number, result: string, endpoint = id) => {
    const at = new Date(now - agoMs).toISOString();
    const delivery = uuidAt(now - agoMs).replace(/.{17}$/, uuid(n).slice(-17));
    const isInside = result === 'delivered';
    await sql`
      insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, event_type, state,
        attempts, fence, finished_at, attempted_at, duration_ms)
      values (${delivery}, ${at}, substr(${endpoint}, 4)::uuid, ${uuid(1)}, 'endpoint.test',
        'delivered', 1, 1, ${at}, ${isInside ? at : null}, ${isInside ? 30 * n : null})`;
    if (!isInside)
      await sql`insert into tallyhook.attempts (delivery_id, n, at, duration_ms, result)
        values (${delivery}, 1, ${at}, ${30 * n}, ${result})`;
  };
  const countAll = async () => {
    while (await countAttemptMinutes(api.db, now));
  };
  // The last two days had pauses of many hours.
  await put(1, 40 * 3_600_000, 'delivered');
  await put(2, 20 * 3_600_000, 'retry');
  await put(3, 1_000, 'delivered');
  await put(4, 1_000, 'retry', `ep_${uuid(9)}`);
  await countAll();
  await countAll();
  const its = async (range: string) =>
    JSON.parse((await api.call('GET', `/api/endpoints/${id}/activity?range=${range}`)).text);
  expect((await its('hour')).attempts).toMatchObject([
    { delivered: 1, failed: 0, mean_ms: 90, slowest_ms: 90 },
  ]);
  expect((await its('day')).attempts).toMatchObject([
    { delivered: 0, failed: 1, mean_ms: 60 },
    { delivered: 1, failed: 0 },
  ]);
  expect((await its('month')).attempts).toHaveLength(3);
  // Stored after its minute was counted.
  await put(5, 2_000, 'retry');
  await countAll();
  const hour = await read('hour');
  const sum = (name: 'delivered' | 'failed') =>
    hour.attempts.reduce((total, row) => total + row[name], 0);
  expect([sum('delivered'), sum('failed')]).toEqual([1, 2]);
  const none = await api.call('GET', '/api/endpoints/ep_0000000000000000/activity');
  expect([400, 404]).toContain(none.status);
});

it('The use of the budget and the delay of polls are means over the whole minutes of a step', async () => {
  const now = Math.floor(api.clock.now() / 60_000) * 60_000;
  const { sql } = api.database.owner;
  const put = (minutes: number, requests: number, delay: number | null, oldest: number | null) =>
    sql`insert into tallyhook.poll_minutes
      values (${isoText(now - minutes * 60_000)}, ${requests}, 2, ${delay}, ${oldest})
      on conflict (at) do update set requests = excluded.requests`;
  await put(60 * 30, 60, 500, 900);
  await put(31, 120, 4_000, 9_000);
  await put(30, 60, null, null);
  const { polling } = await read('hour');
  expect(polling.slice(0, 2)).toEqual([
    expect.objectContaining({ requests_per_s: 2, allowed_per_s: 2, expected_delay_ms: 4_000 }),
    expect.objectContaining({ requests_per_s: 1, expected_delay_ms: null, oldest_poll_ms: null }),
  ]);
  const before = (await read('hour')).polling.length;
  await api.observer.sampleMinute(api.clock.now());
  // The minute that runs is not shown before its end.
  expect((await read('hour')).polling).toHaveLength(before);
  const [row] = await sql`select * from tallyhook.poll_minutes order by at desc limit 1`;
  expect(row).toMatchObject({ requests: 0, allowedPerS: 5 });
  expect((await read('month')).polling.length).toBeGreaterThan(1);
});
