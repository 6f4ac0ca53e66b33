/** `/api/deliveries`: what was told to whom, every attempt of it, and once more on request. */
import { createRoute, z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import { isId } from '../../../kernel/ids.ts';
import { EVENTS, type EventType } from '../../../outbox/events.ts';
import type { Attempt, Delivery } from '../../../webhooks/webhooks.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import {
  anyJson,
  asJson,
  digits,
  idIn,
  instantIn,
  instantOut,
  page,
  pageOf,
  paging,
  placeIn,
  timeText,
} from '../../http/fields.ts';
import { bodyRefusals, json, refusals } from '../../http/problems.ts';

const STATES = ['pending', 'sending', 'delivered', 'exhausted', 'cancelled'] as const;
const TYPES = Object.keys(EVENTS) as [EventType, ...EventType[]];

const delivery = z
  .object({
    id: z.string(),
    endpoint_id: z.string(),
    event_id: z.string(),
    event_type: z.string(),
    subject: z.string(),
    subject_seq: digits,
    state: z.string(),
    due_at: instantOut.nullable().openapi({ description: 'While it is pending' }),
    attempts: z.int(),
    created_at: instantOut,
    finished_at: instantOut.nullable(),
  })
  .openapi('Delivery');

const attempt = z
  .object({
    n: z.int(),
    at: instantOut,
    duration_ms: z.int(),
    result: z.string(),
    status: z.int().nullable(),
    error: z.string().nullable().openapi({ description: 'Why there was no status' }),
    response_body: z.string().nullable().openapi({ description: 'Its beginning' }),
    response_headers: anyJson,
  })
  .openapi('Attempt');

const one = { params: z.object({ id: idIn('dlv') }) };
const base = { tags: ['deliveries'], ...deps('read') };

const listRoute = createRoute({
  ...base,
  method: 'get',
  path: '/api/deliveries',
  summary: 'Deliveries, the newest first',
  request: {
    query: z.strictObject({
      ...paging,
      endpoint_id: idIn('ep').optional(),
      event_id: idIn('evt').optional(),
      event_type: z.enum(TYPES).optional(),
      state: z.enum(STATES).optional(),
      since: instantIn.optional(),
      until: instantIn.optional(),
    }),
  },
  responses: { 200: json('A page of deliveries', pageOf(delivery)), ...refusals },
});
const findRoute = createRoute({
  ...base,
  method: 'get',
  path: '/api/deliveries/{id}',
  summary: 'One delivery',
  request: one,
  responses: { 200: json('The delivery', delivery), ...refusals },
});
const attemptsRoute = createRoute({
  ...base,
  method: 'get',
  path: '/api/deliveries/{id}/attempts',
  summary: 'Its first 200 attempts, in order',
  request: one,
  responses: { 200: json('The attempts', pageOf(attempt)), ...refusals },
});
const retryRoute = createRoute({
  ...{ ...base, ...deps('manage') },
  method: 'post',
  path: '/api/deliveries/{id}/retry',
  summary: 'Sends it once more, now, whatever became of it',
  request: one,
  responses: { 202: json('The delivery', delivery), ...bodyRefusals },
});

export function addDeliveries(app: Api, deps: ApiDeps): void {
  const { webhooks } = deps;
  app.openapi(guarded(deps, listRoute), async (c) => {
    const { limit, cursor, ...q } = c.req.valid('query');
    const before = placeIn(cursor, (place) => isId('dlv', place)) ?? '';
    const filter = {
      ...(q.endpoint_id === undefined ? {} : { endpointId: q.endpoint_id }),
      ...(q.event_id === undefined ? {} : { eventId: q.event_id }),
      ...(q.event_type === undefined ? {} : { eventType: q.event_type }),
      ...(q.state === undefined ? {} : { state: q.state }),
      ...(q.since === undefined ? {} : { since: q.since }),
      ...(q.until === undefined ? {} : { until: q.until }),
    };
    const data = await webhooks.listDeliveries(filter, { before, limit: limit + 1 });
    return reply(
      c,
      page(data, limit, shown, ({ id }) => id),
      200,
    );
  });
  app.openapi(guarded(deps, findRoute), async (c) =>
    reply(c, shown(await webhooks.getDelivery(c.req.valid('param').id)), 200),
  );
  app.openapi(guarded(deps, attemptsRoute), async (c) => {
    const attempts = await webhooks.listAttempts(c.req.valid('param').id);
    return reply(c, { data: attempts.map(shownAttempt), next_cursor: null }, 200);
  });
  app.openapi(guarded(deps, retryRoute), async (c) =>
    reply(c, shown(await webhooks.retryDelivery(c.req.valid('param').id)), 202),
  );
}

function shown(row: Delivery) {
  return {
    id: row.id,
    endpoint_id: row.endpointId,
    event_id: row.eventId,
    event_type: row.eventType,
    subject: row.subject,
    subject_seq: decimalText(row.subjectSeq),
    state: row.state,
    due_at: row.state === 'pending' ? timeText(row.dueAt) : null,
    attempts: row.attempts,
    created_at: timeText(row.createdAt),
    finished_at: timeText(row.finishedAt),
  };
}

function shownAttempt(row: Attempt) {
  return {
    n: row.n,
    at: timeText(row.at),
    duration_ms: row.durationMs,
    result: row.result,
    status: row.status,
    error: row.error,
    response_body: row.responseBody,
    response_headers: asJson(row.responseHeaders),
  };
}
