/**
 * What an exchange means for a write. Pure; the table of the design, section 4, in code.
 *
 * The body decides where it speaks, whatever the HTTP status: the service answers errors with 200.
 * Whoever is in doubt here says unknown. A write called rejected or unavailable may be sent again,
 * so only what the interface names as a refusal is one.
 */
import { isTxHash } from '../../kernel/addresses.ts';
import { parseWhole, wholeOf } from '../../kernel/amounts.ts';
import { unreachable } from '../../kernel/assert.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { parseRetryAfter } from '../../kernel/retry-after.ts';
import type { Exchanged } from '../http/exchange.ts';
import type { Answer, ForwardFamily, UnknownCause, WriteOutcome } from '../types.ts';
import { headerOf, readEnvelope, type Said, saysMaintenance } from './envelope.ts';
import { transactionResult } from './records.ts';

/** Statuses, of the body or of HTTP, with which the service says no and has done nothing. */
const REFUSALS = [400, 401, 403, 404, 405, 406, 422];

/** The judgement of one exchange, at the instant that `Retry-After` counts from. */
export function judge(exchanged: Exchanged, family: ForwardFamily, now: Instant): WriteOutcome {
  switch (exchanged.end) {
    case 'not_sent':
      return { class: 'not_sent', cause: exchanged.cause };
    case 'broken':
      return unknown(exchanged.cause, exchanged.answer?.status);
    case 'streamed':
      // Only what changes nothing goes on as a stream; nobody judges more than its head.
      return exchanged.answer.status < 400
        ? { class: 'accepted' }
        : unknown('too_large', exchanged.answer.status);
    case 'answered':
      return judgeAnswer(exchanged.answer, family, now);
    default:
      return unreachable(exchanged);
  }
}

/** The judgement of an answer that was read to its end. */
export function judgeAnswer(answer: Answer, family: ForwardFamily, now: Instant): WriteOutcome {
  const said = readEnvelope(answer.body);
  const unavailable = unavailability(answer, said, now);
  if (unavailable) return unavailable;
  switch (said.shape) {
    case 'success':
      return isFine(answer.status)
        ? accepted(said.data, family, answer.status)
        : unknown('unexpected', answer.status);
    case 'error':
      return complaint(said, answer.status);
    default:
      return wordless(answer, said, family);
  }
}

/** 429, and a 503 that says maintenance; undefined for everything else. */
export function unavailability(
  answer: Answer,
  said: Said,
  now: Instant,
): (WriteOutcome & { class: 'unavailable' }) | undefined {
  const has = (status: number) =>
    answer.status === status || (said.shape === 'error' && said.status === status);
  // A success envelope under such a status contradicts itself; it is no proof of anything.
  if (said.shape === 'success') return undefined;
  const retryAt = parseRetryAfter(headerOf(answer, 'retry-after'), now);
  const until = retryAt === undefined ? {} : { retryAt };
  if (has(429)) return { class: 'unavailable', reason: 'throttled', ...until };
  if (!has(503) || !saysMaintenance(answer, said)) return undefined;
  return { class: 'unavailable', reason: 'maintenance', ...until };
}

/** True for a refusal of the credentials: 401 of HTTP or body, and 406 with code 401. */
export function isUnauthorized(outcome: WriteOutcome): boolean {
  if (outcome.class !== 'rejected') return false;
  return outcome.status === 401 || (outcome.status === 406 && outcome.code === '401');
}

function accepted(data: Json, family: ForwardFamily, status: number): WriteOutcome {
  const ids = idsIn(data);
  const named =
    family === 'transaction'
      ? ids.txLogNo !== undefined
      : family !== 'nft' || ids.txHash !== undefined;
  return named ? { class: 'accepted', ...ids } : unknown('no_number', status);
}

/** The numbers and the hash in the data of a success envelope, as far as they are well-formed. */
function idsIn(data: Json) {
  const transaction = transactionResult.safeParse(data).data;
  const { tx_hash: hash, tokenId } =
    typeof data === 'object' && data !== null && !Array.isArray(data) ? data : {};
  const token = wholeOf(tokenId);
  return {
    ...(transaction ? { txLogNo: transaction.txLogNo } : {}),
    ...(transaction?.txAppNo === undefined ? {} : { txAppNo: transaction.txAppNo }),
    ...(typeof hash === 'string' && isTxHash(hash) ? { txHash: hash } : {}),
    ...(token === undefined ? {} : { tokenId: token }),
  };
}

function complaint(said: Said & { shape: 'error' }, httpStatus: number): WriteOutcome {
  const { status, code, message } = said;
  // 500/997, invalid parameter, is the one failure that cannot follow an applied write.
  if (REFUSALS.includes(status) || (status === 500 && code === '997')) {
    const figures = figuresIn(message);
    const found = figures.length > 0 ? { figures } : {};
    return { class: 'rejected', status, code, message, ...found };
  }
  return unknown(status >= 500 || httpStatus >= 500 ? 'server_error' : 'unexpected', httpStatus);
}

/** An answer whose body is in none of the service's shapes: only the HTTP status speaks. */
function wordless(answer: Answer, said: Said, family: ForwardFamily): WriteOutcome {
  const { status } = answer;
  if (REFUSALS.includes(status))
    return { class: 'rejected', status, code: String(status), message: '' };
  if (status >= 500) return unknown('server_error', status);
  // What is read has other shapes, too: token records, redirects to the login page.
  if (family === 'read' && status < 400) return { class: 'accepted' };
  if (isFine(status) && said.shape === 'unreadable') return unknown('unreadable', status);
  return unknown(isFine(status) ? 'no_number' : 'unexpected', status);
}

function isFine(httpStatus: number): boolean {
  return httpStatus >= 200 && httpStatus < 300;
}

function unknown(cause: UnknownCause, status: number | undefined): WriteOutcome {
  return { class: 'unknown', cause, ...(status ? { status } : {}) };
}

/** The whole numbers that a message tells, such as limits and balances; `1,000` is one of them. */
function figuresIn(message: string): bigint[] {
  return [...message.matchAll(/(?<![\d.,])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?![\d]|[.,]\d)/g)].flatMap(
    ([figure]) => parseWhole(figure.replaceAll(',', '')) ?? [],
  );
}
