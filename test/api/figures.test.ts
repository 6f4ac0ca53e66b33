/** Figures of deliveries: sums of attempts by minute, hour and day, per endpoint and type. */
import { describe, expect, it } from 'vitest';
import { asJson } from '../../src/db/connect.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { uuidAt } from '../../src/kernel/ids.ts';
import { countAttemptMinutes } from '../../src/webhooks/webhooks.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import { useApi } from './rig.ts';

const api = useApi();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Attempt {
  endpoint: string;
  type: string;
  at: number;
  ms: number;
  isDelivered: boolean;
}

interface Counts {
  at: string;
  type: string;
  delivered: number;
  failed: number;
  success_rate: number;
  mean_ms: number;
  p50_ms: number;
  p95_ms: number;
  slowest_ms: number;
}

async function makeEndpoint(key?: string): Promise<string> {
  const body = { url: 'https://receiver.example/hook' };
  const { status, body: made } = await api.call('POST', '/api/endpoints', {
    ...(key ? { key } : {}),
    body,
  });
  expect(status).toBe(201);
  return String(made.id);
}

let stored = 0;
/** Stores attempts and counts them. What is delivered at once is in the row of its delivery. */
async function store(attempts: readonly Attempt[]): Promise<void> {
  const { sql } = api.database.owner;
  const rows = attempts.map(({ endpoint, type, at, ms, isDelivered }) => {
    const id = uuidAt(at).replace(/.{12}$/, String(++stored).padStart(12, '0'));
    return { id, endpoint: endpoint.slice(3), type, at: isoText(at), ms, isDelivered };
  });
  await sql`
    with x as (
      select * from jsonb_to_recordset(${asJson(rows)}::jsonb)
        as x(id uuid, endpoint uuid, type text, at timestamptz, ms int, "isDelivered" boolean)
    ), logged as (
      insert into tallyhook.attempts (delivery_id, n, at, duration_ms, result)
      select id, 1, at, ms, 'retry' from x where not "isDelivered"
    )
    insert into tallyhook.deliveries (id, created_at, endpoint_id, event_id, event_type, state,
      attempts, fence, finished_at, attempted_at, duration_ms)
    select id, at, endpoint, id, type,
      case when "isDelivered" then 'delivered' else 'exhausted' end,
      1, 1, at, case when "isDelivered" then at end, case when "isDelivered" then ms end from x`;
  while (await countAttemptMinutes(api.db, api.clock.now()));
}

async function read(path: string, query = '', key?: string) {
  const { status, text } = await api.call('GET', `${path}?${query}`, key ? { key } : {});
  expect(status, text).toBe(200);
  return JSON.parse(text) as {
    since: string;
    total: Counts | null;
    steps: Counts[];
    types: Counts[];
  };
}

function countOf(attempts: readonly Attempt[]) {
  const delivered = attempts.filter(({ isDelivered }) => isDelivered).length;
  const durations = attempts.map(({ ms }) => ms).sort((a, b) => a - b);
  const percentile = (part: number) => durations[Math.ceil(part * durations.length) - 1] ?? 0;
  return {
    delivered,
    failed: attempts.length - delivered,
    rate: delivered / attempts.length,
    mean: durations.reduce((sum, ms) => sum + ms, 0) / attempts.length,
    p50: percentile(0.5),
    p95: percentile(0.95),
    slowest: durations.at(-1),
  };
}

/** The figures of these attempts: exact, but for percentiles, which are within a bucket. */
function expectFigures(shown: Counts | undefined | null, attempts: readonly Attempt[]): void {
  const { delivered, failed, rate, mean, p50, p95, slowest } = countOf(attempts);
  expect(shown).toMatchObject({ delivered, failed, slowest_ms: slowest });
  expect(shown?.success_rate).toBeCloseTo(rate);
  expect(shown?.mean_ms).toBeCloseTo(mean);
  for (const [found, exact] of [
    [shown?.p50_ms ?? 0, p50],
    [shown?.p95_ms ?? 0, p95],
  ] as const) {
    expect(found / Math.max(exact, 1)).toBeGreaterThan(0.7);
    expect(found / Math.max(exact, 1)).toBeLessThan(1.42);
  }
}

const flooredTo = (stepMs: number) => (at: number) => Math.floor(at / stepMs) * stepMs;

describe('The figures of deliveries', () => {
  it('The figures of deliveries are those of every attempt, by minute, hour, day and type, of one endpoint and of all', async () => {
    const now = api.clock.now();
    const random = seededRandom(32);
    const whole = (below: number) => Math.floor(random.unit() * below);
    const endpoints = [await makeEndpoint(), await makeEndpoint()];
    const types = ['wallet.observed', 'operation.settled', 'endpoint.test'];
    const attempts = Array.from({ length: 600 }, (): Attempt => {
      const agoMs = [20 * MINUTE, 20 * HOUR, 28 * DAY][whole(3)] ?? 0;
      return {
        endpoint: endpoints[whole(2)] ?? '',
        type: types[whole(3)] ?? '',
        at: now - 1_000 - whole(agoMs),
        ms: Math.floor(2 ** (random.unit() * 14)),
        isDelivered: random.unit() < 0.7,
      };
    });
    await store(attempts);
    const steps = { minute: MINUTE, hour: HOUR, day: DAY };
    const ranges = { minute: HOUR, hour: DAY, day: 28 * DAY };
    for (const endpoint of [undefined, ...endpoints])
      for (const type of [undefined, 'endpoint.test'])
        for (const step of ['minute', 'hour', 'day'] as const) {
          const path = endpoint ? `/api/endpoints/${endpoint}/figures` : '/api/figures';
          const from = flooredTo(steps[step])(now - ranges[step]);
          const since = `step=${step}&since=${isoText(from)}`;
          const shown = await read(path, type ? `${since}&type=${type}` : since);
          const own = attempts.filter(
            (one) =>
              one.at >= from &&
              (!endpoint || one.endpoint === endpoint) &&
              (!type || one.type === type),
          );
          expectFigures(shown.total, own);
          const byStep = Map.groupBy(own, ({ at }) => isoText(flooredTo(steps[step])(at)));
          expect(shown.steps.map(({ at }) => at)).toEqual([...byStep.keys()].sort());
          for (const one of shown.steps) expectFigures(one, byStep.get(one.at) ?? []);
          const byType = Map.groupBy(own, (one) => one.type);
          expect(shown.types.map((one) => one.type)).toEqual([...byType.keys()].sort());
          for (const one of shown.types) expectFigures(one, byType.get(one.type) ?? []);
        }
  });

  it('are counted once, however often that is done, and later ones of a minute are added', async () => {
    const endpoint = await makeEndpoint();
    const at = api.clock.now() - 5_000;
    const one = { endpoint, type: 'wallet.observed', at, ms: 8, isDelivered: true };
    await store([one, one]);
    await store([]);
    await store([{ ...one, at: at - 1, isDelivered: false }]);
    const { total } = await read(`/api/endpoints/${endpoint}/figures`, 'step=minute');
    expect(total).toMatchObject({ delivered: 2, failed: 1, mean_ms: 8, slowest_ms: 8 });
    expect(total?.p95_ms).toBeLessThanOrEqual(8);
  });

  it('of an endpoint without an attempt are empty', async () => {
    const endpoint = await makeEndpoint();
    const none = await read(`/api/endpoints/${endpoint}/figures`, 'step=day');
    expect(none).toMatchObject({ endpoint_id: endpoint, total: null, steps: [], types: [] });
  });

  it.each<[step: string, agoMs: number, text: RegExp, untilAgoMs?: number]>([
    ['step=minute', 25 * HOUR, /at most a day before until with the step minute/],
    ['step=hour', 31 * DAY, /at most 30 days before until/],
    ['step=day', -HOUR, /since must be before until/],
    ['step=minute', 40.5 * DAY, /within the last 30 days/, 40 * DAY],
  ])(
    'are refused with %s from %d ms ago, and the refusal says what to do',
    async (step, agoMs, text, untilAgoMs) => {
      const now = api.clock.now();
      const until = untilAgoMs === undefined ? '' : `&until=${isoText(now - untilAgoMs)}`;
      const path = `/api/figures?${step}&since=${isoText(now - agoMs)}${until}`;
      const { status, body } = await api.call('GET', path);
      expect([status, String(body.detail)]).toEqual([400, expect.stringMatching(text)]);
    },
  );

  it('of an endpoint are shown to its subscriber, and of others or of all they are not', async () => {
    const link = await api.call('POST', '/api/portal-links', { body: { owner: 'figured' } });
    const key = String(link.body.url).split('#')[1];
    const [own, other] = [await makeEndpoint(key), await makeEndpoint()];
    expect((await read(`/api/endpoints/${own}/figures`, '', key)).total).toBeNull();
    const status = async (path: string) => (await api.call('GET', path, { key })).status;
    expect(await status(`/api/endpoints/${other}/figures`)).toBe(404);
    expect(await status('/api/figures')).toBe(403);
  });
});
