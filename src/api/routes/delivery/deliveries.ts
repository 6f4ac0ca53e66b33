/** `/api/deliveries`: deliveries of events to endpoints, their attempts, and retries. */
import { z } from '@hono/zod-openapi';
import type { Caller } from '../../../keys/keys.ts';
import { attempt, delivery, deliveryDetail } from '../../../resources/delivery/delivery.ts';
import { givenOf } from '../../../resources/fields.ts';
import type { Row } from '../../../resources/resource.ts';
import { shower } from '../../../resources/show.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, pageOf, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { filtersOf, idInput, originOf, schemaOf } from '../../http/schemas.ts';
import { ownOrAdmin, requireOwn, requireOwner, requireSeen } from './endpoints.ts';

const showAttempt = shower(attempt);
const query = z.strictObject({ ...paging, ...filtersOf(delivery.filters) });
const request = z.object({ params: z.object({ id: idInput('dlv') }) });
const base = { tag: 'deliveries', scope: 'read' } as const;

export function addDeliveries(router: Router, { webhooks }: Pick<ApiDeps, 'webhooks'>): void {
  router.listOf({
    ...base,
    path: '/api/deliveries',
    summary: 'List deliveries, newest first',
    request: z.object({ query }),
    items: delivery,
    parsePosition: idPosition('dlv'),
    ownOnly: true,
    async list({ query }, { after: before = '', limit }, caller) {
      const filter = givenOf(delivery.filters, query);
      await requireOwn(webhooks, filter.endpointId, caller);
      const rows = await webhooks.listDeliveries(filter, { before, limit });
      return visibleTo(webhooks, rows, caller);
    },
    position: ({ id }) => id,
  });
  router.answer({
    ...base,
    method: 'get',
    path: '/api/deliveries/{id}',
    summary: 'Read a delivery',
    request,
    response: 'The delivery',
    answer: deliveryDetail,
    ownOnly: true,
    async handle({ params }, caller) {
      const found = await webhooks.getDelivery(params.id);
      await requireSeen(webhooks, found.endpointId, caller);
      const [shown = found] = await visibleTo(webhooks, [found], caller);
      return shown;
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
    schema: pageOf(schemaOf(attempt)),
    ownOnly: true,
    async handle({ params }, caller) {
      const { endpointId } = await webhooks.getDelivery(params.id);
      await requireSeen(webhooks, endpointId, caller);
      const isVisible = (await ownOrAdmin(webhooks, [endpointId], caller)).has(endpointId);
      const attempts = await webhooks.listAttempts(params.id);
      return {
        data: attempts.map((row) => showAttempt(isVisible ? row : withoutAnswer(row))),
        next_cursor: null,
      };
    },
  });
  addActions(router, webhooks);
}

function addActions(router: Router, webhooks: ApiDeps['webhooks']): void {
  router.answer({
    ...base,
    scope: 'manage',
    method: 'post',
    path: '/api/deliveries/{id}/retry',
    summary: 'Send a delivery to one of your endpoints again, now, in any state',
    request,
    status: 202,
    response: 'The delivery',
    answer: delivery,
    ownOnly: true,
    async handle({ params }, caller) {
      const { endpointId } = await webhooks.getDelivery(params.id);
      await requireSeen(webhooks, endpointId, caller);
      await requireOwner(webhooks, endpointId, caller);
      return webhooks.retryDelivery(params.id);
    },
  });
  router.answer({
    ...base,
    scope: 'manage',
    method: 'post',
    path: '/api/deliveries/{id}/cancel',
    summary: 'Give up a delivery to one of your endpoints whose every attempt failed',
    description: 'The status counts it no longer. A retry or a replay still sends it.',
    request,
    response: 'The delivery',
    answer: delivery,
    ownOnly: true,
    async handle({ params }, caller) {
      const { endpointId } = await webhooks.getDelivery(params.id);
      await requireSeen(webhooks, endpointId, caller);
      await requireOwner(webhooks, endpointId, caller);
      return webhooks.cancelDelivery(params.id);
    },
  });
}

/** Why an attempt failed, and where to, is shown to the owner of the endpoint and to admin keys. */
async function visibleTo<
  D extends Pick<Row<typeof delivery>, 'endpointId' | 'endpointUrl' | 'lastError'>,
>(webhooks: ApiDeps['webhooks'], rows: readonly D[], caller: Caller): Promise<D[]> {
  const ids = [...new Set(rows.map(({ endpointId }) => endpointId))];
  const seen = await ownOrAdmin(webhooks, ids, caller);
  return rows.map((row) => {
    if (seen.has(row.endpointId)) return row;
    const { endpointUrl: url } = row;
    return { ...row, endpointUrl: url === null ? null : originOf(url), lastError: null };
  });
}

/** A receiver's answer may name its own secrets. */
function withoutAnswer(row: Row<typeof attempt>): Row<typeof attempt> {
  return { ...row, error: null, responseBody: null, responseHeaders: null };
}
