/**
 * What an answer of the service makes of an operation. Pure: the rule between upstream's classes
 * and states.
 */
import { unreachable } from '../kernel/assert.ts';
import type { Instant } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import type { WriteOutcome } from '../upstream/upstream.ts';
import type { Move } from './store.ts';

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
    answerHeaders: answer?.headers ?? null,
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
      };
    case 'not_sent':
      return {
        ...base,
        to: 'rejected',
        cause: outcome.cause,
        errorClass: 'not_sent',
        errorCode: outcome.cause,
        keyHeld: false,
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
