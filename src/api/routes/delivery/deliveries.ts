/** `/api/deliveries`: deliveries of events to endpoints, their attempts, and retries. */
import { z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import { EVENT_TYPES } from '../../../resources/events.ts';
import type { Attempt, Delivery } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  anyJson,
  decimal,
  idInput,
  instant,
  instantInput,
  instantText,
} from '../../http/fields.ts';
import { idPosition, pageOf, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { isOwnOrAdmin, requireOwner } from './endpoints.ts';

const STATES = ['pending', 'held', 'sending', 'delivered', 'exhausted', 'cancelled'] as const;

const delivery = z
  .object({
    id: z.string(),
    endpoint_id: z.string(),
    event_id: z.string(),
    event_type: z.string(),
    subject: z.string(),
    subject_seq: decimal,
    state: z.string().openapi({
      description: 'One of the states of the query; held: until its endpoint is enabled',
    }),
    due_at: instant.nullable().openapi({ description: 'Time of the next attempt while pending' }),
    attempts: z.int(),
    created_at: instant,
    finished_at: instant.nullable(),
  })
  .openapi('Delivery');

const detail = delivery
  .extend({
    request_body: z.string().nullable().openapi({
      description: 'The exact body of every attempt; null once retention has removed the event',
    }),
  })
  .openapi('DeliveryDetail');

const attempt = z
  .object({
    n: z.int(),
    at: instant,
    duration_ms: z.int(),
    result: z.string(),
    status: z.int().nullable(),
    error: z.string().nullable().openapi({ description: 'Why there is no HTTP status' }),
    response_body: z
      .string()
      .nullable()
      .openapi({ description: 'Beginning of the body, without the secrets of the endpoint' }),
    response_headers: anyJson,
  })
  .openapi('Attempt');

const request = z.object({ params: z.object({ id: idInput('dlv') }) });
const base = { tag: 'deliveries', scope: 'read' as const };

export function addDeliveries(router: Router, { webhooks }: Pick<ApiDeps, 'webhooks'>): void {
  router.list({
    ...base,
    path: '/api/deliveries',
    summary: 'List deliveries, newest first',
    request: z.object({
      query: z.strictObject({
        ...paging,
        endpoint_id: idInput('ep').optional(),
        event_id: idInput('evt').optional(),
        event_type: z.enum(EVENT_TYPES).optional(),
        state: z.enum(STATES).optional(),
        since: instantInput.optional(),
        until: instantInput.optional(),
      }),
    }),
    item: delivery,
    parsePosition: idPosition('dlv'),
    async list({ query }, { after: before = '', limit }) {
      const { endpoint_id: endpointId, event_id: eventId, event_type: eventType } = query;
      const { state, since, until } = query;
      const filter = { endpointId, eventId, eventType, state, since, until };
      return webhooks.listDeliveries(filter, { before, limit });
    },
    output: deliveryOutput,
    position: ({ id }) => id,
  });
  router.add({
    ...base,
    method: 'get',
    path: '/api/deliveries/{id}',
    summary: 'Read a delivery',
    request,
    response: 'The delivery',
    schema: detail,
    async handle({ params }) {
      const found = await webhooks.getDelivery(params.id);
      return { ...deliveryOutput(found), request_body: found.body };
    },
  });
  router.add({
    ...base,
    method: 'get',
    path: '/api/deliveries/{id}/attempts',
    summary: 'List the first 200 attempts of a delivery, oldest first',
    description:
      'What the receiver answered is shown to the owner of the endpoint and to admin keys; ' +
      'others see times and statuses, and null for the rest.',
    request,
    response: 'The attempts',
    schema: pageOf(attempt),
    async handle({ params }, caller) {
      const { endpointId } = await webhooks.getDelivery(params.id);
      const isVisible = await isOwnOrAdmin(webhooks, endpointId, caller);
      const attempts = await webhooks.listAttempts(params.id);
      return {
        data: attempts.map((row) => attemptOutput(isVisible ? row : withoutAnswer(row))),
        next_cursor: null,
      };
    },
  });
  addActions(router, webhooks);
}

function addActions(router: Router, webhooks: ApiDeps['webhooks']): void {
  router.add({
    ...base,
    scope: 'manage',
    method: 'post',
    path: '/api/deliveries/{id}/retry',
    summary: 'Send a delivery to one of your endpoints again, now, in any state',
    request,
    status: 202,
    response: 'The delivery',
    schema: delivery,
    async handle({ params }, caller) {
      const { endpointId } = await webhooks.getDelivery(params.id);
      await requireOwner(webhooks, endpointId, caller);
      return deliveryOutput(await webhooks.retryDelivery(params.id));
    },
  });
  router.add({
    ...base,
    scope: 'manage',
    method: 'post',
    path: '/api/deliveries/{id}/cancel',
    summary: 'Give up a delivery to one of your endpoints whose every attempt failed',
    description: 'The status counts it no longer. A retry or a replay still sends it.',
    request,
    response: 'The delivery',
    schema: delivery,
    async handle({ params }, caller) {
      const { endpointId } = await webhooks.getDelivery(params.id);
      await requireOwner(webhooks, endpointId, caller);
      return deliveryOutput(await webhooks.cancelDelivery(params.id));
    },
  });
}

function deliveryOutput(row: Delivery) {
  return {
    id: row.id,
    endpoint_id: row.endpointId,
    event_id: row.eventId,
    event_type: row.eventType,
    subject: row.subject,
    subject_seq: decimalText(row.subjectSeq),
    state: row.state,
    due_at: row.state === 'pending' ? instantText(row.dueAt) : null,
    attempts: row.attempts,
    created_at: instantText(row.createdAt),
    finished_at: instantText(row.finishedAt),
  };
}

/** A receiver's answer may name its own secrets. */
function withoutAnswer(row: Attempt): Attempt {
  return { ...row, error: null, responseBody: null, responseHeaders: null };
}

function attemptOutput(row: Attempt) {
  return {
    n: row.n,
    at: instantText(row.at),
    duration_ms: row.durationMs,
    result: row.result,
    status: row.status,
    error: row.error,
    response_body: row.responseBody,
    response_headers: row.responseHeaders,
  };
}
