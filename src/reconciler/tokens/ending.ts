/**
 * How a token ends the executed writes on it: the chain completed or failed them, or what the token
 * shows later says so. Pure.
 */
import { sameAddress, sameTxHash } from '../../kernel/addresses.ts';
import type { Operation } from '../../operations/operations.ts';
import {
  isOwnEffect,
  isUnchanged,
  type ObservedToken,
  preImageOf,
  sameEffect,
} from './evidence.ts';
import {
  COMPLETE,
  FAILED,
  hasEffect,
  isAtWork,
  isMint,
  isRequired,
  type ObservationContext,
  sentAtOf,
} from './rule.ts';

export interface Ending {
  to: 'settled' | 'failed';
  cause: string;
}

/**
 * How a token ends an executed operation; undefined while it does not. The hash decides. An
 * operation whose hash was replaced by a later one ends by its effect, or by what else is known.
 * Another hash is a later one only if the observation must include the operation.
 * @param others all other operations on the token
 */
export function endingOf(
  operation: Operation,
  token: ObservedToken | 'absent',
  observed: ObservationContext,
  others: readonly Operation[] = [],
): Ending | undefined {
  const { txHash, kind } = operation;
  const isLate = isRequired(operation, observed);
  if (token === 'absent') {
    if (!isLate) return undefined;
    if (kind === 'burn') return endingOfBurn(operation, observed.lastHash, others);
    return endingOfReplaced(operation, token, observed, others);
  }
  if (sameTxHash(txHash, token.lastTxHash)) {
    if (token.status === COMPLETE) return { to: 'settled', cause: 'the chain completed its hash' };
    if (token.status === FAILED) return { to: 'failed', cause: 'the chain failed its hash' };
    return undefined;
  }
  if (token.status !== COMPLETE || !isLate) return undefined;
  if (hasEffect(operation, token) && isItsOwn(operation, token, others))
    return { to: 'settled', cause: 'a later hash completed and its effect shows' };
  if (kind !== 'burn') return endingOfReplaced(operation, token, observed, others);
  return observed.sameToken
    ? { to: 'failed', cause: 'a later hash completed and the token is still there' }
    : undefined;
}

/**
 * Whether the effect that a token shows is that of this write. One that was found or decided to be
 * executed had it; the chain may have failed an accepted one whose effect is older, or another's.
 */
function isItsOwn(operation: Operation, token: ObservedToken, others: readonly Operation[]) {
  if (operation.state === 'executed') return true;
  return isMint(operation)
    ? !others.some((other) => mayHaveDone(other, operation))
    : isOwnEffect(operation, token, others);
}

/**
 * How a write ends that the token does not prove, and whose hash a later one replaced: it settles
 * if it was found or decided to be executed, or if a later write that needs it settled. It failed
 * if the token is as it was before. Else people decide. It waits while other writes are at work.
 */
function endingOfReplaced(
  operation: Operation,
  token: ObservedToken | 'absent',
  observed: ObservationContext,
  others: readonly Operation[],
): Ending | undefined {
  if (others.some((other) => isAtWork(other, observed))) return undefined;
  const before = preImageOf(operation)?.lastTxHash ?? undefined;
  const hasChanged =
    token === 'absent' || (before !== undefined && !sameTxHash(before, token.lastTxHash));
  if (operation.state === 'executed' && hasChanged)
    return { to: 'settled', cause: 'it was executed, and the token changed again' };
  if (others.some((other) => mayHaveDone(other, operation))) return undefined;
  if (others.some((other) => needs(other, operation)))
    return { to: 'settled', cause: 'a later write that needs it settled' };
  if (token === 'absent' || !hasChanged || hasEffect(operation, token)) return undefined;
  return isUnchanged(operation, token, others)
    ? { to: 'failed', cause: 'a later hash completed and the token is as before' }
    : undefined;
}

/** Whether another write of the same kind would have had the same effect, and had not before. */
function mayHaveDone(other: Operation, operation: Operation): boolean {
  if (other.outcome === 'not_executed') return false;
  if (other.settledAt !== null && other.settledAt <= sentAtOf(operation)) return false;
  if (isMint(operation)) return isMint(other);
  return other.kind === operation.kind && sameEffect(operation, other);
}

/** Whether the service cannot have completed a write without an earlier one. */
function needs(later: Operation, earlier: Operation): boolean {
  if (later.state !== 'settled' || sentAtOf(later) <= sentAtOf(earlier)) return false;
  if (isMint(earlier)) return !isMint(later);
  return (
    earlier.kind === 'transfer_from' &&
    later.kind === 'transfer_from' &&
    // A transfer to the present owner.
    !sameAddress(earlier.fromAddr, earlier.toAddr) &&
    sameAddress(later.fromAddr, earlier.toAddr)
  );
}

/** A token is burned once: the chain failed a burn beside the one that removed the token. */
function endingOfBurn(
  operation: Operation,
  lastHash: string | null,
  others: readonly Operation[],
): Ending | undefined {
  const burns = others.filter(({ kind }) => kind === 'burn');
  const settled = burns.find(
    ({ state, settledAt }) =>
      state === 'settled' && settledAt !== null && settledAt > sentAtOf(operation),
  );
  const taker = settled ?? takerOf([operation, ...burns.filter(isPending)], lastHash);
  if (taker === operation) return { to: 'settled', cause: 'the token is gone' };
  return taker && { to: 'failed', cause: 'another burn took the token' };
}

function isPending({ state, outcome, settledAt }: Operation): boolean {
  return settledAt === null && outcome !== 'not_executed' && state !== 'queued';
}

/**
 * The burn that removed an absent token: the only one, or the newest if its hash was the last that
 * was observed. Else the chain may have completed any of them.
 */
export function takerOf(
  burns: readonly Operation[],
  lastHash: string | null,
): Operation | undefined {
  const at = (burn: Operation) => burn.answeredAt ?? burn.recordedAt;
  // Ids ascend in time.
  const [newest, ...others] = burns.toSorted((a, b) => at(b) - at(a) || (a.id < b.id ? 1 : -1));
  return others.length === 0 || sameTxHash(newest?.txHash, lastHash) ? newest : undefined;
}
