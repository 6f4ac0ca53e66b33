/**
 * Our own HTTP API, from one definition with its OpenAPI document: what is not described there
 * answers 404. It reads through the doors of the stages and writes only what they offer; it never
 * speaks to the service, and it knows nothing of how it is served.
 */
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Api, ApiDeps, ApiEnv } from './deps.ts';
import { KEY_SCHEME } from './http/auth.ts';
import { answerProblems, refuseInvalid } from './http/problems.ts';
import { addFreeze } from './routes/admin/freeze.ts';
import { addHealth } from './routes/admin/health.ts';
import { addKeys } from './routes/admin/keys.ts';
import { addStatus } from './routes/admin/status.ts';
import { addWatches } from './routes/admin/watches.ts';
import { addDeliveries } from './routes/delivery/deliveries.ts';
import { addEndpoints } from './routes/delivery/endpoints.ts';
import { addEvents } from './routes/delivery/events.ts';
import { addDrifts } from './routes/ledger/drifts.ts';
import { addLedger } from './routes/ledger/ledger.ts';
import { addReports } from './routes/ledger/reports.ts';
import { addTokens } from './routes/ledger/tokens.ts';
import { addWallets } from './routes/ledger/wallets.ts';
import { addDecisions } from './routes/operations/decisions.ts';
import { addOperations } from './routes/operations/operations.ts';
import { addElsewhere } from './routes/operations/reported.ts';

export type { Api, ApiDeps } from './deps.ts';

const RESOURCES = [
  addHealth,
  addStatus,
  addFreeze,
  addOperations,
  addElsewhere,
  addDecisions,
  addWatches,
  addWallets,
  addTokens,
  addLedger,
  addDrifts,
  addEvents,
  addEndpoints,
  addDeliveries,
  addReports,
  addKeys,
];

const DOCUMENT = {
  openapi: '3.1.0',
  info: {
    title: 'Tallyhook',
    version: '1',
    description:
      'Amounts and numbers of the service are decimal strings, instants RFC 3339 UTC. ' +
      'Errors are problem documents (RFC 9457) with a stable code.',
  },
};

/** The API over these doors: an app with a `fetch`. */
export function makeApi(deps: ApiDeps): Api {
  const app: Api = new OpenAPIHono<ApiEnv>({ defaultHook: refuseInvalid });
  answerProblems(app, deps.log);
  for (const add of RESOURCES) add(app, deps);
  app.openAPIRegistry.registerComponent('securitySchemes', KEY_SCHEME, {
    type: 'http',
    scheme: 'bearer',
    description: 'A key of ours, thk_…; the roles that a path names are the scopes of the key',
  });
  app.doc31('/api/openapi.json', DOCUMENT);
  return app;
}
