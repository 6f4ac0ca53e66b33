/** A drift in the API: its schema and its output, with the newest proposal. */
import { z } from '@hono/zod-openapi';
import type { Queryable } from '../../../db/connect.ts';
import { decimalText } from '../../../kernel/amounts.ts';
import { type Decision, newestDecisions } from '../../../operations/operations.ts';
import { CAUSES, type Drift, PROPOSALS } from '../../../reconciler/reconciler.ts';
import { anyJson, decimal, instant, instantText } from '../../http/fields.ts';
import { driftProposal, driftProposalOutput } from '../operations/decisions.ts';

export const drift = z
  .object({
    id: z.string(),
    addr: z.string(),
    amount: decimal.nullable().openapi({
      description: 'Positive if the wallet holds more than is explained; null until it is exact',
    }),
    amount_min: decimal.openapi({ description: 'The least amount that the observations allow' }),
    amount_max: decimal.openapi({ description: 'The greatest one' }),
    state: z.string(),
    suspected_at: instant,
    opened_at: instant,
    closed_at: instant.nullable(),
    window_from: instant.nullable().openapi({ description: 'The change happened after this time' }),
    window_to: instant,
    evidence: anyJson,
    cause: z.enum(CAUSES).openapi({ description: 'The probable one' }),
    prepared: z
      .object({
        drift_id: z.string(),
        proposal: z.enum(PROPOSALS),
        operation_id: z.string().nullable(),
      })
      .nullable()
      .openapi({ description: 'The proposal that fits the cause; made when none is named' }),
    counterpart: z.string().nullable().openapi({
      description: 'The other drift of one transfer made elsewhere; both are ended together',
    }),
    assignee: z.string().nullable(),
    proposal: driftProposal.nullable().openapi({ description: 'The newest one' }),
    closed_by: anyJson.openapi({ description: 'The observation or the decision that closed it' }),
  })
  .openapi('Drift');

/** Drifts with their newest proposals, read at once. */
export async function withProposals(
  db: Queryable,
  drifts: readonly Drift[],
): Promise<[Drift, Decision | undefined][]> {
  const newest = await newestDecisions(
    db,
    drifts.map(({ id }) => id),
  );
  return drifts.map((row) => [row, newest.get(row.id)]);
}

export function driftOutput([row, decision]: [Drift, Decision | undefined]): z.input<typeof drift> {
  return {
    id: row.id,
    addr: row.addr,
    amount: row.amount === null ? null : decimalText(row.amount),
    amount_min: decimalText(row.min),
    amount_max: decimalText(row.max),
    state: row.state,
    suspected_at: instantText(row.suspectedAt),
    opened_at: instantText(row.openedAt),
    closed_at: instantText(row.closedAt),
    window_from: instantText(row.windowFrom),
    window_to: instantText(row.windowTo),
    evidence: row.evidence,
    cause: row.cause,
    prepared: row.prepared,
    counterpart: row.counterpart,
    assignee: row.assignee,
    proposal: decision ? driftProposalOutput(decision) : null,
    closed_by: row.closedBy,
  };
}
