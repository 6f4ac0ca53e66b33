/** `/api/quarantine`: what cannot be processed until a person releases it, and its release. */
import { z } from '@hono/zod-openapi';
import { isoText, parseInstant } from '../../../kernel/clock.ts';
import {
  listQuarantined,
  listReleases,
  type QuarantineCursor,
  releaseQuarantined,
} from '../../../reconciler/reconciler.ts';
import {
  QUARANTINE_KINDS,
  quarantined,
  release,
} from '../../../resources/operations/quarantine.ts';
import type { ApiDeps } from '../../deps.ts';
import { numberPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { reasonInput, textInput } from '../../http/schemas.ts';

const kind = z.enum(QUARANTINE_KINDS);
const ID_MAX = 300;
const base = { tag: 'operations' } as const;

export function addQuarantine(
  router: Router,
  { db, clock, wake }: Pick<ApiDeps, 'db' | 'clock' | 'wake'>,
): void {
  router.listOf({
    ...base,
    scope: 'read',
    path: '/api/quarantine',
    summary: 'List what is quarantined, newest first',
    request: z.object({ query: z.strictObject(paging) }),
    items: quarantined,
    parsePosition,
    list: (_, page) => listQuarantined(db, page),
    position: ({ since, kind, id }) => `${isoText(since)} ${kind} ${id}`,
  });
  router.answer({
    ...base,
    scope: 'admin',
    method: 'post',
    path: '/api/quarantine/release',
    summary: 'Release a posting or an observation from quarantine',
    description:
      'The ledger posts the operation or request, also with a foreign or repeated number; the ' +
      'reconciler processes the observation. What fails again is quarantined again.',
    request: z.object({
      body: z.strictObject({ kind, id: textInput(ID_MAX), reason: reasonInput }),
    }),
    response: 'The release',
    answer: release,
    async handle({ body }, caller) {
      const released = await releaseQuarantined(db, body, caller, clock.now());
      wake(body.kind === 'observation' ? 'reconciler' : 'ledger');
      return released;
    },
  });
  router.listOf({
    ...base,
    scope: 'read',
    path: '/api/quarantine/releases',
    summary: 'List releases from quarantine, newest first',
    request: z.object({ query: z.strictObject(paging) }),
    items: release,
    parsePosition: numberPosition,
    list: (_, { after: before, limit }) => listReleases(db, { before, limit }),
    position: ({ n }) => n,
  });
}

function parsePosition(text: string): QuarantineCursor | undefined {
  const [, at = '', name, id = ''] = /^(\S+) (\S+) ([^\0]+)$/.exec(text) ?? [];
  const since = parseInstant(at);
  const kind = QUARANTINE_KINDS.find((known) => known === name);
  return kind && since !== undefined && since >= 0 ? { since, kind, id } : undefined;
}
