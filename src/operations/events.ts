/** Operations in events and API responses. Pure. */
import { membersOf } from '../kernel/json.ts';
import type { Instant } from '../kernel/values.ts';
import type { EventDraft } from '../outbox/events.ts';
import {
  operationData,
  type operation as operationResource,
} from '../resources/operations/operation.ts';
import type { Row, Shown } from '../resources/resource.ts';
import { shower } from '../resources/show.ts';
import type { Operation } from './operation.ts';

const showData = shower(operationData);

export function operationFields(operation: Operation): Shown<typeof operationData> {
  return showData(operationRow(operation));
}

/** The row of an operation as it is defined for people and programs. */
export function operationRow(operation: Operation): Row<typeof operationResource> {
  const { id, errorClass, errorStatus, errorCode, errorMessage, answerStatus } = operation;
  return {
    ...operation,
    operationId: id,
    answeredAt: answerStatus === null ? null : operation.answeredAt,
    error:
      errorClass === null
        ? null
        : { class: errorClass, status: errorStatus, code: errorCode, message: errorMessage },
  };
}

/** The event of an accepted, rejected or unknown write; other states have no event here. */
export function eventsOf(operation: Operation): EventDraft[] {
  const { state } = operation;
  if (state !== 'accepted' && state !== 'rejected' && state !== 'unknown') return [];
  const occurredAt = operation.answeredAt ?? operation.sentAt ?? operation.recordedAt;
  return [eventOf(operation, state, occurredAt)];
}

/** Subject and number of the event of a transition. */
export function aboutOperation({ id, eventSeq }: Pick<Operation, 'id' | 'eventSeq'>) {
  return { subject: `operation:${id}`, seq: eventSeq };
}

/** The event of an operation that an observation settled or failed. */
export function endedEvent(operation: Operation, occurredAt: Instant): EventDraft {
  return eventOf(operation, operation.state === 'failed' ? 'failed' : 'settled', occurredAt);
}

function eventOf(
  operation: Operation,
  state: 'accepted' | 'rejected' | 'unknown' | 'settled' | 'failed',
  occurredAt: Instant,
): EventDraft {
  const data = operationFields(operation);
  return { ...aboutOperation(operation), occurredAt, type: `operation.${state}`, data };
}

/** `supersedes` is the earlier state if that was a resolution too. */
export function resolvedEvent(
  operation: Operation,
  before: Pick<Operation, 'state' | 'outcome'>,
  occurredAt: Instant,
): EventDraft {
  return {
    ...aboutOperation(operation),
    type: 'operation.resolved',
    occurredAt,
    data: {
      ...operationFields(operation),
      evidence: membersOf(operation.evidence),
      supersedes: before.outcome === 'open' ? null : before.state,
    },
  };
}
