/** The events of alerts that begin and end. Pure. */
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { EventDraft } from '../../outbox/events.ts';
import { CONTRADICTED } from './fee-votes.ts';
import type { Alert } from './rule.ts';
import { LATE, STUCK, VANISHED } from './watchdog.ts';

/** None for a wallet that vanished: the observation that shows it is an event. */
export function begunEvents(alert: Alert): EventDraft[] {
  return alert.rule === VANISHED ? [] : [begunEvent(alert)];
}

function begunEvent(alert: Alert): EventDraft {
  const { id, rule, subject, detail, raisedAt } = alert;
  if (rule === STUCK) return draft(STUCK, `operation:${subject}`, raisedAt, detail);
  if (rule === CONTRADICTED) return draft(CONTRADICTED, 'ledger:fee_rule', raisedAt, detail);
  if (rule === LATE) return draft(LATE, 'observer:targets', raisedAt, detail);
  return draft('alert.raised', `alert:${id}`, raisedAt, alertData(alert));
}

/** None for what another event ends: a stuck operation, a fee rule, a vanished wallet. */
export function endedEvents(alert: Alert, at: Instant): EventDraft[] {
  const { id, rule, detail, raisedAt } = alert;
  if (rule === STUCK || rule === CONTRADICTED || rule === VANISHED) return [];
  if (rule !== LATE) {
    const cleared = draft('alert.cleared', `alert:${id}`, at, alertData(alert));
    return [{ ...cleared, last: true }];
  }
  const { observation_age_max_ms } = detail;
  const data = { observation_age_max_ms, late_since: isoText(raisedAt) };
  return [draft('observer.recovered', 'observer:targets', at, data)];
}

function alertData({ id, rule, detail, raisedAt }: Alert): object {
  return { alert_id: id, rule, ...detail, raised_at: isoText(raisedAt) };
}

function draft(type: string, subject: string, occurredAt: Instant, data: object): EventDraft {
  return { type, subject, occurredAt, data } as EventDraft;
}
