/** A delivery of an event to an endpoint, its attempts, and replays of the events of a time. */
import { PROXY_FAULTS, TLS_FAULTS } from '../faults.ts';
import {
  count,
  digits,
  flag,
  id,
  instant,
  json,
  list,
  nullable,
  number,
  oneOf,
  text,
} from '../fields.ts';
import { resource } from '../resource.ts';
import { TOKEN_FAULTS } from './auth.ts';
import { BROKER_FAULTS } from './destination.ts';
import { EVENT_TYPES } from './events.ts';

export const DELIVERY_STATES = [
  'pending',
  'held',
  'sending',
  'delivered',
  'exhausted',
  'cancelled',
] as const;

export const delivery = resource(
  'Delivery',
  {
    id: id('dlv'),
    endpoint_id: id('ep', undefined, { title: 'Endpoint' }),
    endpoint_url: nullable(
      text('Only the origin for a key of another owner; null once the endpoint is removed'),
    ),
    event_id: id('evt'),
    event_type: text(),
    subject: text(),
    subject_seq: digits('Gap-free from 1 per subject'),
    state: oneOf(DELIVERY_STATES, 'held: until its endpoint is enabled'),
    due_at: nullable(instant('Time of the next attempt while pending')),
    attempts: count(),
    failing: flag('It waits, pending or held, and its last attempt failed'),
    last_status: nullable(count('HTTP status of the last attempt', { title: 'Last answer' })),
    last_error: nullable(text('Why the last attempt has no whole response; only for its owner')),
    created_at: instant(undefined, { title: 'Event of' }),
    finished_at: nullable(instant(undefined, { title: 'Ended, or next attempt' })),
  },
  {
    columns: [
      'created_at',
      'id',
      'event_type',
      'subject',
      'state',
      'attempts',
      'last_status',
      'finished_at',
      'endpoint_id',
    ],
    filters: {
      endpoint_id: id('ep'),
      event_id: id('evt'),
      event_type: oneOf(EVENT_TYPES),
      state: oneOf(DELIVERY_STATES),
      since: instant('Its event was recorded at or after this'),
      until: instant('And before this'),
    },
  },
);

export const deliveryDetail = resource('DeliveryDetail', {
  ...delivery.fields,
  request_body: nullable(
    text('The exact body of every attempt; null once the event or its body was removed'),
  ),
  body_removed_at: nullable(
    instant('When the body of its event was removed; what still waited for it was cancelled'),
  ),
});

const BROKER = Object.keys(BROKER_FAULTS).join(', ');
const FAULTS =
  `of TLS ${TLS_FAULTS.join(', ')}; of a forward proxy ${PROXY_FAULTS.join(', ')}; ` +
  `of a broker ${BROKER}; of OAuth 2 ${Object.keys(TOKEN_FAULTS).join(', ')}`;

export const attempt = resource('Attempt', {
  n: count(),
  at: instant(),
  duration_ms: count(),
  result: text('delivered, retry, exhausted or gone'),
  status: nullable(count('Of HTTP; null for a broker, whose success has no error')),
  error: nullable(
    text(`Why there is no whole response: timeout, refused, reset, dns and others; ${FAULTS}`),
  ),
  response_body: nullable(text('Beginning of the body, without the secrets of the endpoint')),
  response_headers: json(),
});

/** Which events a replay sends. */
export const WHICH_WORDS = {
  failed: 'exhausted and cancelled deliveries',
  missing: 'events without a delivery, such as those from before the endpoint',
  all: 'both, and what was delivered',
};
export type Which = keyof typeof WHICH_WORDS;
export const WHICH = Object.keys(WHICH_WORDS) as Which[];

/** Events that a dry run examines at most. */
export const COUNTED_MAX = 100_000;

export const replay = resource('Replay', {
  id: nullable(id('rpl', 'Null for a dry run')),
  endpoint_id: id('ep'),
  since: instant('Events recorded from then on'),
  until: instant('And before'),
  types: list(text(), 'Exact types or `group.*`; empty for all that the endpoint subscribes to'),
  which: oneOf(WHICH),
  state: oneOf(['running', 'done', 'cancelled', 'dry_run']),
  examined: count(`Events of all types; of a dry run ${COUNTED_MAX} at most`),
  queued: count('Deliveries'),
  reached: nullable(instant('Events before it were examined')),
  progress: nullable(number('The part of its time that is examined, from 0 to 1')),
  created_by: nullable(text()),
  created_at: nullable(instant()),
  finished_at: nullable(instant()),
});

export const replayFilters = { endpoint_id: id('ep') };
