/**
 * Our own HTTP API, from one definition with its OpenAPI document: what is not described there
 * answers 404. It reads through the doors of the stages and writes only what they offer; it never
 * speaks to the service, and it knows nothing of how it is served.
 */
import { OpenAPIHono } from '@hono/zod-openapi';
import { KEY_SCHEME } from './access.ts';
import { addDecisions } from './decisions.ts';
import { addDeliveries } from './deliveries.ts';
import type { Api, ApiDoors, ApiEnv } from './doors.ts';
import { addDrifts } from './drifts.ts';
import { addElsewhere } from './elsewhere.ts';
import { addEndpoints } from './endpoints.ts';
import { addEvents } from './events.ts';
import { addFreeze } from './freeze.ts';
import { addHealth } from './health.ts';
import { addKeys } from './keys.ts';
import { addLedger } from './ledger.ts';
import { addOperations } from './operations.ts';
import { answerProblems, refuseInvalid } from './problems.ts';
import { addReports } from './reports.ts';
import { addStatus } from './status.ts';
import { addTokens } from './tokens.ts';
import { addWallets } from './wallets.ts';
import { addWatches } from './watches.ts';

export type { Api, ApiDoors } from './doors.ts';

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
export function makeApi(doors: ApiDoors): Api {
  const app: Api = new OpenAPIHono<ApiEnv>({ defaultHook: refuseInvalid });
  answerProblems(app, doors.log);
  for (const add of RESOURCES) add(app, doors);
  app.openAPIRegistry.registerComponent('securitySchemes', KEY_SCHEME, {
    type: 'http',
    scheme: 'bearer',
    description: 'A key of ours, thk_…; the roles that a path names are the scopes of the key',
  });
  app.doc31('/api/openapi.json', DOCUMENT);
  return app;
}
