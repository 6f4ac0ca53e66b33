/** `/api/reports/{id}/lines`: the transactions behind the totals of a report. */
import { z } from '@hono/zod-openapi';
import { decimalText } from '../../../kernel/amounts.ts';
import type { LinePosition, ReportLine } from '../../../reports/reports.ts';
import type { ApiDeps } from '../../deps.ts';
import { decimal, idInput, instant, instantText, textInput } from '../../http/fields.ts';
import { type ParsePosition, paging } from '../../http/pages.ts';
import type { Router } from '../../http/router.ts';

const line = z
  .object({
    transaction_id: decimal,
    kind: z.string().openapi({ description: 'Of the write, also for its reversal' }),
    reason_type: z.string().nullable(),
    operations: z.int().openapi({
      description: 'What it counts in the movements: 1, for a reversal -1; 0 if of no write',
    }),
    amount: decimal.openapi({
      description: 'Of the write, or what another posting moves; negative for a reversal',
    }),
    fees: decimal,
    operation_id: z.string().nullable(),
    reference: z.string().nullable(),
    tx_app_no: decimal.nullable(),
    tx_log_no: decimal.nullable(),
    effective_at: instant,
    effective_basis: z.string(),
    recorded_at: instant,
    reverses: decimal.nullable(),
    entries: z.array(z.object({ account: z.string(), amount: decimal })),
  })
  .openapi('ReportLine');

const parsePosition: ParsePosition<LinePosition> = (text) => {
  const [, at, transaction] = /^(-?\d{1,15}):(\d{1,18})$/.exec(text) ?? [];
  return at && transaction ? { at: Number(at), transaction: BigInt(transaction) } : undefined;
};

export function addReportLines(router: Router, { reports }: Pick<ApiDeps, 'reports'>): void {
  router.list({
    tag: 'reports',
    scope: 'read' as const,
    path: '/api/reports/{id}/lines',
    summary: 'List the transactions behind the totals of a report, in the order of their effect',
    request: z.object({
      params: z.object({ id: idInput('rep') }),
      query: z.strictObject({
        ...paging,
        kind: textInput(100).optional(),
        reason_type: z
          .string()
          .max(1_000)
          .optional()
          .openapi({ description: 'Empty: those without a reason' }),
        account: textInput(200).optional(),
      }),
    }),
    item: line,
    parsePosition,
    list: ({ params, query: { kind, reason_type: reason, account } }, page) =>
      reports.listLines(
        params.id,
        { kind, reasonType: reason === '' ? null : reason, account },
        page,
      ),
    output: lineOutput,
    position: ({ effectiveAt, transaction }) => `${effectiveAt}:${transaction}`,
  });
}

function lineOutput(row: ReportLine) {
  return {
    transaction_id: decimalText(row.transaction),
    kind: row.kind,
    reason_type: row.reasonType,
    operations: row.operations,
    amount: decimalText(row.amount),
    fees: decimalText(row.fees),
    operation_id: row.operationId,
    reference: row.reference,
    tx_app_no: decimalText(row.txAppNo),
    tx_log_no: decimalText(row.txLogNo),
    effective_at: instantText(row.effectiveAt),
    effective_basis: row.effectiveBasis,
    recorded_at: instantText(row.recordedAt),
    reverses: decimalText(row.reverses),
    entries: row.entries.map(({ account, amount }) => ({ account, amount: decimalText(amount) })),
  };
}
