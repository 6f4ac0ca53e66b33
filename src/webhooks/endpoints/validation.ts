/** Validation of an endpoint's fields before they are stored. Pure; errors name the field. */
import { Failure } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import {
  ORDERINGS,
  type Ordering,
  SCHEMES,
  type Scheme,
} from '../../resources/delivery/endpoint.ts';
import { isEventPattern } from '../../resources/delivery/events.ts';
import { type UrlRules, validateUrl } from './address.ts';
import type { AuthSettings } from './destination/auth.ts';
import { checkDestination, type DestinationSettings } from './destination/destination.ts';
import { checkFilter } from './filter.ts';

/** Defaults at creation: every event, no ordering, both schemes, no limits of its own. */
export interface EndpointInput {
  /** Of an HTTP receiver. */
  url?: string | undefined;
  /** Of a broker, instead of `url`; stored encrypted and never shown again. */
  destination?: DestinationSettings | undefined;
  /** Exact types, `group.*` or `*`. */
  eventTypes?: string[];
  /** A query over the body of events, see `filter.ts`; null: all of its types. */
  filter?: Json;
  ordering?: Ordering;
  signing?: Scheme[];
  /** Deliveries per second; null: no limit. */
  ratePerS?: number | null;
  /** The waits before its retries, in seconds; null: the common schedule. */
  retrySchedule?: number[] | null;
  /** Of an attempt up to the head of its response; null: the setting. */
  timeoutMs?: number | null;
  /** Attempts in flight; null: the setting. */
  maxInFlight?: number | null;
  /** Extra headers of every request; stored encrypted and never shown again. */
  headers?: Readonly<Record<string, string>>;
  /** Beside headers; null removes it. Stored encrypted and never shown again. */
  auth?: AuthSettings | null;
  description?: string | null;
}

const PATTERNS_MAX = 100;
const HEADERS_MAX = 20;
const HEADER_VALUE_MAX = 4_096;
const DESCRIPTION_MAX = 500;
const RATE = { min: 0.01, max: 1_000 };
const STEPS_MAX = 20;
const STEP_S = { min: 1, max: 86_400 };
const SCHEDULE_S_MAX = 7 * 86_400;
const TIMEOUT_MS_MIN = 1_000;

/** What an endpoint may not exceed: the settings of all of them. */
export interface EndpointLimits extends UrlRules {
  timeoutMsMax: number;
  inFlightMax: number;
}

/** Headers that HTTP, the daemon or the signature sets. */
const GROUPS_REFUSED = /^(?:webhook|content|proxy)-/i;
const HEADERS_REFUSED =
  /^(?:host|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect)$/i;

/**
 * The input, with its URL in normal form; the URL of a broker is the address that is shown.
 * @throws Failure `invalid_request`, `url_refused`
 */
export function validateInput<I extends Partial<EndpointInput>>(
  input: I,
  limits: EndpointLimits,
): I {
  const { url, destination, eventTypes, filter, ordering, signing } = input;
  const { ratePerS, headers, auth, description } = input;
  if (eventTypes !== undefined) checkPatterns(eventTypes);
  if (filter !== undefined && filter !== null) checkFilter(filter);
  if (ordering !== undefined && !ORDERINGS.includes(ordering))
    throw new Failure('invalid_request', 'ordering must be none or subject');
  if (signing !== undefined) checkSigning(signing);
  if (ratePerS !== undefined && ratePerS !== null && !isBetween(ratePerS, RATE))
    throw new Failure('invalid_request', 'rate_per_s must be a number from 0.01 to 1000');
  checkSending(input, limits);
  if (headers !== undefined) checkHeaders(headers);
  if (description && description.length > DESCRIPTION_MAX)
    throw new Failure('invalid_request', 'description may have at most 500 characters');
  if (destination !== undefined) {
    if (url !== undefined)
      throw new Failure('invalid_request', 'give url or destination, not both');
    if (headers || auth) throw new Failure('invalid_request', 'headers and auth are for HTTP only');
    return { ...input, url: checkDestination(destination, limits) };
  }
  return url === undefined ? input : { ...input, url: validateUrl(url, limits).href };
}

function checkSending(
  { retrySchedule = null, timeoutMs = null, maxInFlight = null }: Partial<EndpointInput>,
  { timeoutMsMax, inFlightMax }: EndpointLimits,
): void {
  if (retrySchedule !== null) checkSchedule(retrySchedule);
  // A setting below the least leaves the least.
  const timeout = { min: TIMEOUT_MS_MIN, max: Math.max(TIMEOUT_MS_MIN, timeoutMsMax) };
  if (timeoutMs !== null && !isWholeBetween(timeoutMs, timeout))
    throw new Failure(
      'invalid_request',
      `timeout_ms must be a whole number from ${timeout.min} to ${timeout.max}, which is the ` +
        'setting webhooks.attempt_timeout_ms',
    );
  if (maxInFlight !== null && !isWholeBetween(maxInFlight, { min: 1, max: inFlightMax }))
    throw new Failure(
      'invalid_request',
      `max_in_flight must be a whole number from 1 to ${inFlightMax}, which is the setting ` +
        'webhooks.in_flight_per_endpoint_max',
    );
}

function checkSchedule(steps: readonly number[]): void {
  if (steps.length === 0 || steps.length > STEPS_MAX)
    throw new Failure('invalid_request', 'retry_schedule must have 1 to 20 steps');
  const wrong = steps.findIndex((step) => !isWholeBetween(step, STEP_S));
  if (wrong >= 0)
    throw new Failure(
      'invalid_request',
      `retry_schedule[${wrong}] must be a whole number of seconds from 1 to 86400`,
    );
  if (steps.reduce((sum, step) => sum + step, 0) > SCHEDULE_S_MAX)
    throw new Failure('invalid_request', 'retry_schedule may last at most 604800 seconds in all');
}

function checkPatterns(patterns: readonly string[]): void {
  if (patterns.length === 0 || patterns.length > PATTERNS_MAX)
    throw new Failure('invalid_request', 'event_types must have 1 to 100 types');
  const unknown = patterns.find((pattern) => !isEventPattern(pattern));
  if (unknown !== undefined)
    throw new Failure(
      'invalid_request',
      `event_types: ${unknown.slice(0, 60)} is not an event type`,
    );
}

function checkSigning(signing: readonly string[]): void {
  const known = signing.every((scheme) => SCHEMES.some((s) => s === scheme));
  if (!known || signing.length === 0 || new Set(signing).size < signing.length)
    throw new Failure('invalid_request', 'signing must be v1, v1a or both');
}

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  const entries = Object.entries(headers);
  if (entries.length > HEADERS_MAX)
    throw new Failure('invalid_request', 'headers may have at most 20 entries');
  for (const [name, value] of entries) {
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/.test(name) || isRefusedHeader(name))
      throw new Failure('invalid_request', `headers: ${name.slice(0, 60)} may not be set`);
    if (value.length > HEADER_VALUE_MAX || !/^[\t\x20-\x7e]*$/.test(value))
      throw new Failure(
        'invalid_request',
        `headers: the value of ${name} must be printable ASCII, at most 4096 characters`,
      );
  }
  const names = new Set(entries.map(([name]) => name.toLowerCase()));
  if (names.size < entries.length)
    throw new Failure('invalid_request', 'headers: a name occurs twice');
}

function isRefusedHeader(name: string): boolean {
  return GROUPS_REFUSED.test(name) || HEADERS_REFUSED.test(name);
}

function isWholeBetween(value: number, range: { min: number; max: number }): boolean {
  return Number.isInteger(value) && isBetween(value, range);
}

function isBetween(value: number, { min, max }: { min: number; max: number }): boolean {
  return Number.isFinite(value) && value >= min && value <= max;
}
