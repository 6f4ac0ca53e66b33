/**
 * `/api/endpoints`: receivers of webhooks. A secret is part of one response only. Only the form of
 * a request is checked here; `webhooks` checks its values.
 */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../../kernel/errors.ts';
import { type Json, parseJson } from '../../../kernel/json.ts';
import { type Caller, onlyOwnOf } from '../../../keys/keys.ts';
import { endpointActivity } from '../../../resources/admin/activity.ts';
import {
  changedEndpoint,
  endpoint,
  endpointDetail,
  endpointWithKeys,
  filterTest,
  HELD_CHOICES,
  ORDERINGS,
  SCHEMES,
} from '../../../resources/delivery/endpoint.ts';
import { EVENT_TYPES } from '../../../resources/delivery/events.ts';
import { camelOf } from '../../../resources/fields.ts';
import { type EndpointInput, listAttemptActivity } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { filtersOf, idInput, originOf, textInput } from '../../http/schemas.ts';
import { rangeQuery, stepsOf } from '../admin/activity.ts';
import { authInput, authOf } from './auth.ts';
import { destinationInput, destinationOf } from './destination.ts';

/** Its form is checked by `webhooks`, which names the place of what is wrong. */
const filterInput = z
  .record(z.string(), z.unknown())
  .nullable()
  .openapi({
    type: 'object',
    description:
      'A query over the body of events: paths with plain values or $eq, $ne, $gt, $gte, $lt, ' +
      '$lte, $in, $nin, $exists and $not, joined by $and, $or and $not',
    example: { 'data.addr': '0x00112233445566778899aabbccddeeff00112233' },
  });

const endpointPatch = z
  .strictObject({
    url: textInput(2_048),
    destination: destinationInput,
    event_types: z.array(textInput(100)).max(100),
    ordering: z.enum(ORDERINGS),
    signing: z.array(z.enum(SCHEMES)).max(2),
    filter: filterInput,
    rate_per_s: z.number().nullable(),
    retry_schedule: z
      .array(z.int())
      .max(20)
      .nullable()
      .openapi({ description: 'Seconds before each retry: 1 to 20 steps of 1 to 86400' }),
    timeout_ms: z.int().nullable(),
    max_in_flight: z.int().nullable(),
    headers: z.record(textInput(100), z.string().max(4_096)),
    auth: authInput.nullable(),
    description: textInput(500).nullable(),
  })
  .partial();
const rotation = z.strictObject({
  overlap_s: z
    .int()
    .min(0)
    .max(2_592_000)
    .optional()
    .openapi({ description: 'How long the present keys still sign; default: a day' }),
});

const enabling = z
  .strictObject({
    held: z.enum(HELD_CHOICES).optional().openapi({
      description: 'Held deliveries are sent (release, the default) or cancelled (skip)',
    }),
  })
  .optional();

const filterTesting = z.strictObject({
  filter: filterInput.optional(),
  event_id: idInput('evt').optional().openapi({ description: 'A stored event' }),
  type: z.enum(EVENT_TYPES).optional().openapi({
    description: 'Or the example of this type in /api/event-types',
  }),
});

const params = z.object({ id: idInput('ep') });
const request = z.object({ params });
const base = { tag: 'endpoints', path: '/api/endpoints/{id}', scope: 'manage' } as const;

const query = z.strictObject({ ...paging, ...filtersOf(endpointDetail.filters) });

export function addEndpoints(
  router: Router,
  { db, clock, webhooks }: Pick<ApiDeps, 'db' | 'clock' | 'webhooks'>,
): void {
  router.listOf({
    ...base,
    path: '/api/endpoints',
    scope: 'read',
    summary: 'List endpoints and their health, oldest first',
    request: z.object({ query }),
    items: endpointDetail,
    parsePosition: idPosition('ep'),
    ownOnly: true,
    async list({ query: { failing } }, { after = '', limit }, caller) {
      const owner = onlyOwnOf(caller);
      const rows = await webhooks.listEndpoints({ after, limit, failing, owner });
      return rows.map((row) => visible(row, caller));
    },
    position: ({ id }) => id,
  });
  router.answer({
    ...base,
    method: 'get',
    scope: 'read',
    summary: 'Read an endpoint and its health',
    request,
    response: 'The endpoint',
    answer: endpointDetail,
    ownOnly: true,
    async handle({ params }, caller) {
      await requireSeen(webhooks, params.id, caller);
      return visible(await webhooks.getEndpoint(params.id), caller);
    },
  });
  router.answer({
    ...base,
    method: 'post',
    path: '/api/endpoints',
    summary: 'Create an endpoint',
    description:
      'It receives every event that is committed after it. It has a `url`, or a `destination`: ' +
      'Kafka, NATS JetStream, RabbitMQ or SQS.',
    request: z.object({ body: endpointPatch }),
    status: 201,
    response: 'The endpoint with its secret',
    answer: endpointWithKeys,
    ownOnly: true,
    async handle({ body }, { owner }) {
      const { endpoint, ...keys } = await webhooks.createEndpoint(inputOf(body), owner);
      return { ...endpoint, ...keys };
    },
  });
  router.answer({
    ...base,
    method: 'patch',
    summary: 'Change some fields of an endpoint',
    description:
      'A URL with another origin removes headers and authentication, unless they are given ' +
      'again. A destination is given as a whole, and its kind does not change.',
    request: z.object({ params, body: endpointPatch }),
    response: 'The endpoint',
    answer: changedEndpoint,
    ownOnly: true,
    async handle({ params, body }, caller) {
      await requireOwner(webhooks, params.id, caller);
      const { endpoint, ...more } = await webhooks.updateEndpoint(params.id, inputOf(body));
      return { ...endpoint, ...more };
    },
  });
  router.add({
    ...base,
    method: 'delete',
    summary: 'Delete an endpoint and cancel its pending deliveries',
    request,
    response: 'The endpoint is deleted',
    ownOnly: true,
    async handle({ params }, caller) {
      await requireOwner(webhooks, params.id, caller);
      await webhooks.deleteEndpoint(params.id);
    },
  });
  router.answer({
    ...base,
    method: 'get',
    path: '/api/endpoints/{id}/activity',
    summary: 'Read the attempts of an endpoint over the last hour, day or month',
    scope: 'read',
    request: z.object({ params, query: rangeQuery }),
    response: 'Counts and durations in steps of time',
    answer: endpointActivity,
    ownOnly: true,
    async handle({ params: { id }, query: { range } }, caller) {
      await requireSeen(webhooks, id, caller);
      await webhooks.getEndpoint(id);
      const { stepMs, ...steps } = stepsOf(range, clock.now());
      return { ...steps, attempts: await listAttemptActivity(db, steps.since, stepMs, id) };
    },
  });
  addActions(router, webhooks);
}

function addActions(router: Router, webhooks: ApiDeps['webhooks']): void {
  router.answer({
    ...base,
    method: 'post',
    path: '/api/endpoints/{id}/rotate',
    summary: 'Create new signing keys; the present ones still sign for a while',
    request: z.object({ params, body: rotation }),
    response: 'The endpoint with its new secret',
    answer: endpointWithKeys,
    ownOnly: true,
    async handle({ params, body: { overlap_s } }, caller) {
      await requireOwner(webhooks, params.id, caller);
      const overlapMs = overlap_s === undefined ? undefined : overlap_s * 1_000;
      const { endpoint, ...keys } = await webhooks.rotateSecret(params.id, overlapMs);
      return { ...endpoint, ...keys };
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
    ownOnly: true,
    async handle({ params }, caller) {
      await requireOwner(webhooks, params.id, caller);
      return { event_id: (await webhooks.sendTest(params.id)).eventId };
    },
  });
  router.answer({
    ...base,
    method: 'post',
    path: '/api/endpoints/{id}/filter/test',
    summary: 'Test a filter, by default that of the endpoint, on an event',
    request: z.object({ params, body: filterTesting }),
    response: 'Whether it lets the event pass',
    answer: filterTest,
    ownOnly: true,
    async handle({ params, body: { filter, event_id: eventId, type } }, caller) {
      await requireOwner(webhooks, params.id, caller);
      const test = { filter: filter as Json | undefined, eventId, type };
      const { matches, body } = await webhooks.testFilter(params.id, test);
      return { matches, body: parseJson(body) };
    },
  });
  router.answer({
    ...base,
    method: 'post',
    path: '/api/endpoints/{id}/enable',
    summary: 'Resume deliveries',
    description:
      'The deliveries of the time while it was disabled were held; they are sent, or cancelled ' +
      'with `"held": "skip"`.',
    request: z.object({ params, body: enabling }),
    response: 'The endpoint',
    answer: endpoint,
    ownOnly: true,
    async handle({ params, body }, caller) {
      await requireOwner(webhooks, params.id, caller);
      return webhooks.enable(params.id, body?.held);
    },
  });
  router.answer({
    ...base,
    method: 'post',
    path: '/api/endpoints/{id}/disable',
    summary: 'Hold deliveries until the endpoint is enabled',
    description:
      'What retention removes before that is announced as `delivery.exhausted` with the reason ' +
      '`retention`.',
    request,
    response: 'The endpoint',
    answer: endpoint,
    ownOnly: true,
    async handle({ params }, caller) {
      await requireOwner(webhooks, params.id, caller);
      return webhooks.disable(params.id);
    },
  });
}

/** An admin may change every endpoint, another key those of its owner. */
export async function requireOwner(webhooks: ApiDeps['webhooks'], id: string, caller: Caller) {
  if (caller.scopes.includes('admin')) return;
  const owner = await webhooks.ownerOf(id);
  if (owner === undefined) throw new Failure('not_found');
  if (owner !== caller.owner)
    throw new Failure('forbidden', 'the endpoint belongs to another owner');
}

/** A caller that sees only its own finds no other endpoint. @throws Failure `not_found` */
export async function requireSeen(webhooks: ApiDeps['webhooks'], id: string, caller: Caller) {
  const owner = onlyOwnOf(caller);
  if (owner !== undefined && (await webhooks.ownerOf(id)) !== owner) throw new Failure('not_found');
}

/**
 * A caller that sees only its own names one of its endpoints: what is of one endpoint is found by
 * an index, what is of an owner is not.
 * @throws Failure `invalid_request`, `not_found`
 */
export async function requireOwn(
  webhooks: ApiDeps['webhooks'],
  endpointId: string | undefined,
  caller: Caller,
): Promise<void> {
  if (endpointId !== undefined) await requireSeen(webhooks, endpointId, caller);
  else if (onlyOwnOf(caller) !== undefined)
    throw new Failure('invalid_request', 'endpoint_id: name one of your endpoints');
}

/**
 * Those of the endpoints of which the caller may see what is the owner's; of a deleted endpoint
 * only an admin may.
 */
export async function ownOrAdmin(
  webhooks: ApiDeps['webhooks'],
  ids: string[],
  { scopes, owner }: Caller,
): Promise<ReadonlySet<string>> {
  if (scopes.includes('admin') || ids.length === 0) return new Set(ids);
  const owners = await webhooks.ownersOf(ids);
  return new Set(ids.filter((id) => owners.get(id) === owner));
}

/** The path and query of a receiver's URL may be a token, so other owners see its origin only. */
function visible<E extends { url: string; createdBy: string }>(
  row: E,
  { owner, scopes }: Caller,
): E {
  const isVisible = scopes.includes('admin') || row.createdBy === owner;
  return { ...row, url: isVisible ? row.url : originOf(row.url) };
}

/** The members that are given, named as in our code. */
function inputOf(body: z.output<typeof endpointPatch>): Partial<EndpointInput> {
  const { destination, auth, ...rest } = body;
  const given = Object.entries(rest).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(given.map(([name, value]) => [camelOf(name), value])),
    ...(destination === undefined ? {} : { destination: destinationOf(destination) }),
    ...(auth === undefined ? {} : { auth: auth && authOf(auth) }),
  };
}
