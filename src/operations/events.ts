/** Operations in events and API responses: snake_case, whole numbers as decimal text. Pure. */
import { decimalText } from '../kernel/amounts.ts';
import type { Instant } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import type { EventData, EventDraft } from '../outbox/events.ts';
import { isFinal, type Operation } from './operation.ts';

export function operationFields(operation: Operation): EventData<'operation.accepted'> {
  const { errorClass } = operation;
  return {
    operation_id: operation.id,
    kind: operation.kind,
    state: operation.state,
    outcome: operation.outcome,
    reference: operation.reference,
    idempotency_key: operation.idempotencyKey,
    from_addr: operation.fromAddr,
    to_addr: operation.toAddr,
    operation_no: decimalText(operation.operationNo),
    contract_id: decimalText(operation.contractId),
    token_id: decimalText(operation.tokenId),
    amount: decimalText(operation.amount),
    fee_amount: decimalText(operation.feeAmount),
    reason_type: operation.reasonType,
    tx_app_no: decimalText(operation.txAppNo),
    tx_log_no: decimalText(operation.txLogNo),
    tx_hash: operation.txHash,
    error: errorClass
      ? {
          class: errorClass,
          status: operation.errorStatus,
          code: operation.errorCode,
          message: operation.errorMessage,
        }
      : null,
  };
}

/** The event of an accepted, rejected or unknown write; other states have no event here. */
export function eventsOf(operation: Operation): EventDraft[] {
  const { state } = operation;
  if (state !== 'accepted' && state !== 'rejected' && state !== 'unknown') return [];
  const occurredAt = operation.answeredAt ?? operation.sentAt ?? operation.recordedAt;
  return [eventOf(operation, state, occurredAt)];
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
  const common = { subject: `operation:${operation.id}`, occurredAt, last: isFinal(operation) };
  return { ...common, type: `operation.${state}`, data: operationFields(operation) };
}

/** `supersedes` is the earlier state if that was a resolution too. */
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
