/** `/api/periods`: periods closed with their report, signed by another owner, and reopened. */
import { z } from '@hono/zod-openapi';
import { must } from '../../../kernel/errors.ts';
import { listPeriods } from '../../../reports/reports.ts';
import { MOMENT_WORDS, period, periodClose } from '../../../resources/ledger/period.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import {
  filtersOf,
  idInput,
  momentInput,
  reasonInput,
  spanInput,
  textInput,
} from '../../http/schemas.ts';

const SIGN_OFFS_MAX = 1_000;

const closeFields = z.strictObject({
  period: spanInput.optional(),
  from: momentInput.optional().openapi({ description: `Of the first period; ${MOMENT_WORDS}` }),
  to: momentInput.optional().openapi({ description: `Exclusive; ${MOMENT_WORDS}` }),
  sign_offs: z
    .array(z.strictObject({ subject: textInput(300), reason: reasonInput }))
    .max(SIGN_OFFS_MAX)
    .optional()
    .openapi({ description: 'Open items of the report, each with why it may stay open' }),
  reason: reasonInput.optional(),
  dry_run: z.boolean().optional(),
});
const closeInput = closeFields.refine(
  ({ period, from, to }) => (period ? !from && !to : to),
  'name either period, or to (and from, of the first period)',
);

const params = z.object({ id: idInput('per') });
const base = { tag: 'periods', scope: 'decide', method: 'post' } as const;

export function addPeriods(
  router: Router,
  { db, periods, wake }: Pick<ApiDeps, 'db' | 'periods' | 'wake'>,
): void {
  router.listOf({
    tag: 'periods',
    scope: 'read',
    path: '/api/periods',
    summary: 'List closes of periods, newest first',
    request: z.object({ query: z.strictObject({ ...paging, ...filtersOf(period.filters) }) }),
    items: period,
    parsePosition: idPosition('per'),
    list: ({ query: { state } }, { after: before, limit }) =>
      listPeriods(db, { state, before, limit }),
    position: ({ id }) => id,
  });
  router.answer({
    ...base,
    path: '/api/periods/close',
    summary: 'Close the period that begins where the last closed one ends',
    description:
      'It closes when its report is balanced, or each of its breaks is signed off. The report of ' +
      'the same period is this one from now on; what is recorded later is a prior-period line of ' +
      'later reports.',
    request: z.object({ body: closeInput }),
    response: 'The period, or with dry_run what prevents its close',
    answer: periodClose,
    async handle({ body: { sign_offs: signOffs = [], dry_run: dryRun, ...body } }, by) {
      const { reason, period } = body;
      const named = period ?? { from: body.from, to: must(body.to, 'end') };
      const { from, to, closed, content, obstacles } = await periods.close(
        { ...named, reason, signOffs, dryRun },
        by,
      );
      wake('sequencer', 'webhooks');
      return {
        period: closed ?? null,
        periodFrom: from,
        periodTo: to,
        verdict: content.verdict,
        breaks: content.breaks.total,
        obstacles,
      };
    },
  });
  router.answer({
    ...base,
    path: '/api/periods/{id}/sign',
    response: 'The period',
    answer: period,
    summary: 'Sign a closed period; a key of another owner than the one that closed it',
    request: z.object({ params }),
    handle: ({ params: { id } }, by) => periods.sign(id, by),
  });
  router.answer({
    ...base,
    path: '/api/periods/{id}/reopen',
    response: 'The period',
    answer: period,
    summary: 'Reopen the newest closed period, or propose to reopen the newest signed one',
    description: 'A signed period is reopened once a key of another owner approves.',
    request: z.object({ params, body: z.strictObject({ reason: reasonInput }) }),
    async handle({ params: { id }, body: { reason } }, by) {
      const reopened = await periods.reopen(id, reason, by);
      wake('sequencer', 'webhooks');
      return reopened;
    },
  });
  router.answer({
    ...base,
    path: '/api/periods/{id}/approve',
    response: 'The period',
    answer: period,
    summary: 'Approve that a signed period is reopened; a key of another owner than the proposer',
    request: z.object({
      params,
      body: z
        .strictObject({ n: z.int().min(1).max(32_767) })
        .openapi({ description: 'The `reopen_proposal` that was read; a newer one is refused' }),
    }),
    async handle({ params: { id }, body: { n } }, by) {
      const reopened = await periods.approveReopening(id, n, by);
      wake('sequencer', 'webhooks');
      return reopened;
    },
  });
}
