/** A named consumer: a position in the feed that is kept for those who pull, shared by workers. */
import { count, digits, id, instant, list, nullable, object, oneOf, text } from '../fields.ts';
import { resource } from '../resource.ts';
import { event } from './event.ts';

export const CONSUMER_STATES = ['active', 'expired'] as const;

/** Seconds until an event that is not acknowledged is handed out again. */
export const REDELIVER_S = { min: 1, max: 43_200, default: 60 };

/** Events that are read and not acknowledged, of one consumer. */
export const WINDOW_MAX = 1_000;

/** Of one owner. */
export const CONSUMERS_MAX = 100;

export const consumer = resource(
  'Consumer',
  {
    id: id('con'),
    name: text('Unique among those of its owner'),
    event_types: list(text(), 'Exact types, `group.*` or `*`', { title: 'Events' }),
    redeliver_after_s: count(
      'An event that is not acknowledged so many seconds after it was pulled is handed out again',
      { unit: 's' },
    ),
    state: oneOf(
      CONSUMER_STATES,
      'expired: events were pruned before they were pulled; `seek` says where it goes on',
    ),
    position: digits(
      'Every event up to this number of the feed is acknowledged, or of other types',
    ),
    unacknowledged: count(
      `Events after it that were read and are not acknowledged; at most ${WINDOW_MAX}`,
    ),
    in_flight: count('Those of them that a worker has'),
    behind: count('Events of all types that are not read, and those not acknowledged'),
    oldest_event_at: nullable(instant('When the oldest of them was recorded; null without any')),
    missed: count(
      'Events of all types that retention pruned before they were read, as far as a seek has ' +
        'passed them, and events that it pruned before they were acknowledged',
    ),
    created_by: text(undefined, { title: 'Owner' }),
    created_at: instant(),
  },
  { columns: ['name', 'event_types', 'state', 'behind', 'in_flight', 'created_by'] },
);

/** What one pull hands out. The API copies the stored bodies of the events into it as text. */
export const pulled = resource('PulledEvents', {
  data: list(
    object({
      receipt: text('Of this hand-out; `ack` and `release` take it'),
      redelivered: count('How often the event was handed out before'),
      event: object(event),
    }),
    'In order per subject',
  ),
  redeliver_at: nullable(
    instant('When what is not acknowledged is handed out again; null without events'),
  ),
});

const stale = list(
  text(),
  'Receipts that name nothing any more: acknowledged before, handed out again, or before a seek',
);

export const acknowledged = resource('Acknowledged', { acknowledged: count(), stale });

export const released = resource('Released', { released: count(), stale });
