/**
 * Tallyhook's own HTTP API and its OpenAPI document, built from one definition per route. It uses
 * only the public modules of the stages and sends no request to the service.
 */
import { OpenAPIHono } from '@hono/zod-openapi';
import { Failure } from '../kernel/errors.ts';
import { ownOriginOf } from '../kernel/http/trusted-proxies.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import type { Role } from '../resources/admin/status.ts';
import type { Api, ApiDeps } from './deps.ts';
import { docsPage } from './docs.ts';
import { answerProblems } from './http/problems.ts';
import { makeRouter, type Router, TAGS } from './http/router.ts';
import { addActivity } from './routes/admin/activity.ts';
import { addHealth, addMetrics } from './routes/admin/health.ts';
import { addKeys } from './routes/admin/keys.ts';
import { addOperating } from './routes/admin/operating.ts';
import { addPortalLinks } from './routes/admin/portal-links.ts';
import { addStatus } from './routes/admin/status.ts';
import { addWatches } from './routes/admin/watches.ts';
import { addConsumers } from './routes/delivery/consumers.ts';
import { addDeliveries } from './routes/delivery/deliveries.ts';
import { addEndpoints } from './routes/delivery/endpoints.ts';
import { addEvents } from './routes/delivery/events.ts';
import { addFigures } from './routes/delivery/figures.ts';
import { addReplays } from './routes/delivery/replays.ts';
import { addDrifts } from './routes/ledger/drifts.ts';
import { addLedger } from './routes/ledger/ledger.ts';
import { addOperators } from './routes/ledger/operators.ts';
import { addPeriods } from './routes/ledger/periods.ts';
import { addReports } from './routes/ledger/reports.ts';
import { addTokens } from './routes/ledger/tokens.ts';
import { addWallets } from './routes/ledger/wallets.ts';
import { addImports } from './routes/operations/imports.ts';
import { addDecisions, addOperations } from './routes/operations/operations.ts';
import { addQuarantine } from './routes/operations/quarantine.ts';
import { addReportedOperations } from './routes/operations/reported.ts';
import { addTimeline } from './routes/operations/timeline.ts';

export type { Api, ApiDeps } from './deps.ts';
export type { Schema } from './docs.ts';
export { type Counts, readCounts } from './routes/admin/status.ts';
export { readReport } from './routes/operations/reported.ts';

/** The document but for its operations. @param basePath of the daemon; may be empty */
const aboutApi = (basePath: string) => ({
  openapi: '3.1.0',
  info: {
    title: 'Tallyhook',
    version: '1',
    description:
      'Amounts and numbers of the service are decimal strings. Instants are RFC 3339 in UTC. ' +
      'Errors are problem documents (RFC 9457) with a stable code.',
    contact: { name: 'Tallyhook', url: `${basePath}/docs` },
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: basePath || '/', description: 'The daemon that serves this document' }],
  tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
  externalDocs: {
    description: 'Writes to the service itself, under /v1: what the gateway adds to them',
    url: `${basePath}/docs#gateway`,
  },
});

/**
 * The API of one daemon. It holds no state of its own, so daemons on one database are equal. A path
 * that belongs to a role of others is refused.
 */
export function makeApi(deps: ApiDeps): Api {
  const { keys, sessions, audit, log, bodyBytesMax, monotonic, roles, trusted, basePath } = deps;
  const { metrics } = deps;
  const app: Api = new OpenAPIHono();
  answerProblems(app, log);
  const router = makeRouter({ app, keys, sessions, audit, log, bodyBytesMax, monotonic, trusted });
  addHealth(router, deps);
  if (metrics) addMetrics(router, { ...deps, metrics });
  if (roles.includes('api')) addRoutes(router, deps);
  else refusePath(app, '/api/*', 'api');
  if (!roles.includes('gateway')) refusePath(app, '/v1/*', 'gateway');
  const about = aboutApi(basePath);
  app.doc31('/api/openapi.json', about);
  if (roles.includes('api')) addDocs(app, deps, about);
  return app;
}

type WithMetrics = ApiDeps & { metrics: Metrics };

/** What a port of its own serves of a daemon: `/metrics` and nothing else. */
export function makeMetricsApi(deps: WithMetrics): Api {
  const app: Api = new OpenAPIHono();
  answerProblems(app, deps.log);
  addMetrics(makeRouter({ ...deps, app }), deps);
  return app;
}

/** The document of all routes, without a daemon. */
export function describeApi() {
  const app: Api = new OpenAPIHono();
  const absent = new Proxy({}, { get: () => absent }) as WithMetrics;
  const router = makeRouter({ ...absent, app });
  addHealth(router, absent);
  addMetrics(router, absent);
  addRoutes(router, absent);
  return app.getOpenAPI31Document(aboutApi(''));
}

/** The document as a page; its style sheet is the console's. */
function addDocs(
  app: Api,
  { trusted, basePath }: ApiDeps,
  about: ReturnType<typeof aboutApi>,
): void {
  app.get('/docs', (c) => {
    c.header('content-security-policy', "default-src 'none'; style-src 'self'; img-src data:");
    c.header('x-content-type-options', 'nosniff');
    const origin = ownOriginOf(trusted, c);
    return c.html(docsPage(app.getOpenAPI31Document(about), { origin, basePath }));
  });
}

function refusePath(app: Api, path: string, role: Role): void {
  app.all(path, () => {
    throw new Failure('role_missing', `send this request to a daemon with the role ${role}`);
  });
}

function addRoutes(router: Router, deps: ApiDeps): void {
  const { db, clock, log, wake, drifts, periods } = deps;
  const {
    operations,
    decisions,
    reportedOperations,
    observer,
    upstream,
    webhooks,
    reports,
    consumers,
  } = deps;
  const { nextEvent, stopping, feedWaitMaxMs, bodyBytesMax, staleAfterMs } = deps;
  addStatus(router, { db, clock, observer, upstream, staleAfterMs });
  addActivity(router, { db, clock });
  addOperating(router, deps);
  addOperations(router, { db });
  addTimeline(router, { db, clock, webhooks });
  addReportedOperations(router, { reportedOperations, clock, log, stopping, bodyBytesMax });
  addImports(router, deps);
  addDecisions(router, { decisions, operations, wake });
  addQuarantine(router, { db, clock, wake });
  addWatches(router, { db, observer, log, wake, stopping, bodyBytesMax });
  addWallets(router, { db, clock, staleAfterMs });
  addTokens(router, { db });
  addLedger(router, { db });
  addDrifts(router, { db, clock, drifts, wake });
  addOperators(router, deps);
  addEvents(router, { db, webhooks, nextEvent, stopping, feedWaitMaxMs });
  addConsumers(router, { consumers, nextEvent, stopping, feedWaitMaxMs });
  addEndpoints(router, { db, clock, webhooks });
  addDeliveries(router, { webhooks });
  addReplays(router, { webhooks });
  addFigures(router, { db, clock, webhooks });
  addReports(router, { reports });
  addPeriods(router, { db, periods, wake });
  addKeys(router, deps);
  addPortalLinks(router, deps);
}
