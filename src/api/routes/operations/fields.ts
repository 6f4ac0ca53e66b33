/** The schema of an operation in responses, shared by all routes that answer one. */
import { z } from '@hono/zod-openapi';
import { type Operation, operationFields } from '../../../operations/operations.ts';
import { EVENTS } from '../../../outbox/events.ts';
import { instant, instantText } from '../../http/fields.ts';

export const operation = EVENTS['operation.accepted'].data
  .omit({ subject_seq: true })
  .extend({
    id: z.string(),
    source: z.enum(['gateway', 'report']),
    token_uri: z.string().nullable(),
    extra_data: z.string().nullable(),
    ambiguous: z.boolean().openapi({
      description: 'Sent while another open operation could not be told apart by the balances',
    }),
    recorded_at: instant,
    sent_at: instant.nullable(),
    answered_at: instant.nullable().openapi({
      description: 'Null when the service did not answer or its answer was lost',
    }),
    settled_at: instant.nullable(),
    effective_at: instant.nullable(),
    effective_basis: z.string().nullable().openapi({
      description: 'Source of effective_at: answer, observed, reported or decision',
    }),
    expires_at: instant.nullable().openapi({
      description: 'A queued operation is not sent after this time',
    }),
  })
  .openapi('Operation');

export function operationOutput(operation: Operation) {
  return {
    id: operation.id,
    ...operationFields(operation),
    source: operation.source,
    token_uri: operation.tokenUri,
    extra_data: operation.extraData,
    ambiguous: operation.ambiguous,
    recorded_at: instantText(operation.recordedAt),
    sent_at: instantText(operation.sentAt),
    answered_at: operation.answerStatus === null ? null : instantText(operation.answeredAt),
    settled_at: instantText(operation.settledAt),
    effective_at: instantText(operation.effectiveAt),
    effective_basis: operation.effectiveBasis,
    expires_at: instantText(operation.expiresAt),
  };
}
