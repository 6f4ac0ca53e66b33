/** `/api/freeze` and `/api/unfreeze`: all writes stop at once and are released, with a reason. */
import { createRoute, z } from '@hono/zod-openapi';
import type { Freeze } from '../../../operations/operations.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import { instantOut, textIn, timeText } from '../../http/fields.ts';
import { bodyRefusals, json, jsonBody } from '../../http/problems.ts';

export const freeze = z
  .object({
    frozen_at: instantOut,
    frozen_by: z.string(),
    reason: z.string(),
    released_at: instantOut.nullable(),
    released_by: z.string().nullable(),
    release_reason: z.string().nullable(),
  })
  .openapi('Freeze');

const REASON_MAX = 2_000;
const base = {
  method: 'post' as const,
  tags: ['operating'],
  ...deps('admin'),
  request: { body: jsonBody(z.strictObject({ reason: textIn(REASON_MAX) })) },
};

const freezeRoute = createRoute({
  ...base,
  path: '/api/freeze',
  summary: 'Stops all writes: once this answers, no further write is taken or sent from the queue',
  responses: { 200: json('The freeze that stands, maybe an earlier one', freeze), ...bodyRefusals },
});
const unfreezeRoute = createRoute({
  ...base,
  path: '/api/unfreeze',
  summary: 'Releases all writes',
  responses: { 200: json('The freeze that ended', freeze), ...bodyRefusals },
});

export function addFreeze(app: Api, deps: ApiDeps): void {
  const { operations, wake } = deps;
  app.openapi(guarded(deps, freezeRoute), async (c) => {
    const { reason } = c.req.valid('json');
    const stands = await operations.freeze({ by: c.get('caller').owner, reason });
    return reply(c, shownFreeze(stands), 200);
  });
  app.openapi(guarded(deps, unfreezeRoute), async (c) => {
    const { reason } = c.req.valid('json');
    const ended = await operations.unfreeze({ by: c.get('caller').owner, reason });
    wake('queue');
    return reply(c, shownFreeze(ended), 200);
  });
}

export function shownFreeze(row: Freeze) {
  return {
    frozen_at: timeText(row.frozenAt),
    frozen_by: row.frozenBy,
    reason: row.reason,
    released_at: timeText(row.releasedAt),
    released_by: row.releasedBy,
    release_reason: row.releaseReason,
  };
}
