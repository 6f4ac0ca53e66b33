/**
 * What an answer of the service makes of an operation. Pure: the rule between upstream's classes
 * and states.
 */
import { unreachable } from '../kernel/assert.ts';
import type { Instant } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import type { WriteOutcome } from '../upstream/upstream.ts';
import type { Move } from './transition-store.ts';

/** What came of a send. */
export interface Conclusion {
  operationId: string;
  outcome: WriteOutcome;
  answer: { status: number; headers: Json; body: Uint8Array } | undefined;
  endedAt: Instant;
  /** The app number of our own client token, when it is known: another one is a finding. */
  expectedAppNo?: bigint | undefined;
}

const MESSAGE_MAX = 500;

/**
 * The move that a conclusion asks for. A key is released only when nothing was applied for sure.
 */
export function conclusionMove(conclusion: Conclusion, daemonId: string): Move {
  const { operationId: id, outcome, answer, endedAt } = conclusion;
  const base = {
    id,
    at: endedAt,
    daemonId,
    answeredAt: endedAt,
    answerStatus: answer?.status ?? null,
    answerHeaders: answer ? keptHeaders(answer.headers) : null,
    answerBody: answer?.body ?? null,
  };
  switch (outcome.class) {
    case 'accepted':
      return {
        ...base,
        to: 'accepted',
        cause: 'answer',
        txAppNo: outcome.txAppNo ?? null,
        txLogNo: outcome.txLogNo ?? null,
        txHash: outcome.txHash ?? null,
        tokenId: outcome.tokenId ?? null,
        effectiveAt: endedAt,
        effectiveBasis: 'answer',
        ...(isForeign(conclusion) ? FOREIGN : {}),
      };
    case 'rejected':
      return {
        ...base,
        to: 'rejected',
        cause: 'answer',
        errorClass: 'refused',
        errorStatus: outcome.status,
        errorCode: outcome.code === undefined ? null : String(outcome.code),
        errorMessage: outcome.message?.slice(0, MESSAGE_MAX) ?? null,
      };
    case 'unavailable':
      return {
        ...base,
        to: 'rejected',
        cause: outcome.reason,
        errorClass: 'unavailable',
        errorCode: outcome.reason,
        keyHeld: false,
        requeue: true,
      };
    case 'not_sent':
      return {
        ...base,
        to: 'rejected',
        cause: outcome.cause,
        errorClass: 'not_sent',
        errorCode: outcome.cause,
        keyHeld: false,
        requeue: true,
      };
    case 'unknown':
      return {
        ...base,
        to: 'unknown',
        cause: outcome.cause,
        errorClass: 'unknown',
        errorCode: outcome.cause,
        errorStatus: outcome.status ?? null,
      };
    default:
      return unreachable(outcome);
  }
}

/** The cause of accepting an answer that names another app: kept, but not posted. */
export const FOREIGN_ANSWER = 'answer with a foreign tx_app_no';
const FOREIGN = { quarantineReason: 'foreign_tx_app_no', cause: FOREIGN_ANSWER };

/** What a replay needs of the service's headers. Cookies are nobody's business later. */
const KEPT = ['content-type', 'content-encoding', 'location', 'retry-after', 'www-authenticate'];

function keptHeaders(headers: Json): Json {
  if (!Array.isArray(headers)) return [];
  return headers.filter(
    (pair) => Array.isArray(pair) && KEPT.includes(String(pair[0]).toLowerCase()),
  );
}

/** An answer under the number of another app: kept, but none of our books' business. */
function isForeign({ outcome, expectedAppNo }: Conclusion): boolean {
  if (outcome.class !== 'accepted' || expectedAppNo === undefined) return false;
  return outcome.txAppNo !== undefined && outcome.txAppNo !== expectedAppNo;
}
