/** What is told when an outcome was settled by people or by a report. Pure. */
import type { Instant } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import type { EventDraft } from '../outbox/events.ts';
import { operationFields } from './events.ts';
import type { Operation } from './operation.ts';

/**
 * The event of a resolution. `supersedes` is the state that it replaces, where that was a
 * resolution already.
 */
export function resolvedEvent(
  operation: Operation,
  before: Pick<Operation, 'state' | 'outcome'>,
  occurredAt: Instant,
): EventDraft {
  return {
    type: 'operation.resolved',
    subject: `operation:${operation.id}`,
    occurredAt,
    data: {
      ...operationFields(operation),
      evidence: membersOf(operation.evidence),
      supersedes: before.outcome === 'open' ? null : before.state,
    },
  };
}

function membersOf(evidence: Json): Record<string, unknown> {
  return evidence !== null && typeof evidence === 'object' && !Array.isArray(evidence)
    ? evidence
    : {};
}
