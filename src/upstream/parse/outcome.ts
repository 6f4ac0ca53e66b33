/**
 * Classifies an exchange as a write (the table of the design, section 4) and for the rate limits.
 * Pure. The body decides, not the HTTP status, because the service answers errors with 200. A
 * write classified as rejected or unavailable may be sent again, so only what the interface names
 * as a refusal is one; everything doubtful is unknown.
 */
import { isTxHash } from '../../kernel/addresses.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { unreachable } from '../../kernel/errors.ts';
import { type Json, membersOf } from '../../kernel/json.ts';
import { parseRetryAfter } from '../../kernel/retry.ts';
import type { Answer, ExchangeResult, NotSentCause, UnknownCause } from '../http/exchange.ts';
import { type Envelope, headerOf, mentionsMaintenance, parseEnvelope } from './envelope.ts';
import { transactionResult } from './records.ts';

/** The class of a write's answer. */
export type WriteOutcome =
  | {
      class: 'accepted';
      txAppNo?: bigint | undefined;
      txLogNo?: bigint | undefined;
      txHash?: string | undefined;
      tokenId?: bigint | undefined;
    }
  | {
      class: 'rejected';
      status: number;
      /** The service's own code (`199`, `invalid_grant`), or the status as text. */
      code: string;
      message: string;
      /** What of the caller is refused; absent when the request itself is. */
      refuses?: 'credential' | 'rights' | undefined;
    }
  | {
      class: 'unavailable';
      reason: 'maintenance' | 'throttled';
      retryAt?: Instant | undefined;
    }
  | { class: 'not_sent'; cause: NotSentCause }
  /** `status` is the HTTP status, if one was read. */
  | { class: 'unknown'; cause: UnknownCause; status?: number | undefined };

type OutcomeClass = WriteOutcome['class'];
export const OUTCOME_CLASSES: readonly OutcomeClass[] = [
  'accepted',
  'rejected',
  'unavailable',
  'not_sent',
  'unknown',
];

/** `transaction`, `nft` and `other` are writes; everything else is `read`. */
export type ForwardFamily = 'transaction' | 'nft' | 'other' | 'read';

/** Statuses, of the body or of HTTP, with which the service refuses and applies nothing. */
const REFUSALS = [400, 401, 403, 404, 405, 406, 422];

export function classifyExchange(exchanged: ExchangeResult, family: ForwardFamily): WriteOutcome {
  switch (exchanged.end) {
    case 'not_sent':
      return { class: 'not_sent', cause: exchanged.cause };
    case 'broken':
      return unknown(exchanged.cause, exchanged.answer?.status);
    case 'streamed':
      // Only reads are streamed, and only their head is classified.
      return exchanged.answer.status < 400
        ? { class: 'accepted' }
        : unknown('too_large', exchanged.answer.status);
    case 'answered':
      return classifyAnswer(exchanged.answer, family, exchanged.endedAt);
    default:
      return unreachable(exchanged);
  }
}

/** What an exchange says about the limits of the service. */
export type RateSignal =
  | { kind: 'throttled' | 'maintenance'; retryAt?: Instant | undefined }
  | { kind: 'answered' }
  /** No answer, which says nothing about limits. */
  | { kind: 'none' };

export function rateSignalOf(exchanged: ExchangeResult): RateSignal {
  if (exchanged.end === 'not_sent' || !exchanged.answer) return { kind: 'none' };
  const { answer, endedAt } = exchanged;
  const retryAt = retryAtOf(answer, endedAt);
  if (exchanged.end !== 'answered')
    return answer.status === 429 ? { kind: 'throttled', retryAt } : { kind: 'none' };
  const unavailable = unavailability(answer, parseEnvelope(answer.body), endedAt);
  if (unavailable) return { kind: unavailable.reason, retryAt };
  // A 503 with a deadline but without maintenance asks for fewer requests.
  if (answer.status === 503 && retryAt !== undefined) return { kind: 'throttled', retryAt };
  return { kind: 'answered' };
}

function retryAtOf(answer: Answer, now: Instant): Instant | undefined {
  return parseRetryAfter(headerOf(answer, 'retry-after'), now, headerOf(answer, 'date'));
}

/** True when the service refused the credential, such as an expired token. */
export function isUnauthorized(outcome: WriteOutcome): boolean {
  return outcome.class === 'rejected' && outcome.refuses === 'credential';
}

/** The statuses and codes of all error families that refuse the caller, not the request. */
const CALLER_REFUSALS = new Map<string, 'credential' | 'rights'>([
  ['401', 'credential'],
  ['403', 'rights'],
  ['invalid_token', 'credential'],
  ['invalid_grant', 'credential'],
  ['unauthorized_client', 'rights'],
]);

function rejected(status: number, code: string, message: string): WriteOutcome {
  const refuses = CALLER_REFUSALS.get(String(status)) ?? CALLER_REFUSALS.get(code);
  return { class: 'rejected', status, code, message, refuses };
}

function classifyAnswer(answer: Answer, family: ForwardFamily, now: Instant): WriteOutcome {
  const envelope = parseEnvelope(answer.body);
  const unavailable = unavailability(answer, envelope, now);
  if (unavailable) return unavailable;
  switch (envelope.shape) {
    case 'success':
      return isSuccess(answer.status)
        ? classifyData(envelope.data, family, answer.status)
        : unknown(answer.status >= 500 ? 'server_error' : 'unexpected', answer.status);
    case 'error':
      return classifyError(envelope, answer.status);
    default:
      return classifyStatus(answer, envelope, family);
  }
}

/** Detects 429, and a 503 that mentions maintenance. */
function unavailability(
  answer: Answer,
  envelope: Envelope,
  now: Instant,
): (WriteOutcome & { class: 'unavailable' }) | undefined {
  const has = (status: number) =>
    answer.status === status || (envelope.shape === 'error' && envelope.status === status);
  // A success envelope under such a status contradicts itself and proves nothing.
  if (envelope.shape === 'success') return undefined;
  const retryAt = retryAtOf(answer, now);
  if (has(429)) return { class: 'unavailable', reason: 'throttled', retryAt };
  if (!has(503) || !mentionsMaintenance(answer, envelope)) return undefined;
  return { class: 'unavailable', reason: 'maintenance', retryAt };
}

function classifyData(data: Json, family: ForwardFamily, status: number): WriteOutcome {
  const ids = idsIn(data);
  const complete =
    family === 'transaction'
      ? ids.txLogNo !== undefined
      : family !== 'nft' || ids.txHash !== undefined;
  return complete ? { class: 'accepted', ...ids } : unknown('no_number', status);
}

/** The well-formed numbers and hash in the data of a success envelope. */
function idsIn(data: Json) {
  const transaction = transactionResult.safeParse(data).data;
  const { tx_hash: hash, tokenId } = membersOf(data);
  return {
    txLogNo: transaction?.txLogNo,
    txAppNo: transaction?.txAppNo,
    txHash: typeof hash === 'string' && isTxHash(hash) ? hash : undefined,
    tokenId: wholeOf(tokenId),
  };
}

function classifyError(error: Envelope & { shape: 'error' }, httpStatus: number): WriteOutcome {
  const { status, code, message } = error;
  // 500/997, invalid parameter, is the one failure that cannot follow an applied write.
  if (REFUSALS.includes(status) || (status === 500 && code === '997'))
    return rejected(status, code, message);
  return unknown(status >= 500 || httpStatus >= 500 ? 'server_error' : 'unexpected', httpStatus);
}

/** Classifies by the HTTP status an answer whose body has none of the service's shapes. */
function classifyStatus(answer: Answer, envelope: Envelope, family: ForwardFamily): WriteOutcome {
  const { status } = answer;
  if (REFUSALS.includes(status)) return rejected(status, String(status), '');
  if (status >= 500) return unknown('server_error', status);
  // Reads have other shapes, too: token records, redirects to the login page.
  if (family === 'read' && status < 400) return { class: 'accepted' };
  if (isSuccess(status) && envelope.shape === 'unreadable') return unknown('unreadable', status);
  return unknown(isSuccess(status) ? 'no_number' : 'unexpected', status);
}

function isSuccess(httpStatus: number): boolean {
  return httpStatus >= 200 && httpStatus < 300;
}

function unknown(cause: UnknownCause, status: number | undefined): WriteOutcome {
  return { class: 'unknown', cause, status };
}
