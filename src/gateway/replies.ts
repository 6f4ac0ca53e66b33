/**
 * What the gateway says itself, and what of the service's answers it passes on. Pure.
 */

import type { Instant } from '../kernel/clock.ts';
import { Failure, problemOf } from '../kernel/errors.ts';
import { type Json, jsonText } from '../kernel/json.ts';
import { type KeyedOperation, type Operation, operationFields } from '../operations/operations.ts';

/** An answer as bytes: what is written to the caller, unchanged. */
export interface Answer {
  status: number;
  headers: [string, string][];
  body: Uint8Array;
}

/** The headers of the service that a caller gets; the rest belongs to the connection. */
const PASSED_ON = new Set([
  'content-type',
  'location',
  'retry-after',
  'www-authenticate',
  'set-cookie',
  // Without these the bytes cannot be read, a token could be cached, and a 405 says nothing.
  'content-encoding',
  'cache-control',
  'allow',
]);

/** The service's answer as the caller gets it: status and body bytes as they came. */
export function passedOn(answer: Answer, extra: [string, string][] = []): Answer {
  const headers = answer.headers.filter(([name]) => PASSED_ON.has(name.toLowerCase()));
  return { status: answer.status, headers: [...headers, ...extra], body: answer.body };
}

/**
 * One of our own refusals as a problem document (RFC 9457), with Retry-After where it names a wait.
 */
export function problemAnswer(error: unknown, extra: [string, string][] = []): Answer {
  const problem = problemOf(error);
  const wait = problem.retry_after_s;
  const headers: [string, string][] = [['content-type', 'application/problem+json'], ...extra];
  if (typeof wait === 'number') headers.push(['retry-after', String(wait)]);
  return { status: problem.status, headers, body: Buffer.from(jsonText(problem)) };
}

/** The service set a deadline for this class of traffic: its remaining seconds, in our own 429. */
export function throttled(
  until: Instant | undefined,
  now: Instant,
  members: Record<string, unknown> = {},
): Failure {
  const wait =
    until === undefined ? {} : { retry_after_s: Math.max(1, Math.ceil((until - now) / 1000)) };
  return new Failure('upstream_throttled', 'the service set this deadline', {
    ...members,
    ...wait,
  });
}

/** The service's own way of saying 401 on that path (interface, sections 7.1 and 7.2). */
export function unauthorizedAnswer(path: string): Answer {
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

/** The headers that tell a caller which operation this was. */
export function operationHeaders(operation: Operation): [string, string][] {
  return [
    ['tallyhook-operation', operation.id],
    ['tallyhook-outcome', callerOutcome(operation)],
  ];
}

function callerOutcome({ state }: Operation): string {
  return state === 'unknown' || state === 'undecided' ? 'unknown' : state;
}

/** The caller chose to wait: its operation as it stands, and where to ask for it again. */
export function queuedAnswer(operation: Operation, extra: [string, string][] = []): Answer {
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

/** What a repeat of an idempotent write is answered; nothing is ever sent for it. */
export function replayAnswer(held: KeyedOperation, fingerprint: string): Answer {
  const { operation, answer } = held;
  const members = { operation_id: operation.id, state: operation.state };
  if (held.fingerprint !== fingerprint) {
    return problemAnswer(new Failure('idempotency_mismatch', undefined, members));
  }
  const headers = [
    ...operationHeaders(operation),
    ['idempotency-replayed', 'true'] as [string, string],
  ];
  switch (operation.state) {
    case 'queued':
      return queuedAnswer(operation, [['idempotency-replayed', 'true']]);
    case 'recorded':
    case 'sending':
      return problemAnswer(new Failure('idempotency_in_flight', undefined, members), headers);
    case 'unknown':
    case 'undecided':
      return problemAnswer(new Failure('outcome_unknown', undefined, members), headers);
    case 'not_executed':
    case 'cancelled':
      return problemAnswer(new Failure('not_executed', undefined, members), headers);
    default:
      break;
  }
  const answered = operation.effectiveBasis === 'answer' || operation.state === 'rejected';
  if (answered && answer.status !== null && answer.body) {
    const stored = { status: answer.status, headers: pairs(answer.headers), body: answer.body };
    return passedOn(stored, headers);
  }
  const data = recoveredData(operation);
  if (!data)
    return problemAnswer(new Failure('executed_without_number', undefined, members), headers);
  return {
    status: 200,
    headers: [['content-type', 'application/json'], ...headers],
    body: Buffer.from(jsonText({ status: 200, data })),
  };
}

/** The service's success data of an operation whose answer was lost but whose ids were found. */
function recoveredData({ kind, txHash, tokenId, txLogNo, txAppNo }: Operation) {
  if (txLogNo !== null && txAppNo !== null) return { tx_app_no: txAppNo, tx_log_no: txLogNo };
  if (txHash === null) return undefined;
  if (kind !== 'mint_sequential') return { tx_hash: txHash };
  return tokenId === null ? undefined : { tx_hash: txHash, tokenId };
}

function pairs(headers: Json): [string, string][] {
  return Array.isArray(headers) ? (headers as [string, string][]) : [];
}
