/**
 * Outcomes decided by people: one proposes with a reason, a person of another owner approves, and
 * then the state changes. The new state makes the posting or reversal due. A refusal of the service
 * is final. What it accepted may be taken back, also once it settled; an inferred or decided
 * outcome may be decided again.
 */
import type { Db, Queryable, Sql, Tx } from '../../db/connect.ts';
import { type Clock, type Instant, isoText } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { endedEvent, resolvedEvent } from '../events.ts';
import { FOLLOWS, NFT_KINDS, type Operation, type State, TOKEN_KINDS } from '../operation.ts';
import { operationColumns } from '../store.ts';
import { applyTransitions, type Move, type TransitionDeps } from '../transitions.ts';
import { approve, type Decision, type Person, propose } from './two-owners.ts';

type DecidedOutcome = 'executed' | 'not_executed';

export interface Decisions {
  /**
   * Proposes an outcome; it replaces an earlier proposal that is not approved.
   * @throws Failure `not_found`, or `conflict` when the state does not allow it
   */
  propose(
    operationId: string,
    proposal: { outcome: DecidedOutcome; reason: string },
    by: Person,
  ): Promise<Decision>;
  /**
   * Approves the newest proposal; with the last approval that it needs, the state changes, with its
   * event. Returns the operation, changed or not.
   * @param expected the proposal that the approver read; a different one is refused
   * @throws Failure `not_found`, `same_owner`, or `conflict` when there is no proposal, it is not
   * the expected one, or the state does not allow it any more
   */
  approve(
    operationId: string,
    expected: { n?: number | undefined; outcome?: DecidedOutcome | undefined },
    by: Person,
  ): Promise<Operation>;
}

interface Deps extends TransitionDeps {
  db: Db;
  clock: Clock;
  outbox: Outbox;
  /** Larger amounts need two approvals; undefined: none does. */
  secondApproverAbove?: bigint | undefined;
  /** Has a token polled soon, which is polled seldom while none of its writes is open. */
  pollToken?: (token: { contractId: bigint; tokenId: bigint }) => Promise<void>;
}

export function makeDecisions(deps: Deps): Decisions {
  const { db, clock, outbox, secondApproverAbove } = deps;
  return {
    propose: (operationId, { outcome: decision, reason }, by) =>
      db.begin(async (tx) => {
        const operation = await lockExisting(tx, operationId);
        decidedState(operation, decision, clock.now());
        await assertKnownAnswer(tx, operation, clock.now());
        const proposal = { subject: operationId, decision, operationId: null, reason };
        const limit = { amount: operation.amount ?? 0n, secondApproverAbove };
        return propose(tx, proposal, limit, by, clock.now());
      }),
    async approve(operationId, { n, outcome }, by) {
      const approved = await db.begin(async (tx) => {
        const operation = await lockExisting(tx, operationId);
        const now = clock.now();
        const decision = await approve(tx, operationId, { n, decision: outcome }, by, now);
        const to = decidedState(operation, decision.decision as DecidedOutcome, now);
        await assertKnownAnswer(tx, operation, decision.proposedAt);
        if (decision.approvedAt === null) return operation;
        const [moved] = await applyTransitions(tx, [moveOf(operation, to, decision, now)], deps);
        const decided = must(moved, 'operation that was locked');
        const isEnd = decided.settledAt === now;
        const event = isEnd ? endedEvent(decided, now) : resolvedEvent(decided, operation, now);
        await outbox.emit(tx, [event]);
        return decided;
      });
      const { contractId, tokenId } = approved;
      if (contractId !== null && tokenId !== null) await deps.pollToken?.({ contractId, tokenId });
      return approved;
    },
  };
}

/** What to do instead, by the state that allows no decision. */
const INSTEAD: Record<
  Exclude<State, 'undecided' | 'executed' | 'not_executed' | 'settled'>,
  string
> = {
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
function decidedState(operation: Operation, outcome: DecidedOutcome, now: Instant): State {
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

/**
 * @throws Failure `conflict` when the service accepted the write after it was proposed, or when no
 * balance was compared with that answer yet
 */
async function assertKnownAnswer(
  tx: Tx,
  { id, state }: Operation,
  proposedAt: Instant,
): Promise<void> {
  if (state !== 'accepted' && state !== 'settled') return;
  const since = await evaluatedWithLateAnswer(tx, id);
  if (since === undefined || (since !== null && since <= proposedAt)) return;
  const why = `${id} is ${state}: the service has accepted it meanwhile`;
  throw new Failure('conflict', `${why}; propose again if balances contradict that`, {
    operation_id: id,
    state,
  });
}

async function lockExisting(tx: Tx, id: string): Promise<Operation> {
  const operation = await lockOperation(tx, id);
  if (!operation) throw new Failure('not_found', `there is no ${id}`);
  return operation;
}

/** A write decided as executed took effect when it was sent, unless another time is known. */
function moveOf(operation: Operation, to: State, decision: Decision, at: Instant): Move {
  const { id, effectiveAt, sentAt, recordedAt } = operation;
  const evidence = decisionEvidence(decision);
  const move = { id, to, at, cause: 'decision', decided: true, evidence };
  if (to === 'settled' || to === 'failed') return { ...move, settledAt: at };
  return {
    ...move,
    effectiveAt: effectiveAt ?? sentAt ?? recordedAt,
    effectiveBasis: 'decision',
  };
}

/** An approved decision as the evidence of what it changed. */
export function decisionEvidence(decision: Decision): { [key: string]: Json } {
  return {
    decided_by: decision.proposedBy,
    approved_by: decision.approvedBy,
    reason: decision.reason,
    decision: decision.n,
    decided_at: isoText(decision.proposedAt),
  };
}

/** The operation, locked until the end of the transaction. */
export async function lockOperation(tx: Tx, id: string): Promise<Operation | undefined> {
  const rows = await tx.sql<Operation[]>`
    select ${operationColumns(tx.sql)} from tallyhook.operations o
    where o.id = ${id} for update`;
  return rows[0];
}

/**
 * Of an operation that the service accepted after people could decide it: since when it was
 * evaluated with that answer, null if it was not yet. Undefined of any other.
 */
async function evaluatedWithLateAnswer(
  { sql }: Queryable,
  id: string,
): Promise<Instant | null | undefined> {
  const rows = await sql<{ isLate: boolean; since: Instant | null }[]>`
    select a.from_state not in ('sending', 'unknown') as is_late, (
      select min(t.at) from tallyhook.transitions t
      where t.operation_id = ${id} and t.id > a.id) as since
    from tallyhook.transitions a
    where a.operation_id = ${id} and a.to_state = 'accepted' and a.from_state <> 'accepted'
    order by a.id desc limit 1`;
  const [accepted] = rows;
  return accepted?.isLate ? accepted.since : undefined;
}

/**
 * The ids of operations whose proposed outcome waits for another owner. A proposal waits until it
 * is approved or replaced, and while its outcome may still be decided, as in `decidedState`. It is
 * found by the decisions, which people make.
 */
function waiting(sql: Sql) {
  return sql`
    select p.id from tallyhook.decisions d join tallyhook.operations p on p.id = d.subject
    where d.subject like 'op\\_%'
      and d.n = (select max(m.n) from tallyhook.decisions m where m.subject = d.subject)
      and d.approvals_needed > (
        select count(*) from tallyhook.approvals a where a.subject = d.subject and a.n = d.n)
      and (p.state = 'undecided'
        or p.state in ('accepted', 'executed', 'settled') and d.decision = 'not_executed'
        or p.state in ('accepted', 'executed') and p.kind = any(${[...NFT_KINDS]}::text[])
        or p.state = 'not_executed' and d.decision = 'executed')`;
}

/** The condition on operations `o` that their proposed outcome waits for another owner. */
export function isProposed(sql: Sql) {
  return sql`o.id = any(array(${waiting(sql)}))`;
}

/** How many operations have a proposed outcome that waits, counted up to `max`. */
export async function countProposed({ sql }: Queryable, max: number): Promise<number> {
  const rows = await sql<{ count: number }[]>`
    select count(*)::int as count from (${waiting(sql)} limit ${max}) w`;
  return rows[0]?.count ?? 0;
}
