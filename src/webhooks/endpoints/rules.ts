/**
 * What an endpoint may be told to be. Pure. Everything that a caller gives is judged here, once,
 * before it is stored; refusals name the field.
 */
import { Failure } from '../../kernel/errors.ts';
import { isEventPattern } from '../../outbox/events.ts';
import type { AllowedRanges } from '../delivery/address.ts';
import { SCHEMES, type Scheme } from './keys.ts';
import { judgeUrl } from './url.ts';

export const ORDERINGS = ['none', 'subject'] as const;
export type Ordering = (typeof ORDERINGS)[number];

/** What a caller may set; absent at creation: every event, no order, both schemes, no limit. */
export interface EndpointInput {
  url: string;
  /** Exact types, `group.*` or `*`. */
  eventTypes?: readonly string[];
  ordering?: Ordering;
  signing?: readonly Scheme[];
  /** Deliveries per second at most; null: no limit. */
  ratePerS?: number | null;
  /** Extra headers of every request; stored sealed and never shown again. */
  headers?: Readonly<Record<string, string>>;
  description?: string | null;
}

const PATTERNS_MAX = 100;
const HEADERS_MAX = 20;
const HEADER_VALUE_MAX = 4_096;
const DESCRIPTION_MAX = 500;
const RATE = { min: 0.01, max: 1_000 };

/** Headers that belong to HTTP, to us, or to the signature. */
const GROUPS_REFUSED = /^(?:webhook|content|proxy)-/i;
const HEADERS_REFUSED =
  /^(?:host|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect)$/i;

/**
 * The fields that were given, in the form in which they are stored.
 * @throws Failure `invalid_request`, `url_refused`
 */
export function judgeInput<I extends Partial<EndpointInput>>(input: I, allowed: AllowedRanges): I {
  const { url, eventTypes, ordering, signing, ratePerS, headers, description } = input;
  if (eventTypes !== undefined) judgePatterns(eventTypes);
  if (ordering !== undefined && !ORDERINGS.includes(ordering))
    throw new Failure('invalid_request', 'ordering is none or subject');
  if (signing !== undefined) judgeSigning(signing);
  if (ratePerS !== undefined && ratePerS !== null && !isBetween(ratePerS, RATE))
    throw new Failure('invalid_request', 'rate_per_s is a number from 0.01 to 1000');
  if (headers !== undefined) judgeHeaders(headers);
  if (description && description.length > DESCRIPTION_MAX)
    throw new Failure('invalid_request', 'description has at most 500 characters');
  return url === undefined ? input : { ...input, url: judgeUrl(url, allowed).href };
}

function judgePatterns(patterns: readonly string[]): void {
  if (patterns.length === 0 || patterns.length > PATTERNS_MAX)
    throw new Failure('invalid_request', 'event_types holds 1 to 100 types');
  const unknown = patterns.find((pattern) => !isEventPattern(pattern));
  if (unknown !== undefined)
    throw new Failure('invalid_request', `event_types: ${unknown.slice(0, 60)} is not known`);
}

function judgeSigning(signing: readonly string[]): void {
  const known = signing.every((scheme) => SCHEMES.some((s) => s === scheme));
  if (!known || signing.length === 0 || new Set(signing).size < signing.length)
    throw new Failure('invalid_request', 'signing holds v1, v1a or both');
}

function judgeHeaders(headers: Readonly<Record<string, string>>): void {
  const entries = Object.entries(headers);
  if (entries.length > HEADERS_MAX)
    throw new Failure('invalid_request', 'at most 20 extra headers');
  for (const [name, value] of entries) {
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/.test(name) || isRefusedHeader(name))
      throw new Failure('invalid_request', `headers: ${name.slice(0, 60)} may not be set`);
    if (value.length > HEADER_VALUE_MAX || !/^[\t\x20-\x7e]*$/.test(value))
      throw new Failure('invalid_request', `headers: the value of ${name} is not plain text`);
  }
  const names = new Set(entries.map(([name]) => name.toLowerCase()));
  if (names.size < entries.length)
    throw new Failure('invalid_request', 'headers: a name is given twice');
}

function isRefusedHeader(name: string): boolean {
  return GROUPS_REFUSED.test(name) || HEADERS_REFUSED.test(name);
}

function isBetween(value: number, { min, max }: { min: number; max: number }): boolean {
  return Number.isFinite(value) && value >= min && value <= max;
}
