/** How a write is shown: one schema and one translation, for every path that answers one. Pure. */
import { z } from '@hono/zod-openapi';
import { type Operation, operationFields } from '../../../operations/operations.ts';
import { EVENTS } from '../../../outbox/events.ts';
import { instantOut, timeText } from '../../http/fields.ts';

export const operation = EVENTS['operation.accepted'].data
  .omit({ subject_seq: true })
  .extend({
    id: z.string(),
    source: z.enum(['gateway', 'report']),
    token_uri: z.string().nullable(),
    extra_data: z.string().nullable(),
    ambiguous: z.boolean().openapi({
      description: 'Sent beside another open write that it cannot be told apart from',
    }),
    recorded_at: instantOut,
    sent_at: instantOut.nullable(),
    answered_at: instantOut.nullable(),
    settled_at: instantOut.nullable(),
    effective_at: instantOut.nullable(),
    effective_basis: z.string().nullable().openapi({
      description: 'How that is known: answer, observed, reported or decision',
    }),
    expires_at: instantOut.nullable().openapi({
      description: 'Until when a queued one may still be sent',
    }),
  })
  .openapi('Operation');

export function shownOperation(operation: Operation) {
  return {
    id: operation.id,
    ...operationFields(operation),
    source: operation.source,
    token_uri: operation.tokenUri,
    extra_data: operation.extraData,
    ambiguous: operation.ambiguous,
    recorded_at: timeText(operation.recordedAt),
    sent_at: timeText(operation.sentAt),
    answered_at: timeText(operation.answeredAt),
    settled_at: timeText(operation.settledAt),
    effective_at: timeText(operation.effectiveAt),
    effective_basis: operation.effectiveBasis,
    expires_at: timeText(operation.expiresAt),
  };
}
