/** Kinds of write, states, and what each state means for the ledger. Pure. */
import type { Instant, Json } from '../kernel/values.ts';
import { camelOf, type RowOf } from '../resources/fields.ts';
import {
  type Kind,
  NFT_KINDS,
  type Outcome,
  type operation,
  type State,
  TOKEN_KINDS,
  writeFields,
} from '../resources/operations/operation.ts';
import type { Row } from '../resources/resource.ts';

export {
  KINDS,
  type Kind,
  NFT_KINDS,
  type Outcome,
  type State,
  TOKEN_KINDS,
} from '../resources/operations/operation.ts';

/** Executed, and settled by a later observation. */
export const SETTLING_STATES: ReadonlySet<State> = new Set<State>(['accepted', 'executed']);
/** Ended by an answer or an observation, without a decision by people. */
export const PENDING_STATES: ReadonlySet<State> = new Set<State>([
  'sending',
  'unknown',
  ...SETTLING_STATES,
]);

/**
 * Which state may follow which. An answer of the service may arrive late: `accepted` and `rejected`
 * follow every state that neither the service nor the chain made final. `queued` follows `sending`
 * only after proof that nothing was applied, and `unknown` follows `queued` when another copy of
 * the database may have sent it. `not_executed` follows `accepted` and `settled` only by a
 * decision of people.
 */
export const FOLLOWS: Readonly<Record<State, readonly State[]>> = {
  queued: ['sending', 'cancelled', 'rejected', 'unknown'],
  sending: ['accepted', 'rejected', 'unknown', 'queued'],
  unknown: ['executed', 'not_executed', 'undecided', 'accepted', 'rejected'],
  undecided: ['executed', 'not_executed', 'accepted', 'rejected'],
  executed: ['settled', 'failed', 'not_executed', 'accepted', 'rejected'],
  not_executed: ['executed', 'accepted', 'rejected'],
  accepted: ['settled', 'failed', 'not_executed'],
  rejected: ['accepted'],
  cancelled: [],
  settled: ['not_executed'],
  failed: [],
};

/** The states from which `to` may be reached. */
export function statesBefore(to: State): State[] {
  return (Object.keys(FOLLOWS) as State[]).filter((from) => FOLLOWS[from].includes(to));
}

/** All other states have the outcome `open`. */
const EXECUTED_STATES: readonly State[] = ['accepted', 'executed', 'settled'];
const NOT_EXECUTED_STATES: readonly State[] = ['rejected', 'failed', 'not_executed', 'cancelled'];

/** The outcome of a state, like the generated column `operations.outcome`. */
export function outcomeOf(state: State): Outcome {
  if (EXECUTED_STATES.includes(state)) return 'executed';
  return NOT_EXECUTED_STATES.includes(state) ? 'not_executed' : 'open';
}

/** Whether the ledger contains the write, like the generated column `in_ledger`. */
export function isInLedger(kind: Kind, state: State): boolean {
  if (TOKEN_KINDS.includes(kind)) return EXECUTED_STATES.includes(state);
  return NFT_KINDS.includes(kind) && state === 'settled';
}

/** The fields of a write; its kind decides which it has. */
export type WriteFields = Partial<RowOf<typeof writeFields>>;

export const NO_FIELDS = Object.fromEntries(
  Object.keys(writeFields).map((name) => [camelOf(name), null]),
) as Required<WriteFields>;

/** One recorded write, as every stage reads it. */
export interface Operation extends Omit<Row<typeof operation>, 'operationId' | 'error'> {
  owner: string;
  metaData: string | null;
  errorClass: string | null;
  errorStatus: number | null;
  errorCode: string | null;
  errorMessage: string | null;
  /** As it is stored; see `imageOf`. */
  preImage: Json;
  evidence: Json;
  sendDeadlineAt: Instant | null;
  /** End of the newest send; an answer came only if `answerStatus` is set. */
  answeredAt: Instant | null;
  answerStatus: number | null;
  /** Whether the ledger contains it once posting is done. */
  inLedger: boolean;
  /** The number of its newest event. */
  eventSeq: bigint;
}

/** Whether two numbers of apps may be one: null, where the service named none, is our own app's. */
export function sameApp(a: bigint | null | undefined, b: bigint | null | undefined): boolean {
  return a == null || b == null || a === b;
}

type NewOperation = Partial<Operation> &
  Pick<Operation, 'id' | 'kind' | 'state' | 'source' | 'owner' | 'recordedAt'>;

/** An operation that was neither sent nor answered; members that are not given are null. */
export function newOperation(known: NewOperation): Operation {
  return {
    ...NO_FIELDS,
    idempotencyKey: null,
    reference: null,
    txAppNo: null,
    txLogNo: null,
    txHash: null,
    errorClass: null,
    errorStatus: null,
    errorCode: null,
    errorMessage: null,
    preImage: null,
    evidence: null,
    sentAt: null,
    sendDeadlineAt: null,
    answeredAt: null,
    answerStatus: null,
    effectiveAt: null,
    effectiveBasis: null,
    settledAt: null,
    expiresAt: null,
    ambiguous: false,
    eventSeq: 0n,
    outcome: outcomeOf(known.state),
    inLedger: isInLedger(known.kind, known.state),
    ...known,
  };
}
