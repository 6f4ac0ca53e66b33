/**
 * `/api/endpoints`: who is told by webhook. Secrets are answered once, where they are made. What an
 * endpoint may be told to be is judged behind the door; here only its form.
 */
import { createRoute, z } from '@hono/zod-openapi';
import { isId } from '../../../kernel/ids.ts';
import {
  type Endpoint,
  type EndpointInput,
  type Health,
  type NewSecrets,
  ORDERINGS,
  SCHEMES,
} from '../../../webhooks/webhooks.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import {
  idIn,
  instantOut,
  page,
  pageOf,
  paging,
  placeIn,
  textIn,
  timeText,
} from '../../http/fields.ts';
import { bodyRefusals, json, jsonBody, refusals } from '../../http/problems.ts';

const endpoint = z
  .object({
    id: z.string(),
    url: z.string(),
    description: z.string().nullable(),
    event_types: z.array(z.string()),
    ordering: z.enum(ORDERINGS),
    signing: z.array(z.enum(SCHEMES)),
    rate_per_s: z.number().nullable(),
    header_names: z.array(z.string()),
    public_key: z.string().nullable(),
    keys: z.array(
      z.object({ scheme: z.enum(SCHEMES), from: instantOut, until: instantOut.nullable() }),
    ),
    state: z.enum(['enabled', 'disabled']),
    state_reason: z.string().nullable(),
    state_at: instantOut,
    created_by: z.string(),
    created_at: instantOut,
  })
  .openapi('Endpoint');

const detail = endpoint
  .extend({
    health: z.object({
      consecutive_failures: z.int(),
      failing_since: instantOut.nullable(),
      paused_until: instantOut.nullable(),
      last_success_at: instantOut.nullable(),
    }),
  })
  .openapi('EndpointDetail');

const withKeys = endpoint
  .extend({
    secret: z.string().nullable().openapi({ description: 'whsec_…, shown once, when it is new' }),
    new_public_key: z.string().nullable().openapi({ description: 'whpk_…, when it is new' }),
  })
  .openapi('EndpointWithKeys');

const fields = {
  url: textIn(2_048),
  event_types: z.array(textIn(100)).max(100),
  ordering: z.enum(ORDERINGS),
  signing: z.array(z.enum(SCHEMES)).max(2),
  rate_per_s: z.number().nullable(),
  headers: z.record(textIn(100), z.string().max(4_096)),
  description: textIn(500).nullable(),
};
const patch = z.strictObject(fields).partial();
const wish = patch.required({ url: true });
const rotation = z.strictObject({
  overlap_s: z
    .int()
    .min(0)
    .max(2_592_000)
    .optional()
    .openapi({ description: 'How long the present keys go on signing; left out: the setting' }),
});

const one = { params: z.object({ id: idIn('ep') }) };
const base = { tags: ['endpoints'], ...deps('manage') };
const PATH = '/api/endpoints/{id}';

const listRoute = createRoute({
  ...{ ...base, ...deps('read') },
  method: 'get',
  path: '/api/endpoints',
  summary: 'Endpoints, the oldest first',
  request: { query: z.strictObject(paging) },
  responses: { 200: json('A page of endpoints', pageOf(endpoint)), ...refusals },
});
const findRoute = createRoute({
  ...{ ...base, ...deps('read') },
  method: 'get',
  path: PATH,
  summary: 'One endpoint, and how it is doing',
  request: one,
  responses: { 200: json('The endpoint', detail), ...refusals },
});
const makeRoute = createRoute({
  ...base,
  method: 'post',
  path: '/api/endpoints',
  summary: 'Makes an endpoint; it gets every event committed from now on',
  request: { body: jsonBody(wish) },
  responses: { 201: json('The endpoint, its secret shown this once', withKeys), ...bodyRefusals },
});
const changeRoute = createRoute({
  ...base,
  method: 'patch',
  path: PATH,
  summary: 'Changes the fields that are given',
  request: { ...one, body: jsonBody(patch) },
  responses: { 200: json('The endpoint', withKeys), ...bodyRefusals },
});
const deleteRoute = createRoute({
  ...base,
  method: 'delete',
  path: PATH,
  summary: 'Deletes an endpoint; what it has not got is cancelled',
  request: one,
  responses: { 204: { description: 'It is deleted' }, ...refusals },
});
const rotateRoute = createRoute({
  ...base,
  method: 'post',
  path: `${PATH}/rotate` as const,
  summary: 'New keys; the present ones go on signing beside them for a while',
  request: { ...one, body: jsonBody(rotation) },
  responses: {
    200: json('The endpoint, its new secret shown this once', withKeys),
    ...bodyRefusals,
  },
});
const testRoute = createRoute({
  ...base,
  method: 'post',
  path: `${PATH}/test` as const,
  summary: 'Sends an endpoint.test to this endpoint alone',
  request: one,
  responses: {
    202: json('It is on its way', z.object({ event_id: z.string() })),
    ...bodyRefusals,
  },
});
const enableRoute = createRoute({
  ...base,
  method: 'post',
  path: `${PATH}/enable` as const,
  summary: 'Sends to it again, beginning with what waited',
  request: one,
  responses: { 200: json('The endpoint', endpoint), ...refusals },
});
const disableRoute = createRoute({
  ...base,
  method: 'post',
  path: `${PATH}/disable` as const,
  summary: 'Sends nothing more to it until it is enabled',
  request: one,
  responses: { 200: json('The endpoint', endpoint), ...refusals },
});

export function addEndpoints(app: Api, deps: ApiDeps): void {
  const { webhooks } = deps;
  app.openapi(guarded(deps, listRoute), async (c) => {
    const { limit, cursor } = c.req.valid('query');
    const after = placeIn(cursor, (place) => isId('ep', place)) ?? '';
    const data = await webhooks.listEndpoints({ after, limit: limit + 1 });
    return reply(
      c,
      page(data, limit, shown, ({ id }) => id),
      200,
    );
  });
  app.openapi(guarded(deps, findRoute), async (c) => {
    const found = await webhooks.getEndpoint(c.req.valid('param').id);
    return reply(c, { ...shown(found), health: shownHealth(found.health) }, 200);
  });
  app.openapi(guarded(deps, makeRoute), async (c) => {
    const { url, ...rest } = c.req.valid('json');
    const input = { url, ...inputOf(rest) };
    return reply(c, shownNew(await webhooks.createEndpoint(input, c.get('caller').owner)), 201);
  });
  app.openapi(guarded(deps, changeRoute), async (c) => {
    const input = inputOf(c.req.valid('json'));
    return reply(c, shownNew(await webhooks.updateEndpoint(c.req.valid('param').id, input)), 200);
  });
  app.openapi(guarded(deps, deleteRoute), async (c) => {
    await webhooks.deleteEndpoint(c.req.valid('param').id);
    return c.body(null, 204);
  });
  addActions(app, deps);
}

function addActions(app: Api, deps: ApiDeps): void {
  const { webhooks } = deps;
  app.openapi(guarded(deps, rotateRoute), async (c) => {
    const { overlap_s } = c.req.valid('json');
    const overlapMs = overlap_s === undefined ? undefined : overlap_s * 1_000;
    return reply(c, shownNew(await webhooks.rotateSecret(c.req.valid('param').id, overlapMs)), 200);
  });
  app.openapi(guarded(deps, testRoute), async (c) => {
    const { eventId } = await webhooks.sendTest(c.req.valid('param').id);
    return reply(c, { event_id: eventId }, 202);
  });
  app.openapi(guarded(deps, enableRoute), async (c) =>
    reply(c, shown(await webhooks.enable(c.req.valid('param').id)), 200),
  );
  app.openapi(guarded(deps, disableRoute), async (c) =>
    reply(c, shown(await webhooks.disable(c.req.valid('param').id)), 200),
  );
}

/** The fields that were given, by the names of the door. */
function inputOf(given: z.output<typeof patch>): Partial<EndpointInput> {
  const { event_types: eventTypes, rate_per_s: ratePerS, ...rest } = given;
  return {
    ...rest,
    ...(eventTypes === undefined ? {} : { eventTypes }),
    ...(ratePerS === undefined ? {} : { ratePerS }),
  };
}

function shownNew({ endpoint, secret, publicKey }: { endpoint: Endpoint } & NewSecrets) {
  return { ...shown(endpoint), secret, new_public_key: publicKey };
}

function shown(row: Endpoint) {
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    event_types: row.eventTypes,
    ordering: row.ordering,
    signing: row.signing,
    rate_per_s: row.ratePerS,
    header_names: row.headerNames,
    public_key: row.publicKey,
    keys: row.keys.map(({ scheme, from, until }) => ({
      scheme,
      from: timeText(from),
      until: timeText(until),
    })),
    state: row.state,
    state_reason: row.stateReason,
    state_at: timeText(row.stateAt),
    created_by: row.createdBy,
    created_at: timeText(row.createdAt),
  };
}

function shownHealth(health: Health) {
  return {
    consecutive_failures: health.consecutiveFailures,
    failing_since: timeText(health.failingSince),
    paused_until: timeText(health.pausedUntil),
    last_success_at: timeText(health.lastSuccessAt),
  };
}
