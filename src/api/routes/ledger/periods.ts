/** `/api/periods`: periods closed with their report, signed by another owner, and reopened. */
import { z } from '@hono/zod-openapi';
import {
  type ClosedPeriod,
  listPeriods,
  type Moment,
  PERIOD_STATES,
} from '../../../reports/reports.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  decimal,
  idInput,
  instant,
  instantInput,
  instantText,
  textInput,
} from '../../http/fields.ts';
import { idPosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const REASON_MAX = 2_000;
const SIGN_OFFS_MAX = 1_000;

const period = z
  .object({
    id: z.string(),
    state: z.enum(PERIOD_STATES).openapi({ description: 'A reopened one is no longer in force' }),
    period_from: instant,
    period_to: instant.openapi({ description: 'Exclusive; the next period begins here' }),
    report_id: z.string().openapi({
      description: 'The report over exactly this period, which is its answer from now on',
    }),
    report_hash: z.string(),
    last_batch: decimal.openapi({ description: 'Cut-off: the last ledger batch in the report' }),
    known_at: instant.openapi({ description: 'Time of that batch' }),
    chain_head: z.string().nullable(),
    closed_by: z.string(),
    closed_at: instant,
    sign_offs: z.array(z.object({ kind: z.string(), subject: z.string(), reason: z.string() })),
    signed_by: z.string().nullable(),
    signed_at: instant.nullable(),
    reopened_by: z.string().nullable(),
    reopened_at: instant.nullable(),
    reopen_reason: z.string().nullable(),
  })
  .openapi('Period');

const closeResult = z
  .object({
    period: period.nullable().openapi({ description: 'Null after a dry run' }),
    period_from: instant,
    period_to: instant,
    verdict: z.enum(['balanced', 'breaks']),
    breaks: z.int(),
    obstacles: z
      .array(
        z.object({
          kind: z.string(),
          subject: z.string().nullable(),
          amount: decimal.nullable(),
          since: instant.nullable(),
          next: z.string().openapi({ description: 'What to do' }),
          can_sign_off: z.boolean().openapi({ description: 'With a reason, in `sign_offs`' }),
        }),
      )
      .openapi({ description: 'What prevents the close' }),
  })
  .openapi('PeriodClose');

/** A day such as 2026-12-01 is its midnight in the time zone of the reports. */
const momentInput = z
  .union([instantInput.transform((at): Moment => ({ at })), dayInput()])
  .openapi({ example: '2026-12-01', description: 'An RFC 3339 instant, or a day of the reports' });

const closeInput = z.strictObject({
  from: momentInput.optional().openapi({ description: 'Of the first period only' }),
  to: momentInput,
  sign_offs: z
    .array(z.strictObject({ subject: textInput(300), reason: textInput(REASON_MAX) }))
    .max(SIGN_OFFS_MAX)
    .optional()
    .openapi({ description: 'Open items of the report, each with why it may stay open' }),
  reason: textInput(REASON_MAX).optional(),
  dry_run: z.boolean().optional(),
});

const params = z.object({ id: idInput('per') });
const base = { tag: 'periods', scope: 'decide', method: 'post' } as const;

export function addPeriods(
  router: Router,
  { db, periods, wake }: Pick<ApiDeps, 'db' | 'periods' | 'wake'>,
): void {
  router.list({
    tag: 'periods',
    scope: 'read',
    path: '/api/periods',
    summary: 'List closes of periods, newest first',
    request: z.object({
      query: z.strictObject({ ...paging, state: z.enum(PERIOD_STATES).optional() }),
    }),
    item: period,
    parsePosition: idPosition('per'),
    list: ({ query: { state } }, { after: before, limit }) =>
      listPeriods(db, { state, before, limit }),
    output: periodOutput,
    position: ({ id }) => id,
  });
  router.add({
    ...base,
    path: '/api/periods/close',
    summary: 'Close the period that begins where the last closed one ends',
    description:
      'It closes when its report is balanced, or each of its breaks is signed off. The report of ' +
      'the same period is this one from now on; what is recorded later is a prior-period line of ' +
      'later reports.',
    request: z.object({ body: closeInput }),
    response: 'The period, or with dry_run what prevents its close',
    schema: closeResult,
    async handle({ body: { sign_offs: signOffs = [], dry_run: dryRun, ...body } }, by) {
      const { from, to, closed, content, obstacles } = await periods.close(
        { ...body, signOffs, dryRun },
        by,
      );
      wake('sequencer', 'webhooks');
      return {
        period: closed ? periodOutput(closed) : null,
        period_from: instantText(from),
        period_to: instantText(to),
        verdict: content.verdict,
        breaks: content.breaks.total,
        obstacles,
      };
    },
  });
  router.add({
    ...base,
    path: '/api/periods/{id}/sign',
    response: 'The period',
    schema: period,
    summary: 'Sign a closed period; a key of another owner than the one that closed it',
    request: z.object({ params }),
    handle: async ({ params: { id } }, by) => periodOutput(await periods.sign(id, by)),
  });
  router.add({
    ...base,
    path: '/api/periods/{id}/reopen',
    response: 'The period',
    schema: period,
    summary: 'Reopen the newest closed or signed period, with a reason',
    request: z.object({ params, body: z.strictObject({ reason: textInput(REASON_MAX) }) }),
    async handle({ params: { id }, body: { reason } }, by) {
      const reopened = await periods.reopen(id, reason, by);
      wake('sequencer', 'webhooks');
      return periodOutput(reopened);
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

function periodOutput(row: ClosedPeriod) {
  return {
    id: row.id,
    state: row.state,
    period_from: instantText(row.periodFrom),
    period_to: instantText(row.periodTo),
    report_id: row.reportId,
    report_hash: row.reportHash,
    last_batch: row.lastBatch.toString(),
    known_at: instantText(row.knownAt),
    chain_head: row.chainHead,
    closed_by: row.closedBy,
    closed_at: instantText(row.closedAt),
    sign_offs: row.signOffs,
    signed_by: row.signedBy,
    signed_at: instantText(row.signedAt),
    reopened_by: row.reopenedBy,
    reopened_at: instantText(row.reopenedAt),
    reopen_reason: row.reopenReason,
  };
}
