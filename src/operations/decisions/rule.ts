/**
 * Which outcomes people may decide. Pure. A refusal of the service is final. What it accepted may
 * be taken back, also once it settled; an inferred or decided outcome may be decided again.
 */
import { type Instant, isoText } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { FOLLOWS, NFT_KINDS, type Operation, type State, TOKEN_KINDS } from '../operation.ts';

export type DecidedOutcome = 'executed' | 'not_executed';

/** What to do instead, by the state that allows no decision. */
const INSTEAD: Record<
  Exclude<State, 'undecided' | 'executed' | 'not_executed' | 'settled'>,
  string
> = {
  recorded: 'it is about to be sent; wait for its answer',
  sending: 'it is being sent; wait for its answer',
  queued: 'it was not sent; DELETE it',
  unknown: 'its evidence is incomplete; it becomes undecided if polls do not resolve it',
  accepted: 'the service accepted it; the chain ends it',
  rejected: 'the service refused it, or it was never sent',
  failed: 'the chain failed it',
  cancelled: 'it was cancelled and never sent',
};

/** After its answer the chain may end an executed NFT write; then people may. */
const CHAIN_MAX_MS = 3_600_000;

/**
 * The state that a decision leads to. Of an executed NFT write that the chain did not end, because
 * a later hash replaced its own, people say whether the chain completed it.
 * @throws Failure `conflict` with the reason when this outcome cannot be decided
 */
export function decidedState(operation: Operation, outcome: DecidedOutcome, now: Instant): State {
  const { kind, state, answeredAt, sentAt, recordedAt } = operation;
  const isEnd = state === 'accepted' || (state === 'executed' && outcome === 'executed');
  if (!isEnd || !NFT_KINDS.includes(kind)) {
    assertDecidable(operation, outcome);
    return outcome;
  }
  const until = (answeredAt ?? sentAt ?? recordedAt) + CHAIN_MAX_MS;
  if (now < until) throw refusal(operation, `wait until ${isoText(until)}: the chain may end it`);
  return outcome === 'executed' ? 'settled' : 'failed';
}

/** @throws Failure `conflict` with the reason when this outcome cannot be decided */
export function assertDecidable(operation: Operation, outcome: DecidedOutcome): void {
  const { state, kind } = operation;
  switch (state) {
    case 'undecided':
      return;
    case 'accepted':
      // Of an NFT write people decide how the chain ended it.
      if (TOKEN_KINDS.includes(kind)) break;
      throw refusal(operation, INSTEAD[state]);
    case 'executed':
    case 'settled':
    case 'not_executed':
      break;
    default:
      throw refusal(operation, INSTEAD[state]);
  }
  const current = state === 'not_executed' ? 'not_executed' : 'executed';
  if (outcome === current || !FOLLOWS[state].includes(outcome))
    throw refusal(operation, `it counts as ${current} already`);
}

function refusal({ id, state }: Operation, why: string): Failure {
  return new Failure('conflict', `${id} is ${state}: ${why}`, { operation_id: id, state });
}
