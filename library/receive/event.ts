/** The body of a webhook as an event. */
import { WebhookError } from './errors.ts';
import type { EventType, TallyhookEvent } from './events.ts';
import { bytesOf } from './verify.ts';

/** An event of any type, also of one that a newer daemon added. */
export interface AnyEvent {
  /** `evt_…`, the same for every endpoint and attempt. */
  id: string;
  type: string;
  /** When it happened, as far as known; RFC 3339 in UTC. */
  timestamp: string;
  data: { subject_seq: number };
}

/** The events of one type. */
export type EventOf<T extends EventType> = Extract<TallyhookEvent, { type: T }>;

/** The event in a verified body. @throws WebhookError `bad_event` */
export function parseEvent(body: Uint8Array | string, id: string): AnyEvent {
  let event: Partial<AnyEvent> | null;
  try {
    event = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(body)));
  } catch {
    throw new WebhookError('bad_event', 'the body is not JSON');
  }
  const isEvent =
    typeof event?.type === 'string' &&
    typeof event.timestamp === 'string' &&
    Number.isSafeInteger(event.data?.subject_seq);
  if (!isEvent) throw new WebhookError('bad_event', 'the body is no event of Tallyhook');
  if (event?.id !== id)
    throw new WebhookError('bad_event', 'the body has another id than the header webhook-id');
  return event as AnyEvent;
}
