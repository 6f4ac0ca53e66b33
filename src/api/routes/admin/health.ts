/** Liveness, readiness, metrics and public webhook keys: open without an API key. */
import { z } from '@hono/zod-openapi';
import { findMissingGuards } from '../../../db/checks/guards.ts';
import { findMismatch } from '../../../db/migrate.ts';
import { monotonicMs, withDeadline } from '../../../kernel/clock.ts';
import { Failure } from '../../../kernel/errors.ts';
import { jsonText } from '../../../kernel/json.ts';
import type { Metrics } from '../../../kernel/telemetry/metrics.ts';
import { health, readiness, webhookKeys } from '../../../resources/admin/status.ts';
import type { Row } from '../../../resources/resource.ts';
import { shower } from '../../../resources/show.ts';
import type { ApiDeps } from '../../deps.ts';
import { problemResponse } from '../../http/problems.ts';
import { json, type Router, reply } from '../../http/router.ts';
import { schemaOf } from '../../http/schemas.ts';

const CHECK_DEADLINE_MS = 3_000;
/** How long requests share an answer, so that a flood of them costs little. */
const SHARED_MS = 1_000;

const unavailable = problemResponse('Temporarily unavailable; see Retry-After');
const showKeys = shower(webhookKeys);
const base = { method: 'get', tag: 'operating', request: z.object({}) } as const;

type HealthDeps = Pick<
  ApiDeps,
  'db' | 'migrations' | 'webhooks' | 'roles' | 'delivery' | 'leaving' | 'isAlive' | 'refusals'
>;

/** So long a refusal counts; then the next write shows whether it is still there. */
const REFUSED_MS = 10_000;
/** For the gauge: longer than the alert that watches it waits. */
const REFUSED_SHOWN_MS = 120_000;

const LOST_HEARTBEAT =
  'its heartbeats are not committed, so it sends nothing: commits hang (a standby that is ' +
  'gone?), or its role has no free connection';

export function addHealth(router: Router, deps: HealthDeps): void {
  const { db, migrations, webhooks, leaving, isAlive, refusals } = deps;
  const ready = cachedForASecond(() => checkReady(db, migrations));
  const publicKeys = cachedForASecond(() => webhooks.publicKeys());
  router.raw({
    ...base,
    path: '/healthz',
    summary: 'Check that the process is running',
    responses: { 200: json('The process is running', schemaOf(health)) },
    handle: (_, c) => reply(c, jsonText({ status: 'ok' })),
  });
  router.raw({
    ...base,
    path: '/readyz',
    summary: 'Check the database, its migrations and its guards, and the process of webhooks',
    responses: { 200: json('The daemon is ready', schemaOf(readiness)), 503: unavailable },
    async handle(_, c) {
      if (leaving.aborted) throw new Failure('shutting_down');
      await ready();
      if (!isAlive()) throw notReady('heartbeat', LOST_HEARTBEAT);
      const refused = refusals.within(REFUSED_MS);
      if (refused !== undefined)
        throw notReady('database', `Postgres refuses to record writes (${refused}); is it full?`);
      return reply(c, jsonText({ status: 'ok', ...readyRoles(deps) }));
    },
  });
  router.raw({
    ...base,
    path: '/.well-known/webhook-keys',
    summary: 'List the public keys that verify v1a signatures',
    responses: {
      200: json('One key per endpoint that signs with v1a', schemaOf(webhookKeys)),
      503: unavailable,
    },
    async handle(_, c) {
      return reply(c, jsonText(showKeys({ keys: await publicKeys() })));
    },
  });
}

interface MetricsDeps extends Pick<ApiDeps, 'operations' | 'delivery' | 'refusals'> {
  metrics: Metrics;
}

/** The path `/metrics`, on the port of the API or on its own. */
export function addMetrics(
  router: Router,
  { metrics, operations, delivery, refusals }: MetricsDeps,
): void {
  const scrape = cachedForASecond(async () => {
    // The gauge of the freeze keeps its last value while the database does not respond.
    const answered = await withinDeadline(
      operations.currentFreeze().then((freeze) => {
        metrics.frozen.set(freeze ? 1 : 0);
        return true;
      }),
    );
    const refused = refusals.within(REFUSED_SHOWN_MS) !== undefined;
    metrics.databaseUp.set(answered && !refused ? 1 : 0);
    const report = await delivery.report();
    return metrics.text(report ? [report] : []);
  });
  router.raw({
    ...base,
    path: '/metrics',
    summary: 'Read the metrics of this daemon',
    responses: {
      200: {
        description: 'The text format of Prometheus',
        content: { 'text/plain': { schema: z.string() } },
      },
    },
    async handle(_, c) {
      const headers = { 'content-type': metrics.contentType, 'cache-control': 'no-store' };
      return c.text(await scrape(), 200, headers);
    },
  });
}

/**
 * A daemon that also serves requests stays ready without its process of webhooks, so that apps can
 * go on writing. @throws Failure `not_ready` when it does nothing else
 */
function readyRoles({ roles, delivery }: HealthDeps): Omit<Row<typeof readiness>, 'status'> {
  if (!roles.includes('delivery')) return { roles };
  const isRunning = delivery.isRunning();
  if (!isRunning && !roles.includes('gateway') && !roles.includes('api'))
    throw notReady('delivery', 'the process that sends webhooks is not running');
  return { roles, delivery: isRunning ? 'running' : 'starting' };
}

/** @throws Failure `not_ready` with the check that failed */
async function checkReady(db: ApiDeps['db'], migrations: ApiDeps['migrations']): Promise<void> {
  const mismatch = await withinDeadline(findMismatch(db.sql, migrations));
  if (mismatch === undefined) throw notReady('database', 'the database does not respond');
  if (mismatch !== null) throw notReady('migrations', mismatch);
  const missing = await withinDeadline(findMissingGuards(db));
  if (missing === undefined) throw notReady('database', 'the database does not respond');
  if (missing.length > 0) throw notReady('guards', `missing or disabled: ${missing.join(', ')}`);
}

function notReady(check: string, detail: string): Failure {
  return new Failure('not_ready', detail, { check });
}

/** The result of a check; undefined when it failed or timed out. */
function withinDeadline<T>(check: PromiseLike<T>): Promise<T | undefined> {
  return withDeadline(check, CHECK_DEADLINE_MS, () => undefined).catch(() => undefined);
}

/** The result or error of `load` for a second; requests at the same time share one call. */
function cachedForASecond<T>(load: () => Promise<T>): () => Promise<T> {
  let cached: { result: Promise<T>; until: number } | undefined;
  return () => {
    if (cached && monotonicMs() < cached.until) return cached.result;
    const entry = { result: load(), until: Number.POSITIVE_INFINITY };
    cached = entry;
    const expire = () => {
      entry.until = monotonicMs() + SHARED_MS;
    };
    entry.result.then(expire, expire);
    return entry.result;
  };
}
