/** The metrics of a running daemon. */
import { expect, it } from 'vitest';
import { operationIdOf, useRig } from '../harness/rig.ts';

/** A lost answer stays unknown. */
const rig = useRig({
  reconciler: { read_lag_ms: 50, quiescence_ms: 600_000 },
  // The metric of alerts has a series for each rule.
  // Reads that wait for a lock are held until the test has counted them.
  database: { people_statement_timeout_ms: 60_000 },
  alerts: { rules: [{ name: 'unknown-old', kind: 'unknown_older', age_ms: 900_000 }] },
});

const scrape = async () => (await rig.app.call('GET', '/metrics')).text;
const status = async () => (await rig.app.call('GET', '/api/status')).json;
/** The value of one line, such as `backlog_rows{stage="ledger"}`. */
const gauge = async (line: string) => {
  const found = (await scrape()).split('\n').find((one) => one.startsWith(`tallyhook_${line} `));
  return found === undefined ? undefined : Number(found.slice(found.lastIndexOf(' ') + 1));
};

it('Every series of a counter begins at 0, before anything happens that it counts', async () => {
  const text = await scrape();
  const names = [...text.matchAll(/^# TYPE tallyhook_(\w+) (counter|histogram)$/gm)];
  expect(names.length).toBeGreaterThan(8);
  for (const [, name, type] of names) {
    const series = type === 'counter' ? name : `${name}_count`;
    expect(text, name).toMatch(new RegExp(`^tallyhook_${series}(\\{.*\\})? \\d+$`, 'm'));
  }
  for (const line of [
    'operations_total{kind="burn",state="unknown"}',
    'operations_total{kind="other",state="cancelled"}',
    'upstream_requests_total{class="app-write",result="unknown"}',
    'upstream_requests_total{class="app-read",result="not_sent"}',
    'upstream_requests_total{class="polls",result="unconfirmed"}',
    'polls_total{kind="token",result="absent"}',
    'polls_total{kind="scan",result="inconclusive"}',
    'webhook_attempts_total{result="exhausted"}',
    'worker_pass_failures_total{worker="ledger"}',
    'gateway_request_seconds_count{kind="mint_sequential"}',
    'gateway_request_seconds_bucket{le="+Inf",kind="refused"}',
    'webhook_delivery_seconds_count',
  ])
    expect(await gauge(line), line).toBe(0);
  for (const role of ['gateway', 'api', 'workers', 'delivery'])
    expect(await gauge(`role{role="${role}"}`)).toBe(1);
});

it('Every registered metric is set and has a help text', async () => {
  const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
  const report = await rig.app.call('POST', '/api/reports', { kind: 'reconciliation', ...period });
  expect(report.status).toBe(201);
  await rig.subscribe('/metrics', ['operation.*']);
  await rig.watch(rig.world.ada);
  const given = await rig.app.give(rig.world.ada, 5);
  expect(given.status).toBe(200);
  await rig.eventOf(given, 'operation.settled');
  const unset = async () => {
    const text = await scrape();
    const names = [...text.matchAll(/^# TYPE (tallyhook_\w+) /gm)].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(15);
    for (const name of names) expect(text).toMatch(new RegExp(`^# HELP ${name} \\S.{15,}`, 'm'));
    return names.filter((name) => !new RegExp(`^${name}(?:_sum)?[{ ]`, 'm').test(text));
  };
  // There is no replica.
  await expect.poll(unset).toEqual(['tallyhook_database_replica_usable']);
  for (const stage of ['ledger', 'observer', 'reconciler', 'outbox', 'webhooks'])
    expect(await gauge(`backlog_rows{stage="${stage}"}`)).toBeGreaterThanOrEqual(0);
});

it('Status and metrics state the expected delay of a change, the least one, and their ratio', async () => {
  // The targets are counted every few seconds.
  const delayMs = async () => (await status()).polling.expected_delay_ms ?? 0;
  await expect.poll(delayMs).toBeGreaterThan(0);
  const { polling } = await status();
  expect(polling.eta).toBeGreaterThan(0);
  expect(polling.eta).toBeLessThanOrEqual(1);
  expect(polling.least_delay_ms / polling.expected_delay_ms).toBeCloseTo(polling.eta, 1);
  // Gauges are sampled by a worker of their own.
  await expect.poll(() => gauge('poll_expected_delay_seconds')).toBeGreaterThan(0);
  await expect.poll(() => gauge('poll_least_delay_seconds')).toBeGreaterThan(0);
});

it('Gauges tell the state of the service, disabled endpoints, the newest report and the pools', async () => {
  expect(await gauge('service_state{state="active"}')).toBe(1);
  expect(await gauge('service_state{state="unreachable"}')).toBe(0);
  const [endpoint] = (await rig.app.call('GET', '/api/endpoints')).json.data;
  const disabled = await rig.app.call('POST', `/api/endpoints/${endpoint.id}/disable`);
  expect(disabled.status, disabled.text).toBe(200);
  await expect.poll(() => gauge('webhook_endpoints{state="disabled"}')).toBe(1);
  expect(await gauge('webhook_endpoints{state="enabled"}')).toBe(0);
  expect(await gauge('report_breaks')).toBeGreaterThanOrEqual(0);
  expect(await gauge('report_age_seconds')).toBeGreaterThan(0);
  const reads: Promise<unknown>[] = [];
  await rig.world.database.owner.begin(async ({ sql }) => {
    await sql`lock table tallyhook.reports in access exclusive mode`;
    for (let n = 0; n < 9; n++) reads.push(rig.app.call('GET', '/api/reports'));
    await expect.poll(() => gauge('database_pool_waiting{pool="people"}')).toBe(5);
    expect(await gauge('database_pool_running{pool="people"}')).toBe(4);
    expect(await gauge('database_pool_waiting{pool="gateway"}')).toBe(0);
  });
  await Promise.all(reads);
});

it('Gauges and status count unknown operations, quarantined things and stale wallets', async () => {
  const { control } = rig.world.sandbox;
  control.addFault({ kind: 'lost_answer', endpoint: 'give' });
  // Without evidence.
  const reads = { method: 'GET', contains: rig.world.ben, count: 100_000 };
  control.addFault({ kind: 'status', status: 500, ...reads });
  const lost = await rig.app.give(rig.world.ben, 7);
  expect(lost.status).toBe(504);
  const { owner } = rig.world.database;
  await owner.sql`
    insert into tallyhook.unprocessed_observations (target, kind, observation_id, unchanged_since,
      started_at, ended_at, result, process_at, failures, problem)
    values ('wallet:0x1', 'wallet', 'obs_1', now(), now(), now(), 'seen', now(), 5, 'broken')`;
  await owner.sql`
    insert into tallyhook.wallets (key, addr, verdict, observed_at)
    values ('0x1', '0x1', 'unopened', now() - interval '2 days')`;
  await expect.poll(() => gauge('quarantined{kind="observation"}')).toBe(1);
  await expect.poll(() => gauge('unresolved_operations{state="unknown"}')).toBe(1);
  expect(await gauge('unresolved_operations{state="undecided"}')).toBe(0);
  const age = await gauge('unresolved_operations_oldest_age_seconds{state="unknown"}');
  expect(age).toBeGreaterThan(0);
  expect(await gauge('operations_total{kind="give",state="unknown"}')).toBe(1);
  // With the one of the first test.
  expect(await gauge('operations_total{kind="give",state="sending"}')).toBe(2);
  expect(await gauge('operations_total{kind="give",state="settled"}')).toBe(1);
  expect(await gauge('stale_wallets')).toBe(1);
  expect(await status()).toMatchObject({
    stale_wallets: 1,
    open: { operations: { unknown: 1 }, drifts: 0 },
    quarantined: { operation: 0, posting_request: 0, observation: 1 },
  });
  expect(operationIdOf(lost)).toMatch(/^op_/);
});
