/**
 * What people may decide about an operation. Pure. An outcome that the service answered itself
 * stands; everything else, inferred or decided before, may be decided again: nothing is a dead end.
 */
import { Failure } from '../../kernel/errors.ts';
import { FOLLOWS, type Operation, type State } from '../operation.ts';

export type DecidedOutcome = 'executed' | 'not_executed';

/** What to do instead, by the state that lets nobody decide. */
const INSTEAD: Record<
  Exclude<State, 'undecided' | 'executed' | 'not_executed' | 'settled'>,
  string
> = {
  recorded: 'it is about to be sent; wait for its answer',
  sending: 'it is being sent; wait for its answer',
  queued: 'it was not sent; DELETE it',
  unknown: 'polls still gather evidence; the operation becomes undecided if they do not decide it',
  accepted: 'the service accepted it',
  rejected: 'the service refused it, or it was proved not to have left',
  failed: 'the chain failed it',
  cancelled: 'it was cancelled and never sent',
};

/** @throws Failure `conflict` when this outcome cannot be decided, saying why */
export function assertDecidable(operation: Operation, outcome: DecidedOutcome): void {
  const { state, effectiveBasis } = operation;
  switch (state) {
    case 'undecided':
      return;
    case 'executed':
    case 'settled':
    case 'not_executed':
      break;
    default:
      throw refusal(operation, INSTEAD[state]);
  }
  if (effectiveBasis === 'answer') throw refusal(operation, 'the service itself answered it');
  const is = state === 'not_executed' ? 'not_executed' : 'executed';
  if (outcome === is || !FOLLOWS[state].includes(outcome))
    throw refusal(operation, `it counts as ${is} already`);
}

function refusal({ id, state }: Operation, why: string): Failure {
  return new Failure('conflict', `${id} is ${state}: ${why}`, { operation_id: id, state });
}
