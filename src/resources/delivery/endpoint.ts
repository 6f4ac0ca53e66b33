/** An endpoint: a receiver of webhooks, with its health. */
import {
  count,
  flag,
  id,
  instant,
  json,
  list,
  nullable,
  number,
  object,
  oneOf,
  text,
} from '../fields.ts';
import { resource } from '../resource.ts';
import { AUTH_KINDS } from './auth.ts';
import { DESTINATION_KINDS } from './destination.ts';

/** Of signatures: `v1` is symmetric, `v1a` asymmetric. */
export const SCHEMES = ['v1', 'v1a'] as const;
export type Scheme = (typeof SCHEMES)[number];

/** `subject`: at most one delivery in flight per subject, in order. */
export const ORDERINGS = ['none', 'subject'] as const;
export type Ordering = (typeof ORDERINGS)[number];

const ENDPOINT_STATES = ['enabled', 'disabled'] as const;

/** What becomes of the deliveries that were held while an endpoint was disabled. */
export const HELD_CHOICES = ['release', 'skip'] as const;
export type HeldChoice = (typeof HELD_CHOICES)[number];

/** Without its secrets and the values of its headers. */
export const endpoint = resource('Endpoint', {
  id: id('ep'),
  kind: oneOf(DESTINATION_KINDS, 'What it sends to'),
  url: text(
    'Of a broker its kind, address and topic or queue; only its origin for a key of another owner',
    { title: 'Receiver' },
  ),
  description: nullable(text()),
  event_types: list(text(), 'Exact types, `group.*` or `*`', { title: 'Events' }),
  filter: json(
    'A query over the body of events, such as {"data.addr": "0x…"}; what it does not match is ' +
      'not delivered; null for none',
  ),
  ordering: oneOf(ORDERINGS, '`subject`: in order per wallet, token or operation'),
  signing: list(oneOf(SCHEMES)),
  rate_per_s: nullable(number('Deliveries per second; null for no limit')),
  retry_schedule: nullable(
    list(count(), 'The waits before its retries, in seconds; null for the common schedule', {
      unit: 's',
    }),
  ),
  timeout_ms: nullable(
    count('Of an attempt up to the status of its answer; null for the setting', { unit: 'ms' }),
  ),
  max_in_flight: nullable(
    count('Attempts in flight, divided among the daemons; at least one of each; null: the setting'),
  ),
  header_names: list(text(), 'Extra headers of every request; their values are never shown'),
  auth: list(
    oneOf(AUTH_KINDS),
    'How requests are authenticated beside headers; `authority`: the receiver by its own',
  ),
  certificate_expires_at: nullable(instant('Of the client certificate')),
  public_key: nullable(text('Of `v1a`')),
  keys: list(
    object({ scheme: oneOf(SCHEMES), from: instant(), until: nullable(instant()) }),
    'Active signing keys, newest first; during a rotation there are several per scheme',
  ),
  state: oneOf(ENDPOINT_STATES),
  state_reason: nullable(text('gone, failing or requested while disabled')),
  state_at: instant(),
  created_by: text(undefined, { title: 'Owner' }),
  created_at: instant(),
});

export const health = {
  consecutive_failures: count(),
  failing_since: nullable(instant('The first failure since the last success')),
  paused_until: nullable(instant('Nothing is sent before this')),
  last_success_at: nullable(instant()),
};

export const endpointDetail = resource(
  'EndpointDetail',
  { ...endpoint.fields, health: object(health) },
  {
    columns: ['url', 'health', 'event_types', 'created_by'],
    filters: { failing: flag('Only those that fail, or that failures disabled') },
  },
);

const withKeys = {
  ...endpoint.fields,
  secret: nullable(text('whsec_…; only in the response that creates it')),
  new_public_key: nullable(text('whpk_…, if it is new')),
};

export const endpointWithKeys = resource('EndpointWithKeys', withKeys);

export const changedEndpoint = resource('ChangedEndpoint', {
  ...withKeys,
  removed_headers: list(text(), 'Names of the headers that the change of origin removed'),
  removed_auth: flag('The change of origin removed the authentication'),
});

/** What a filter does with one event. */
export const filterTest = resource('FilterTest', {
  matches: flag('The endpoint gets the event, if it subscribes to its type'),
  body: json('The body of the event, over which the filter is'),
});
