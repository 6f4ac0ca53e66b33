/** The events that webhooks emit about endpoints and deliveries. Pure. */
import type { Instant } from '../../kernel/clock.ts';
import { originOf } from '../../kernel/http/origin.ts';
import type { EventDraft } from '../../outbox/events.ts';

interface EventSource {
  endpointId: string;
  url: string;
}

export function disabledEvent(source: EventSource, reason: string, now: Instant): EventDraft {
  return { ...commonOf(source, now), type: 'endpoint.disabled', data: dataOf(source, reason) };
}

export function recoveredEvent(source: EventSource, now: Instant): EventDraft {
  return {
    ...commonOf(source, now),
    type: 'endpoint.recovered',
    data: dataOf(source, 'delivered'),
  };
}

export function testEvent(source: EventSource, now: Instant): EventDraft {
  return { ...commonOf(source, now), type: 'endpoint.test', data: dataOf(source, 'requested') };
}

/**
 * The event of an exhausted delivery. None for the delivery of an operational event: two dead
 * endpoints would otherwise cause events about each other without end.
 */
export function exhaustedEvent(
  source: EventSource,
  delivery: { id: string; eventId: string; eventType: string; attempts: number },
  reason: 'attempts_exhausted' | 'retention',
  now: Instant,
): EventDraft[] {
  if (/^(endpoint|delivery)\./.test(delivery.eventType)) return [];
  const data = {
    ...dataOf(source, reason),
    delivery_id: delivery.id,
    event_id: delivery.eventId,
    attempts: delivery.attempts,
  };
  return [{ ...commonOf(source, now), type: 'delivery.exhausted', data }];
}

export function subjectOf(endpointId: string): string {
  return `endpoint:${endpointId}`;
}

function commonOf({ endpointId }: EventSource, now: Instant) {
  return { subject: subjectOf(endpointId), occurredAt: now };
}

/** Receivers may keep tokens in the path or query of their URL, so both are left out. */
function dataOf({ endpointId, url }: EventSource, reason: string) {
  return { endpoint_id: endpointId, reason, url: originOf(url) };
}
