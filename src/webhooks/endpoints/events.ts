/**
 * The operational events of webhooks, as drafts for the outbox. Pure. The URL is told without its
 * query, where receivers keep tokens.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Job } from '../delivery/sender.ts';

/** The subject under which events of one endpoint are numbered. */
export function endpointSubject(endpointId: string): string {
  return `endpoint:${endpointId}`;
}

/** @param reason gone, failing or requested */
export function disabledEvent(
  endpointId: string,
  url: string,
  reason: string,
  now: Instant,
): EventDraft {
  const data = { endpoint_id: endpointId, reason, url: shownUrl(url) };
  return {
    type: 'endpoint.disabled',
    subject: endpointSubject(endpointId),
    occurredAt: now,
    data,
  };
}

export function recoveredEvent(endpointId: string, url: string, now: Instant): EventDraft {
  const data = { endpoint_id: endpointId, reason: 'delivered', url: shownUrl(url) };
  return {
    type: 'endpoint.recovered',
    subject: endpointSubject(endpointId),
    occurredAt: now,
    data,
  };
}

export function testEvent(endpointId: string, url: string, now: Instant): EventDraft {
  const data = { endpoint_id: endpointId, reason: 'requested', url: shownUrl(url) };
  return { type: 'endpoint.test', subject: endpointSubject(endpointId), occurredAt: now, data };
}

/**
 * Says that a delivery failed for good. Of the delivery of an operational event nothing is said:
 * two dead endpoints would tell each other of their deaths for ever.
 */
export function exhaustedEvent(job: Job, now: Instant): EventDraft[] {
  const { claimed, endpoint } = job;
  if (/^(endpoint|delivery)\./.test(claimed.eventType)) return [];
  const data = {
    endpoint_id: claimed.endpointId,
    reason: 'attempts_exhausted',
    url: shownUrl(endpoint.url),
    delivery_id: claimed.id,
    event_id: claimed.eventId,
    attempts: claimed.attempts + 1,
  };
  const subject = endpointSubject(claimed.endpointId);
  return [{ type: 'delivery.exhausted', subject, occurredAt: now, data }];
}

function shownUrl(text: string): string {
  const url = new URL(text);
  return url.origin + url.pathname;
}
