/** `/api/freeze` and `/api/unfreeze`: stop and release all writes, with a reason. */
import { z } from '@hono/zod-openapi';
import { freeze } from '../../../resources/freeze.ts';
import type { ApiDeps } from '../../deps.ts';
import { textInput } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';

const REASON_MAX = 2_000;
const base = {
  method: 'post' as const,
  tag: 'operating',
  scope: 'admin' as const,
  request: z.object({ body: z.strictObject({ reason: textInput(REASON_MAX) }) }),
  answer: freeze,
};

export function addFreeze(router: Router, deps: Pick<ApiDeps, 'operations' | 'wake'>): void {
  const { operations, wake } = deps;
  router.answer({
    ...base,
    path: '/api/freeze',
    summary: 'Stop all writes',
    description: 'After the response no write is recorded, and none is sent from the queue.',
    response: 'The freeze in effect; an earlier one if writes were already frozen',
    handle: ({ body: { reason } }, { owner }) => operations.freeze({ by: owner, reason }),
  });
  router.answer({
    ...base,
    path: '/api/unfreeze',
    summary: 'Release all writes',
    response: 'The freeze that ended',
    async handle({ body: { reason } }, { owner }) {
      const ended = await operations.unfreeze({ by: owner, reason });
      wake('queue');
      return ended;
    },
  });
}
