/** The gateway's responses: forwarded answers, replays, and its own. Pure. */
import type { Instant } from '../kernel/clock.ts';
import { type ErrorCode, Failure, problemOf } from '../kernel/errors.ts';
import { type Json, jsonText } from '../kernel/json.ts';
import {
  type KeyedOperation,
  type Operation,
  operationFields,
  type State,
} from '../operations/operations.ts';

export interface GatewayResponse {
  status: number;
  headers: [string, string][];
  body: Uint8Array;
}

/** The service's headers that are returned to the caller. */
const RETURNED_HEADERS = new Set([
  'content-type',
  'location',
  'retry-after',
  'www-authenticate',
  'set-cookie',
  'content-encoding',
  'content-disposition',
  'cache-control',
  'allow',
  // The console has the same origin, so pages of the service keep the limits that it sets them.
  'content-security-policy',
  'content-security-policy-report-only',
  'cross-origin-embedder-policy',
  'cross-origin-opener-policy',
  'cross-origin-resource-policy',
  'permissions-policy',
  'referrer-policy',
  'x-frame-options',
]);
/** Nothing that the service answers becomes a page by its content alone. */
const NOT_SNIFFED: [string, string] = ['x-content-type-options', 'nosniff'];

/** An answer of the service, with status and body unchanged. */
export function forwardedResponse(
  answer: GatewayResponse,
  extra: [string, string][] = [],
): GatewayResponse {
  const headers = answer.headers.filter(([name]) => RETURNED_HEADERS.has(name.toLowerCase()));
  return { status: answer.status, headers: [...headers, NOT_SNIFFED, ...extra], body: answer.body };
}

/** When a 503 of ours may have ended, such as the time in which Postgres restarts. */
const RETRY_AFTER_S = 2;

/** A problem document (RFC 9457); its member `retry_after_s` also becomes Retry-After. */
export function problemResponse(error: unknown, extra: [string, string][] = []): GatewayResponse {
  const problem = problemOf(error);
  const wait = problem.retry_after_s ?? (problem.status === 503 ? RETRY_AFTER_S : undefined);
  const headers: [string, string][] = [['content-type', 'application/problem+json'], ...extra];
  if (typeof wait === 'number') headers.push(['retry-after', String(wait)]);
  return { status: problem.status, headers, body: Buffer.from(jsonText(problem)) };
}

/** @param until the Retry-After deadline that the service set for this class of traffic */
export function throttledFailure(
  until: Instant | undefined,
  now: Instant,
  members: Record<string, unknown> = {},
): Failure {
  const wait =
    until === undefined ? {} : { retry_after_s: Math.max(1, Math.ceil((until - now) / 1000)) };
  return new Failure('upstream_throttled', 'the service set Retry-After', { ...members, ...wait });
}

/** A 401 in the format of the service on that path (interface, sections 7.1 and 7.2). */
export function unauthorizedResponse(path: string): GatewayResponse {
  const headers: [string, string][] = [['content-type', 'application/json']];
  const message = 'Unauthorized: send Authorization: Bearer thk_… or Tallyhook-Key: thk_…';
  if (path.startsWith('/v1/app/')) {
    const body = { status: '406', error: { code: '401', message } };
    return { status: 406, headers, body: Buffer.from(jsonText(body)) };
  }
  const body = {
    status: 401,
    error: [{ message, field: 'Authorization', validation: 'required' }],
  };
  return { status: 200, headers, body: Buffer.from(jsonText(body)) };
}

export function operationHeaders(operation: Operation): [string, string][] {
  return [
    ['tallyhook-operation', operation.id],
    ['tallyhook-outcome', operation.state === 'undecided' ? 'unknown' : operation.state],
  ];
}

/** A 202 with the operation and its address, for a caller that chose to wait. */
export function queuedResponse(
  operation: Operation,
  extra: [string, string][] = [],
): GatewayResponse {
  const body = { id: operation.id, ...operationFields(operation) };
  return {
    status: 202,
    headers: [
      ['content-type', 'application/json'],
      ['location', `/api/operations/${operation.id}`],
      ['preference-applied', 'respond-async'],
      ...operationHeaders(operation),
      ...extra,
    ],
    body: Buffer.from(jsonText(body)),
  };
}

/** The errors that repeats get of operations without an answer to replay. */
const REPLAY_ERRORS: Partial<Record<State, ErrorCode>> = {
  sending: 'idempotency_in_flight',
  unknown: 'outcome_unknown',
  undecided: 'outcome_unknown',
  not_executed: 'not_executed',
  cancelled: 'not_executed',
};

/** The response to a repeat of an idempotent write. */
export function replayResponse(held: KeyedOperation, fingerprint: string): GatewayResponse {
  const { operation, answer } = held;
  const members = { operation_id: operation.id, state: operation.state };
  if (held.fingerprint !== fingerprint) {
    return problemResponse(new Failure('idempotency_mismatch', undefined, members));
  }
  const replayed: [string, string] = ['idempotency-replayed', 'true'];
  if (operation.state === 'queued') return queuedResponse(operation, [replayed]);
  const headers = [...operationHeaders(operation), replayed];
  const code = REPLAY_ERRORS[operation.state];
  if (code) return problemResponse(new Failure(code, undefined, members), headers);
  const answered = operation.effectiveBasis === 'answer' || operation.state === 'rejected';
  if (answered && answer.status !== null && answer.body) {
    const stored = { status: answer.status, headers: pairs(answer.headers), body: answer.body };
    return forwardedResponse(stored, headers);
  }
  const data = recoveredData(operation);
  if (!data)
    return problemResponse(new Failure('executed_without_number', undefined, members), headers);
  return {
    status: 200,
    headers: [['content-type', 'application/json'], ...headers],
    body: Buffer.from(jsonText({ status: 200, data })),
  };
}

/** The service's success data for an operation with a lost answer; undefined without its ids. */
function recoveredData({ kind, txHash, tokenId, txLogNo, txAppNo }: Operation) {
  if (txLogNo !== null && txAppNo !== null) return { tx_app_no: txAppNo, tx_log_no: txLogNo };
  if (txHash === null) return undefined;
  if (kind !== 'mint_sequential') return { tx_hash: txHash };
  return tokenId === null ? undefined : { tx_hash: txHash, tokenId };
}

function pairs(headers: Json): [string, string][] {
  return Array.isArray(headers) ? (headers as [string, string][]) : [];
}
