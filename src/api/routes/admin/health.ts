/**
 * Whether this daemon lives and may be sent to, and its measurements. Open without a key, so
 * nothing here says more than that; the database is asked with a deadline.
 */
import { createRoute, z } from '@hono/zod-openapi';
import { findMissingGuards } from '../../../db/guards.ts';
import { isMigrated } from '../../../db/migrate.ts';
import { withDeadline } from '../../../kernel/clock.ts';
import { Failure } from '../../../kernel/errors.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { reply } from '../../http/auth.ts';
import { json, refusals } from '../../http/problems.ts';

const state = z.object({ status: z.literal('ok') }).openapi('Health');
const CHECK_DEADLINE_MS = 3_000;

const healthRoute = createRoute({
  method: 'get',
  path: '/healthz',
  tags: ['operating'],
  summary: 'The process answers',
  responses: { 200: json('It does', state) },
});

const readyRoute = createRoute({
  method: 'get',
  path: '/readyz',
  tags: ['operating'],
  summary: 'The database answers, has every migration, and its guards stand',
  responses: { 200: json('Ready', state), 503: refusals[503] },
});

const metricsRoute = createRoute({
  method: 'get',
  path: '/metrics',
  tags: ['operating'],
  summary: 'Measurements for Prometheus',
  responses: {
    200: {
      description: 'The text format of Prometheus',
      content: { 'text/plain': { schema: z.string() } },
    },
  },
});

const keysRoute = createRoute({
  method: 'get',
  path: '/.well-known/webhook-keys',
  tags: ['operating'],
  summary: 'The public keys that verify v1a signatures, one for each endpoint that has one',
  responses: {
    200: json(
      'The keys',
      z.object({ keys: z.array(z.object({ endpoint_id: z.string(), public_key: z.string() })) }),
    ),
    503: refusals[503],
  },
});

export function addHealth(app: Api, deps: ApiDeps): void {
  app.openapi(healthRoute, (c) => reply(c, { status: 'ok' as const }, 200));
  app.openapi(readyRoute, async (c) => {
    await insistOnReady(deps);
    return reply(c, { status: 'ok' as const }, 200);
  });
  app.openapi(keysRoute, async (c) => {
    const found = await deps.webhooks.publicKeys();
    const keys = found.map(({ endpointId, publicKey }) => ({
      endpoint_id: endpointId,
      public_key: publicKey,
    }));
    return reply(c, { keys }, 200);
  });
  app.openapi(metricsRoute, async (c) => {
    const { operations, metrics } = deps;
    // Unknown while the database is away: then the last value stands.
    await withinDeadline(
      operations.currentFreeze().then((freeze) => metrics.frozen.set(freeze === undefined ? 0 : 1)),
    );
    const headers = { 'content-type': deps.metrics.contentType, 'cache-control': 'no-store' };
    return c.text(await deps.metrics.text(), 200, headers);
  });
}

/** @throws Failure `not_ready` naming the check that failed */
async function insistOnReady({ db, migrations }: ApiDeps): Promise<void> {
  const migrated = await withinDeadline(isMigrated(db.sql, migrations));
  if (migrated === undefined) throw notReady('database', 'the database does not answer');
  if (!migrated) throw notReady('migrations', 'the database lacks migrations of this program');
  const missing = await withinDeadline(findMissingGuards(db));
  if (missing === undefined) throw notReady('database', 'the database does not answer');
  if (missing.length > 0) throw notReady('guards', `missing or disabled: ${missing.join(', ')}`);
}

function notReady(check: string, detail: string): Failure {
  return new Failure('not_ready', detail, { check });
}

/** The result of a check; undefined when it failed or took too long. */
function withinDeadline<T>(check: PromiseLike<T>): Promise<T | undefined> {
  return withDeadline(check, CHECK_DEADLINE_MS, () => undefined).catch(() => undefined);
}
