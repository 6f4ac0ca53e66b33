/**
 * `/api/endpoints`: receivers of webhooks. A secret is part of one response only. Only the form of
 * a request is checked here; `webhooks` checks its values.
 */

import { z } from '@hono/zod-openapi';
import type { Caller } from '../../../keys/keys.ts';
import {
  type Endpoint,
  type EndpointInput,
  HELD_CHOICES,
  type Health,
  type NewSecrets,
  ORDERINGS,
  SCHEMES,
} from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import { idInput, instant, instantText, originOf, textInput } from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const endpoint = z
  .object({
    id: z.string(),
    url: z.string().openapi({ description: 'Only its origin for a key of another owner' }),
    description: z.string().nullable(),
    event_types: z.array(z.string()),
    ordering: z.enum(ORDERINGS),
    signing: z.array(z.enum(SCHEMES)),
    rate_per_s: z.number().nullable(),
    header_names: z.array(z.string()),
    public_key: z.string().nullable(),
    keys: z.array(z.object({ scheme: z.enum(SCHEMES), from: instant, until: instant.nullable() })),
    state: z.enum(['enabled', 'disabled']),
    state_reason: z.string().nullable(),
    state_at: instant,
    created_by: z.string(),
    created_at: instant,
  })
  .openapi('Endpoint');

const detail = endpoint
  .extend({
    health: z.object({
      consecutive_failures: z.int(),
      failing_since: instant.nullable(),
      paused_until: instant.nullable(),
      last_success_at: instant.nullable(),
    }),
  })
  .openapi('EndpointDetail');

const withSecrets = endpoint
  .extend({
    secret: z
      .string()
      .nullable()
      .openapi({ description: 'whsec_…; only in the response that creates it' }),
    new_public_key: z.string().nullable().openapi({ description: 'whpk_…, if it is new' }),
  })
  .openapi('EndpointWithKeys');

const changed = withSecrets
  .extend({
    removed_headers: z
      .array(z.string())
      .openapi({ description: 'Names of the headers that the change of origin removed' }),
  })
  .openapi('ChangedEndpoint');

const endpointPatch = z
  .strictObject({
    url: textInput(2_048),
    event_types: z.array(textInput(100)).max(100),
    ordering: z.enum(ORDERINGS),
    signing: z.array(z.enum(SCHEMES)).max(2),
    rate_per_s: z.number().nullable(),
    headers: z.record(textInput(100), z.string().max(4_096)),
    description: textInput(500).nullable(),
  })
  .partial();
const rotation = z.strictObject({
  overlap_s: z
    .int()
    .min(0)
    .max(2_592_000)
    .optional()
    .openapi({ description: 'How long the present keys still sign; default: the setting' }),
});

const enabling = z
  .strictObject({
    held: z.enum(HELD_CHOICES).optional().openapi({
      description: 'Held deliveries are sent (release, the default) or cancelled (skip)',
    }),
  })
  .optional();

const params = z.object({ id: idInput('ep') });
const request = z.object({ params });
const base = { tag: 'endpoints', path: '/api/endpoints/{id}', scope: 'manage' as const };

const filters = z.strictObject({
  ...paging,
  failing: z
    .literal('true')
    .optional()
    .openapi({ description: 'Only those that fail, or that failures disabled' }),
});

export function addEndpoints(router: Router, { webhooks }: Pick<ApiDeps, 'webhooks'>): void {
  router.list({
    ...base,
    path: '/api/endpoints',
    scope: 'read',
    summary: 'List endpoints and their health, oldest first',
    request: z.object({ query: filters }),
    item: detail,
    parsePosition: idPosition('ep'),
    list: async ({ query }, { after = '', limit }) =>
      webhooks.listEndpoints({ after, limit, failing: query.failing === 'true' }),
    output: detailOutput,
    position: ({ id }) => id,
  });
  router.add({
    ...base,
    method: 'get',
    scope: 'read',
    summary: 'Read an endpoint and its health',
    request,
    response: 'The endpoint',
    schema: detail,
    async handle({ params }, caller) {
      return detailOutput(await webhooks.getEndpoint(params.id), caller);
    },
  });
  router.add({
    ...base,
    method: 'post',
    path: '/api/endpoints',
    summary: 'Create an endpoint',
    description: 'It receives every event that is committed after it.',
    request: z.object({ body: endpointPatch.required({ url: true }) }),
    status: 201,
    response: 'The endpoint with its secret',
    schema: withSecrets,
    async handle({ body: { url, ...rest } }, { owner }) {
      return withSecretsOutput(await webhooks.createEndpoint({ url, ...inputOf(rest) }, owner));
    },
  });
  router.add({
    ...base,
    method: 'patch',
    summary: 'Change some fields of an endpoint',
    description: 'A URL with another origin removes the headers, unless they are given again.',
    request: z.object({ params, body: endpointPatch }),
    response: 'The endpoint',
    schema: changed,
    async handle({ params, body }, caller) {
      await requireOwner(webhooks, params.id, caller);
      const result = await webhooks.updateEndpoint(params.id, inputOf(body));
      return { ...withSecretsOutput(result), removed_headers: result.removedHeaders };
    },
  });
  router.add({
    ...base,
    method: 'delete',
    summary: 'Delete an endpoint and cancel its pending deliveries',
    request,
    response: 'The endpoint is deleted',
    async handle({ params }, caller) {
      await requireOwner(webhooks, params.id, caller);
      await webhooks.deleteEndpoint(params.id);
    },
  });
  addActions(router, webhooks);
}

function addActions(router: Router, webhooks: ApiDeps['webhooks']): void {
  router.add({
    ...base,
    method: 'post',
    path: '/api/endpoints/{id}/rotate',
    summary: 'Create new signing keys; the present ones still sign for a while',
    request: z.object({ params, body: rotation }),
    response: 'The endpoint with its new secret',
    schema: withSecrets,
    async handle({ params, body: { overlap_s } }, caller) {
      await requireOwner(webhooks, params.id, caller);
      const overlapMs = overlap_s === undefined ? undefined : overlap_s * 1_000;
      return withSecretsOutput(await webhooks.rotateSecret(params.id, overlapMs));
    },
  });
  router.add({
    ...base,
    method: 'post',
    path: '/api/endpoints/{id}/test',
    summary: 'Send an endpoint.test event to this endpoint only',
    request,
    status: 202,
    response: 'The id of the event',
    schema: z.object({ event_id: z.string() }),
    async handle({ params }, caller) {
      await requireOwner(webhooks, params.id, caller);
      return { event_id: (await webhooks.sendTest(params.id)).eventId };
    },
  });
  router.add({
    ...base,
    method: 'post',
    path: '/api/endpoints/{id}/enable',
    summary: 'Resume deliveries',
    description:
      'The deliveries of the time while it was disabled were held; they are sent, or cancelled ' +
      'with `"held": "skip"`.',
    request: z.object({ params, body: enabling }),
    response: 'The endpoint',
    schema: endpoint,
    async handle({ params, body }, caller) {
      await requireOwner(webhooks, params.id, caller);
      return endpointOutput(await webhooks.enable(params.id, body?.held));
    },
  });
  router.add({
    ...base,
    method: 'post',
    path: '/api/endpoints/{id}/disable',
    summary: 'Hold deliveries until the endpoint is enabled',
    description:
      'What retention removes before that is announced as `delivery.exhausted` with the reason ' +
      '`retention`.',
    request,
    response: 'The endpoint',
    schema: endpoint,
    async handle({ params }, caller) {
      await requireOwner(webhooks, params.id, caller);
      return endpointOutput(await webhooks.disable(params.id));
    },
  });
}

/** An admin may change every endpoint, another key those of its owner. */
export async function requireOwner(webhooks: ApiDeps['webhooks'], id: string, caller: Caller) {
  if (!caller.scopes.includes('admin')) await webhooks.requireOwner(id, caller.owner);
}

/** Whether the caller may see what is the owner's; of a deleted endpoint only an admin may. */
export async function isOwnOrAdmin(webhooks: ApiDeps['webhooks'], id: string, caller: Caller) {
  return caller.scopes.includes('admin') || (await webhooks.isOwner(id, caller.owner));
}

/** The path and query of a receiver's URL may be a token, so other owners see its origin only. */
function visibleOutput(row: Endpoint, { owner, scopes }: Caller) {
  const isVisible = scopes.includes('admin') || row.createdBy === owner;
  return { ...endpointOutput(row), url: isVisible ? row.url : originOf(row.url) };
}

function detailOutput(row: Endpoint & { health: Health }, caller: Caller) {
  return { ...visibleOutput(row, caller), health: healthOutput(row.health) };
}

function inputOf(body: z.output<typeof endpointPatch>): Partial<EndpointInput> {
  const { event_types: eventTypes, rate_per_s: ratePerS, ...rest } = body;
  return {
    ...rest,
    ...(eventTypes === undefined ? {} : { eventTypes }),
    ...(ratePerS === undefined ? {} : { ratePerS }),
  };
}

function withSecretsOutput({ endpoint, secret, publicKey }: { endpoint: Endpoint } & NewSecrets) {
  return { ...endpointOutput(endpoint), secret, new_public_key: publicKey };
}

function endpointOutput(row: Endpoint) {
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
      from: instantText(from),
      until: instantText(until),
    })),
    state: row.state,
    state_reason: row.stateReason,
    state_at: instantText(row.stateAt),
    created_by: row.createdBy,
    created_at: instantText(row.createdAt),
  };
}

function healthOutput(health: Health) {
  return {
    consecutive_failures: health.consecutiveFailures,
    failing_since: instantText(health.failingSince),
    paused_until: instantText(health.pausedUntil),
    last_success_at: instantText(health.lastSuccessAt),
  };
}
