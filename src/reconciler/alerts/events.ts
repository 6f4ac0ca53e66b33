/** The events of alerts that begin and end. Pure. */
import type { Instant } from '../../kernel/clock.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Alert } from './rule.ts';
import { LATE, STUCK } from './watchdog.ts';

export function begunEvent({ rule, subject, detail, raisedAt }: Alert): EventDraft {
  if (rule === STUCK) return draft(STUCK, `operation:${subject}`, raisedAt, detail);
  return draft(LATE, 'observer:targets', raisedAt, detail);
}

/** None for a stuck operation: that it settles is an event. */
export function endedEvents({ rule, detail, raisedAt }: Alert, at: Instant): EventDraft[] {
  if (rule === STUCK) return [];
  const { observation_age_max_ms } = detail;
  const data = { observation_age_max_ms, late_since: new Date(raisedAt).toISOString() };
  return [draft('observer.recovered', 'observer:targets', at, data)];
}

function draft(type: string, subject: string, occurredAt: Instant, data: object): EventDraft {
  return { type, subject, occurredAt, data } as EventDraft;
}
