/** `/api/periods`: periods closed with their report, signed by another owner, and reopened. */
import { z } from '@hono/zod-openapi';
import { listPeriods, type Moment } from '../../../reports/reports.ts';
import { period, periodClose } from '../../../resources/ledger/period.ts';
import type { ApiDeps } from '../../deps.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';
import { filtersOf, idInput, instantInput, reasonInput, textInput } from '../../http/schemas.ts';

const SIGN_OFFS_MAX = 1_000;

/** A day such as 2026-12-01 is its midnight in the time zone of the reports. */
const momentInput = z
  .union([instantInput.transform((at): Moment => ({ at })), dayInput()])
  .openapi({ example: '2026-12-01', description: 'An RFC 3339 instant, or a day of the reports' });

const closeInput = z.strictObject({
  from: momentInput.optional().openapi({ description: 'Of the first period only' }),
  to: momentInput,
  sign_offs: z
    .array(z.strictObject({ subject: textInput(300), reason: reasonInput }))
    .max(SIGN_OFFS_MAX)
    .optional()
    .openapi({ description: 'Open items of the report, each with why it may stay open' }),
  reason: reasonInput.optional(),
  dry_run: z.boolean().optional(),
});

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
      const { from, to, closed, content, obstacles } = await periods.close(
        { ...body, signOffs, dryRun },
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
    request: z.object({ params }),
    async handle({ params: { id } }, by) {
      const reopened = await periods.approveReopening(id, by);
      wake('sequencer', 'webhooks');
      return reopened;
    },
  });
}

function dayInput() {
  return z
    .string()
    .regex(/^[12]\d{3}-\d{2}-\d{2}$/)
    .refine(isDay, 'must be an RFC 3339 instant, or a day such as 2026-12-01')
    .transform((day): Moment => ({ day }));
}

function isDay(text: string): boolean {
  const at = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(at) && at >= 0 && new Date(at).toISOString().startsWith(text);
}
