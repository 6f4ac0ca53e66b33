/** `/api/replays` and `/api/endpoints/{id}/replay`: events of a time, sent to an endpoint again. */
import { z } from '@hono/zod-openapi';
import { isEventPattern } from '../../../resources/events.ts';
import { COUNTED_MAX, type Replay, WHICH } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import { idInput, instant, instantInput, instantText } from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { requireOwner } from './endpoints.ts';

const TYPES_MAX = 50;

const replay = z
  .object({
    id: z.string().nullable().openapi({ description: 'Null for a dry run' }),
    endpoint_id: z.string(),
    since: instant,
    until: instant,
    types: z.array(z.string()),
    which: z.enum(WHICH),
    state: z.enum(['running', 'done', 'cancelled', 'dry_run']),
    examined: z.int().openapi({
      description: `Events of all types; of a dry run ${COUNTED_MAX} at most`,
    }),
    queued: z.int().openapi({ description: 'Deliveries' }),
    reached: instant.nullable().openapi({ description: 'Events before it were examined' }),
    created_by: z.string().nullable(),
    created_at: instant.nullable(),
    finished_at: instant.nullable(),
  })
  .openapi('Replay');

const body = z
  .strictObject({
    since: instantInput.openapi({ description: 'Events recorded from then on' }),
    until: instantInput.optional().openapi({ description: 'And before; by default now' }),
    types: z
      .array(z.string())
      .max(TYPES_MAX)
      .refine((types) => types.every(isEventPattern), 'must be event types or group.*')
      .default([])
      .openapi({ description: 'By default all that the endpoint subscribes to' }),
    which: z
      .enum(WHICH)
      .default('failed')
      .openapi({
        description:
          'failed: exhausted and cancelled deliveries; missing: events without a delivery, ' +
          'such as those from before the endpoint; all: both, and what was delivered',
      }),
    dry_run: z.boolean().default(false).openapi({ description: 'Only count' }),
  })
  .openapi('ReplayRequest');

const params = z.object({ id: idInput('rpl') });
const base = { tag: 'deliveries' };

export function addReplays(router: Router, { webhooks }: Pick<ApiDeps, 'webhooks'>): void {
  router.add({
    ...base,
    scope: 'manage',
    method: 'post',
    path: '/api/endpoints/{id}/replay',
    summary: 'Send the events of a time to one of your endpoints again',
    description:
      'It runs in the background, one per endpoint, and waits while the endpoint is disabled or ' +
      'has more than 10,000 pending deliveries. Ids of events and deliveries stay the same.',
    request: z.object({ params: z.object({ id: idInput('ep') }), body }),
    status: 202,
    response: 'The replay, or what it would do',
    schema: replay,
    async handle({ params: { id }, body: { types, dry_run, ...rest } }, caller) {
      await requireOwner(webhooks, id, caller);
      await webhooks.getEndpoint(id);
      const request = { ...rest, endpointId: id, eventTypes: types };
      if (!dry_run) return replayOutput(await webhooks.startReplay(request, caller.owner));
      return replayOutput({ ...request, ...(await webhooks.countReplay(request)) });
    },
  });
  router.list({
    ...base,
    scope: 'read',
    path: '/api/replays',
    summary: 'List replays, newest first',
    request: z.object({ query: z.strictObject(paging) }),
    item: replay,
    parsePosition: idPosition('rpl'),
    list: async (_, { after: before = '', limit }) => webhooks.listReplays({ before, limit }),
    output: (row: Replay) => replayOutput(row),
    position: ({ id }) => id,
  });
  router.add({
    ...base,
    scope: 'read',
    method: 'get',
    path: '/api/replays/{id}',
    summary: 'Read a replay and its progress',
    request: z.object({ params }),
    response: 'The replay',
    schema: replay,
    handle: async ({ params: { id } }) => replayOutput(await webhooks.getReplay(id)),
  });
  router.add({
    ...base,
    scope: 'manage',
    method: 'post',
    path: '/api/replays/{id}/cancel',
    summary: 'End a replay; what it has queued stays',
    request: z.object({ params }),
    response: 'The replay',
    schema: replay,
    async handle({ params: { id } }, caller) {
      await requireOwner(webhooks, (await webhooks.getReplay(id)).endpointId, caller);
      return replayOutput(await webhooks.cancelReplay(id));
    },
  });
}

type Counted = Pick<Replay, 'endpointId' | 'since' | 'until' | 'eventTypes' | 'which'> &
  Pick<Replay, 'examined' | 'queued'>;

/** @param row of a dry run only what was counted */
function replayOutput(row: Counted & Partial<Replay>) {
  return {
    id: row.id ?? null,
    endpoint_id: row.endpointId,
    since: instantText(row.since),
    until: instantText(row.until),
    types: row.eventTypes,
    which: row.which,
    state: row.state ?? ('dry_run' as const),
    examined: row.examined,
    queued: row.queued,
    reached: instantText(row.positionAt ?? null),
    created_by: row.createdBy ?? null,
    created_at: instantText(row.createdAt ?? null),
    finished_at: instantText(row.finishedAt ?? null),
  };
}
