/** `/api/replays` and `/api/endpoints/{id}/replay`: events of a time, sent to an endpoint again. */
import { z } from '@hono/zod-openapi';
import { replay, replayFilters, WHICH, WHICH_WORDS } from '../../../resources/delivery/delivery.ts';
import { isEventPattern } from '../../../resources/delivery/events.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { filtersOf, idInput, instantInput } from '../../http/schemas.ts';
import { requireOwn, requireOwner, requireSeen } from './endpoints.ts';

const TYPES_MAX = 50;

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
        description: WHICH.map((which) => `${which}: ${WHICH_WORDS[which]}`).join('; '),
      }),
    dry_run: z.boolean().default(false).openapi({ description: 'Only count' }),
  })
  .openapi('ReplayRequest');

const params = z.object({ id: idInput('rpl') });
const query = z.strictObject({ ...paging, ...filtersOf(replayFilters) });
const base = { tag: 'deliveries' } as const;

export function addReplays(router: Router, { webhooks }: Pick<ApiDeps, 'webhooks'>): void {
  router.answer({
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
    answer: replay,
    ownOnly: true,
    async handle({ params: { id }, body: { dry_run, ...rest } }, caller) {
      await requireOwner(webhooks, id, caller);
      await webhooks.getEndpoint(id);
      const request = { ...rest, endpointId: id };
      return dry_run ? webhooks.countReplay(request) : webhooks.startReplay(request, caller.owner);
    },
  });
  router.listOf({
    ...base,
    scope: 'read',
    path: '/api/replays',
    summary: 'List replays, newest first',
    request: z.object({ query }),
    items: replay,
    parsePosition: idPosition('rpl'),
    ownOnly: true,
    async list({ query: { endpoint_id: endpointId } }, { after: before = '', limit }, caller) {
      await requireOwn(webhooks, endpointId, caller);
      return webhooks.listReplays({ endpointId, before, limit });
    },
    position: ({ id }) => id ?? '',
  });
  router.answer({
    ...base,
    scope: 'read',
    method: 'get',
    path: '/api/replays/{id}',
    summary: 'Read a replay and its progress',
    request: z.object({ params }),
    response: 'The replay',
    answer: replay,
    ownOnly: true,
    async handle({ params: { id } }, caller) {
      const found = await webhooks.getReplay(id);
      await requireSeen(webhooks, found.endpointId, caller);
      return found;
    },
  });
  router.answer({
    ...base,
    scope: 'manage',
    method: 'post',
    path: '/api/replays/{id}/cancel',
    summary: 'End a replay; what it has queued stays',
    request: z.object({ params }),
    response: 'The replay',
    answer: replay,
    ownOnly: true,
    async handle({ params: { id } }, caller) {
      await requireOwner(webhooks, (await webhooks.getReplay(id)).endpointId, caller);
      return webhooks.cancelReplay(id);
    },
  });
}
