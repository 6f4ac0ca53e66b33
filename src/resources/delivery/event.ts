/** The body of an event, as webhooks and the feed carry it, and the catalogue of event types. */
import { exampleOf } from '../example.ts';
import {
  count,
  type Fields,
  id,
  instant,
  json,
  list,
  object,
  oneOf,
  record,
  text,
} from '../fields.ts';
import { resource } from '../resource.ts';
import { EVENT_TYPES, EVENTS, type EventType } from './events.ts';

export const event = resource('Event', {
  id: id('evt'),
  type: text(),
  timestamp: instant('When it happened, as far as known; RFC 3339 in UTC'),
  data: record(),
});

/** What is left of the data of an event whose body was removed. */
const tombstone = {
  body_removed_at: instant(),
  body_sha256: text('Of the body as webhooks had it, in hexadecimal digits'),
};

/** The answer to the removal of a body. */
export const removedBody = resource('RemovedBody', {
  id: id('evt'),
  type: text(),
  removed_at: tombstone.body_removed_at,
  sha256: tombstone.body_sha256,
  deliveries_cancelled: count('Deliveries that still waited for it; none when asked again'),
});

/** The body of events of one type. */
export function bodyOf(type: EventType) {
  const own: Fields = EVENTS[type].data;
  const data = object({ ...own, subject_seq: count('Gap-free from 1 per subject', { min: 1 }) });
  return { ...event.fields, type: oneOf([type]), data };
}

export const eventTypes = resource('EventTypes', {
  data: list(
    object({
      type: oneOf(EVENT_TYPES),
      description: text(),
      since: text('The first version of the daemon that has it'),
      schema: json('JSON Schema of the body; later versions may add members'),
      example: object(event),
    }),
  ),
});

export function exampleOfEvent(type: EventType) {
  const { data, ...rest } = exampleOf(bodyOf(type));
  return { ...rest, data: { ...data, ...EVENTS[type].example } };
}
