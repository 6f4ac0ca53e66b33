/** `/api/freeze` and `/api/unfreeze`: stop and release all writes, with a reason. */
import { z } from '@hono/zod-openapi';
import type { Freeze } from '../../../operations/operations.ts';
import type { ApiDeps } from '../../deps.ts';
import { instant, instantText, textInput } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';

export const freeze = z
  .object({
    frozen_at: instant,
    frozen_by: z.string(),
    reason: z.string(),
    released_at: instant.nullable(),
    released_by: z.string().nullable(),
    release_reason: z.string().nullable(),
  })
  .openapi('Freeze');

const REASON_MAX = 2_000;
const base = {
  method: 'post' as const,
  tag: 'operating',
  scope: 'admin' as const,
  request: z.object({ body: z.strictObject({ reason: textInput(REASON_MAX) }) }),
  schema: freeze,
};

export function addFreeze(router: Router, deps: Pick<ApiDeps, 'operations' | 'wake'>): void {
  const { operations, wake } = deps;
  router.add({
    ...base,
    path: '/api/freeze',
    summary: 'Stop all writes',
    description: 'After the response no write is recorded, and none is sent from the queue.',
    response: 'The freeze in effect; an earlier one if writes were already frozen',
    handle: async ({ body: { reason } }, { owner }) =>
      freezeOutput(await operations.freeze({ by: owner, reason })),
  });
  router.add({
    ...base,
    path: '/api/unfreeze',
    summary: 'Release all writes',
    response: 'The freeze that ended',
    async handle({ body: { reason } }, { owner }) {
      const ended = await operations.unfreeze({ by: owner, reason });
      wake('queue');
      return freezeOutput(ended);
    },
  });
}

export function freezeOutput(row: Freeze) {
  return {
    frozen_at: instantText(row.frozenAt),
    frozen_by: row.frozenBy,
    reason: row.reason,
    released_at: instantText(row.releasedAt),
    released_by: row.releasedBy,
    release_reason: row.releaseReason,
  };
}
