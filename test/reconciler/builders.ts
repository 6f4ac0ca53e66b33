/** Settings, operations, balances and tokens for tests of the reconciler. */
import { sumOf } from '../../src/kernel/amounts.ts';
import { type Operation, outcomeOf, type State } from '../../src/operations/operations.ts';
import type { ReconcilerSettings } from '../../src/reconciler/reconciler.ts';
import type { TokenState } from '../../src/reconciler/tokens/rule.ts';
import {
  type Expectation,
  POSSIBLE_MAX,
  type PossibleOperation,
} from '../../src/reconciler/wallets/rule.ts';
import { addr, operation, START } from '../ledger/builders.ts';

export { addr, operation, START };

export const SETTINGS: ReconcilerSettings = {
  steadyMs: 60_000,
  pendingMinMs: 1_000,
  pendingMaxMs: 30_000,
  readLagMs: 1_000,
  quiescenceMs: 30_000,
  undecidedAfterMs: 600_000,
  bracketMaxMs: 600_000,
  oneSided: 'resolve',
};

/** Instants of a test, in milliseconds after its start. */
export const at = (ms: number) => START + ms;

let count = 0;

/** A write in that state; its times are milliseconds after the start. */
export function write(
  state: State,
  given: Partial<Operation> & { sent?: number; answered?: number } = {},
): Operation {
  const { sent = 0, answered, ...rest } = given;
  const answer = answered === undefined ? {} : { answeredAt: at(answered) };
  const took = answered === undefined || state !== 'accepted' ? {} : { effectiveAt: at(answered) };
  return operation({
    id: `op_${++count}`,
    state,
    outcome: outcomeOf(state),
    inLedger: outcomeOf(state) === 'executed',
    recordedAt: at(sent),
    sentAt: at(sent),
    ...answer,
    ...took,
    ...rest,
  });
}

/** An operation that an observation may include. */
export function possible(
  effect: bigint,
  state: State,
  given: Partial<PossibleOperation> = {},
): PossibleOperation {
  const outcome = outcomeOf(state) === 'executed' ? 'executed' : 'open';
  return { id: `op_${++count}`, effect, state, outcome, deadlineAt: 0, indicated: null, ...given };
}

/** A base with these possible operations. */
export function expectation(base: bigint, operations: readonly PossibleOperation[]): Expectation {
  const effects = operations.map(({ effect }) => effect);
  return {
    base,
    possible: operations.length <= POSSIBLE_MAX ? operations : undefined,
    up: sumOf(effects.filter((effect) => effect > 0n)),
    down: sumOf(effects.filter((effect) => effect < 0n)),
  };
}

/** An observation; its times are milliseconds after the start. */
export const observed = (balance: bigint, from: number, to = from + 10) => ({
  balance,
  startedAt: at(from),
  endedAt: at(to),
});

export const HASH_A = `0x${'a'.repeat(64)}`;
export const HASH_B = `0x${'b'.repeat(64)}`;

/** A token as seen: complete, of wallet 1, under hash A. */
export function token(given: Partial<TokenState> = {}): TokenState {
  return {
    owner: addr(1),
    creator: addr(9),
    uri: 'ipfs://one',
    metadata: '',
    extraData: '',
    status: 1,
    locked: 0,
    lastTxHash: HASH_A,
    ...given,
  };
}
