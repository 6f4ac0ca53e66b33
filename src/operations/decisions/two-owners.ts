/**
 * Decisions by two owners: one person proposes with a reason, another owner approves, and above a
 * set amount a third owner as well. The subject is an operation or a drift; the caller locks it
 * first, and then applies what was approved. Constraints of the database refuse a repeated owner.
 */
import type { Queryable, Sql, Tx } from '../../db/connect.ts';
import { sameOwner } from '../../kernel/addresses.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { decision } from '../../resources/decision.ts';
import type { Row } from '../../resources/resource.ts';

/** A proposal; it has no effect before its approvals, which stand in their order. */
export interface Decision
  extends Omit<Row<typeof decision>, 'outcome' | 'approvedBy' | 'approvedAt'> {
  /** The id of an operation or a drift. */
  subject: string;
  /** `executed` or `not_executed`; about a drift `book`, `link` or `dismiss`. */
  decision: string;
  /** The operation that a drift is linked to. */
  operationId: string | null;
  proposedKey: string;
  approvals: readonly { owner: string; keyId: string; at: Instant }[];
}

export interface Person {
  owner: string;
  keyId: string;
}

/** What the approver has read; a different proposal is refused. */
export interface ExpectedProposal {
  n?: number | undefined;
  decision?: string | undefined;
}

/** Proposes; it replaces an earlier proposal that is not approved. */
export async function propose(
  tx: Tx,
  proposal: Pick<Decision, 'subject' | 'decision' | 'operationId' | 'reason'>,
  /** Its amount, and the amount above which two approvals are needed. */
  { amount, secondApproverAbove }: { amount: bigint; secondApproverAbove?: bigint | undefined },
  by: Person,
  at: Instant,
): Promise<Decision> {
  const size = amount < 0n ? -amount : amount;
  const decision: Decision = {
    ...proposal,
    n: ((await newestDecision(tx, proposal.subject))?.n ?? 0) + 1,
    approvalsNeeded: secondApproverAbove !== undefined && size > secondApproverAbove ? 2 : 1,
    proposedBy: by.owner,
    proposedKey: by.keyId,
    proposedAt: at,
    approvals: [],
  };
  await insertDecision(tx, decision);
  return decision;
}

/**
 * Approves the newest proposal.
 * @throws Failure `same_owner`, or `conflict` when there is no proposal or not the expected one
 */
export async function approve(
  tx: Tx,
  subject: string,
  expected: ExpectedProposal,
  by: Person,
  at: Instant,
): Promise<Decision> {
  const newest = await newestDecision(tx, subject);
  if (!newest || isApproved(newest))
    throw new Failure('conflict', `nothing waits for approval on ${subject}; propose first`);
  const { n = newest.n, decision = newest.decision } = expected;
  if (n !== newest.n || decision !== newest.decision) {
    const found = `the newest proposal on ${subject} is number ${newest.n}: ${newest.decision}`;
    throw new Failure('conflict', `${found}; read it first`);
  }
  const { owner } = by;
  if (sameOwner(newest.proposedBy, owner))
    throw new Failure('same_owner', `${owner} proposed it; a key of another owner approves`);
  if (newest.approvals.some((approval) => sameOwner(approval.owner, owner)))
    throw new Failure('same_owner', `${owner} approved it already; a third owner approves as well`);
  await insertApproval(tx, newest, by, at);
  return { ...newest, approvals: [...newest.approvals, { ...by, at }] };
}

export function isApproved({ approvals, approvalsNeeded }: Decision): boolean {
  return approvals.length >= approvalsNeeded;
}

/** The owners that approved it, for people; null until it is approved. */
export function approversOf(decision: Decision): string | null {
  return isApproved(decision) ? decision.approvals.map(({ owner }) => owner).join(', ') : null;
}

/** With who approved it when; null until it is approved. */
export function withApproval(decision: Decision) {
  const approvedAt = isApproved(decision) ? (decision.approvals.at(-1)?.at ?? null) : null;
  return { ...decision, approvedBy: approversOf(decision), approvedAt };
}

const DECISIONS_MAX = 1_000;

interface Stored extends Omit<Decision, 'approvals'> {
  approvals: { owner: string; keyId: string; at: bigint }[];
}

function selectDecisions(sql: Sql) {
  return sql`
    select d.subject, d.n::int as n, d.decision, d.operation_id, d.reason,
      d.approvals_needed::int as approvals_needed, d.proposed_by, d.proposed_key, d.proposed_at,
      coalesce((select jsonb_agg(jsonb_build_object('owner', a.owner, 'keyId', a.key_id,
          'at', (extract(epoch from a.at) * 1000)::bigint) order by a.at, a.owner)
        from tallyhook.approvals a where a.subject = d.subject and a.n = d.n), '[]') as approvals
    from tallyhook.decisions d`;
}

function toDecision({ approvals, ...row }: Stored): Decision {
  return { ...row, approvals: approvals.map((one) => ({ ...one, at: Number(one.at) })) };
}

/** The proposals about one subject, oldest first. */
export async function listDecisions({ sql }: Queryable, subject: string): Promise<Decision[]> {
  const rows = await sql<Stored[]>`
    ${selectDecisions(sql)} where d.subject = ${subject} order by d.n limit ${DECISIONS_MAX}`;
  return rows.map(toDecision);
}

async function newestDecision({ sql }: Queryable, subject: string): Promise<Decision | undefined> {
  const rows = await sql<Stored[]>`
    ${selectDecisions(sql)} where d.subject = ${subject} order by d.n desc limit 1`;
  return rows.map(toDecision)[0];
}

/** The newest proposal about each of these subjects; subjects without one are absent. */
export async function newestDecisions(
  { sql }: Queryable,
  subjects: readonly string[],
): Promise<Map<string, Decision>> {
  if (subjects.length === 0) return new Map();
  const rows = await sql<Stored[]>`
    ${selectDecisions(sql)} where d.subject = any(${subjects as string[]}::text[])
      and d.n = (select max(m.n) from tallyhook.decisions m where m.subject = d.subject)`;
  return new Map(rows.map((row) => [row.subject, toDecision(row)]));
}

async function insertDecision({ sql }: Tx, decision: Decision): Promise<void> {
  await sql`
    insert into tallyhook.decisions (subject, n, decision, operation_id, reason, approvals_needed,
      proposed_by, proposed_key, proposed_at)
    values (${decision.subject}, ${decision.n}, ${decision.decision}, ${decision.operationId},
      ${decision.reason}, ${decision.approvalsNeeded}, ${decision.proposedBy},
      ${decision.proposedKey}, ${isoText(decision.proposedAt)})`;
}

async function insertApproval(
  { sql }: Tx,
  { subject, n, proposedBy }: Decision,
  { owner, keyId }: { owner: string; keyId: string },
  at: Instant,
): Promise<void> {
  await sql`
    insert into tallyhook.approvals (subject, n, proposed_by, owner, key_id, at)
    values (${subject}, ${n}, ${proposedBy}, ${owner}, ${keyId}, ${isoText(at)})`;
}
