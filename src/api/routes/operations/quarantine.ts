/** `/api/quarantine`: what cannot be processed until a person releases it, and its release. */
import { z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import { isoText, parseInstant } from '../../../kernel/clock.ts';
import {
  listQuarantined,
  listReleases,
  QUARANTINE_KINDS,
  type QuarantineCursor,
  type Quarantined,
  type Release,
  releaseQuarantined,
} from '../../../reconciler/reconciler.ts';
import type { ApiDeps } from '../../deps.ts';
import { decimal, instant, instantText, textInput } from '../../http/fields.ts';
import { numberPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const kind = z.enum(QUARANTINE_KINDS);
const id = z.string().openapi({
  description: 'The id of the operation or posting request, or the target of the observation',
});

const quarantined = z
  .object({
    kind,
    id,
    reason: z.string().openapi({ description: 'Why it is quarantined' }),
    since: instant.openapi({ description: 'Of a posting request, when it was requested' }),
    amount: decimal.nullable(),
  })
  .openapi('Quarantined');

const release = z
  .object({
    n: z.string().openapi({ description: 'Releases are numbered in their order' }),
    kind,
    id,
    problem: z.string().openapi({ description: 'Why it was quarantined' }),
    released_at: instant,
    released_by: z.string(),
    reason: z.string(),
  })
  .openapi('Release');

const [REASON_MAX, ID_MAX] = [2_000, 300];
const base = { tag: 'operations' };

export function addQuarantine(
  router: Router,
  { db, clock, wake }: Pick<ApiDeps, 'db' | 'clock' | 'wake'>,
): void {
  router.list({
    ...base,
    scope: 'read',
    path: '/api/quarantine',
    summary: 'List what is quarantined, newest first',
    request: z.object({ query: z.strictObject(paging) }),
    item: quarantined,
    parsePosition,
    list: (_, page) => listQuarantined(db, page),
    output: quarantinedOutput,
    position: ({ since, kind, id }) => `${isoText(since)} ${kind} ${id}`,
  });
  router.add({
    ...base,
    scope: 'admin',
    method: 'post',
    path: '/api/quarantine/release',
    summary: 'Release a posting or an observation from quarantine',
    description:
      'The ledger posts the operation or request, also with a foreign or repeated number; the ' +
      'reconciler processes the observation. What fails again is quarantined again.',
    request: z.object({
      body: z.strictObject({ kind, id: textInput(ID_MAX), reason: textInput(REASON_MAX) }),
    }),
    response: 'The release',
    schema: release,
    async handle({ body }, caller) {
      const released = await releaseQuarantined(db, body, caller, clock.now());
      wake(body.kind === 'observation' ? 'reconciler' : 'ledger');
      return releaseOutput(released);
    },
  });
  router.list({
    ...base,
    scope: 'read',
    path: '/api/quarantine/releases',
    summary: 'List releases from quarantine, newest first',
    request: z.object({ query: z.strictObject(paging) }),
    item: release,
    parsePosition: numberPosition,
    list: (_, { after: before, limit }) => listReleases(db, { before, limit }),
    output: releaseOutput,
    position: ({ id }) => id,
  });
}

function parsePosition(text: string): QuarantineCursor | undefined {
  const [, at = '', name, id = ''] = /^(\S+) (\S+) ([^\0]+)$/.exec(text) ?? [];
  const since = parseInstant(at);
  const kind = QUARANTINE_KINDS.find((known) => known === name);
  return kind && since !== undefined && since >= 0 ? { since, kind, id } : undefined;
}

function quarantinedOutput({ kind, id, reason, since, amount }: Quarantined) {
  return {
    kind,
    id,
    reason,
    since: instantText(since),
    amount: amount === null ? null : decimalText(amount),
  };
}

function releaseOutput(row: Release) {
  return {
    n: row.id.toString(),
    kind: row.kind,
    id: row.subject,
    problem: row.problem,
    released_at: instantText(row.releasedAt),
    released_by: row.releasedBy,
    reason: row.reason,
  };
}
