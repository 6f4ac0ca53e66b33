/** Events as producers write them, and as they are recorded. */
import type { Instant } from '../kernel/clock.ts';
import type { EventData, EventType } from '../resources/delivery/events.ts';

export type EventDraft = {
  [T in EventType]: { type: T; subject: string; occurredAt: Instant; data: EventData<T> };
}[EventType] & {
  /** Of a producer that numbers the events of its subjects; by default the outbox does. */
  seq?: bigint;
  /** No event about the subject can follow, so that its counter is not kept. */
  last?: boolean;
};

/** A recorded event. */
export interface OutboxEvent {
  id: string;
  type: EventType;
  subject: string;
  subjectSeq: bigint;
  occurredAt: Instant;
  recordedAt: Instant;
}
