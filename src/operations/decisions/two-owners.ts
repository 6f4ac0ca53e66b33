/**
 * Decisions by two owners: one person proposes with a reason, another owner approves, and above a
 * set amount a third owner as well. The subject is an operation or a drift; the caller locks it
 * first, and then applies what was approved. Constraints of the database refuse a repeated owner.
 */
import type { Queryable, Sql, Tx } from '../../db/connect.ts';
import { sameOwner } from '../../kernel/addresses.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import type { decision } from '../../resources/operations/decision.ts';
import type { Row } from '../../resources/resource.ts';

/** A proposal; it has no effect before its approvals, which stand in their order. */
export interface Decision extends Omit<Row<typeof decision>, 'outcome'> {
  /** The id of an operation or a drift. */
  subject: string;
  /** `executed` or `not_executed`; about a drift `book`, `link` or `dismiss`. */
  decision: string;
  /** The operation that a drift is linked to. */
  operationId: string | null;
  proposedKey: string;
}

export interface Person {
  owner: string;
  keyId: string;
}

/** What the approver has read; a different proposal is refused. */
interface ExpectedProposal {
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
  const { subject, decision, operationId, reason } = proposal;
  const size = amount < 0n ? -amount : amount;
  const needed = secondApproverAbove !== undefined && size > secondApproverAbove ? 2 : 1;
  await tx.sql`
    insert into tallyhook.decisions (subject, n, decision, operation_id, reason, approvals_needed,
      proposed_by, proposed_key, proposed_at)
    select ${subject}, coalesce(max(n), 0) + 1, ${decision}, ${operationId}, ${reason}, ${needed},
      ${by.owner}, ${by.keyId}, ${isoText(at)}::timestamptz
    from tallyhook.decisions where subject = ${subject}`;
  return must(await newestDecision(tx, subject), 'decision that was proposed');
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
  if (!newest || newest.approvedAt !== null)
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
  await tx.sql`
    insert into tallyhook.approvals (subject, n, proposed_by, owner, key_id, at)
    values (${subject}, ${n}, ${newest.proposedBy}, ${owner}, ${by.keyId}, ${isoText(at)})`;
  return must(await newestDecision(tx, subject), 'decision that was approved');
}

const DECISIONS_MAX = 1_000;

function selectDecisions(sql: Sql) {
  const whenApproved = (value: ReturnType<Sql>) =>
    sql`case when a.count >= d.approvals_needed then ${value} end`;
  return sql`
    select d.subject, d.n::int as n, d.decision, d.operation_id, d.reason,
      d.approvals_needed::int as approvals_needed, d.proposed_by, d.proposed_key, d.proposed_at,
      coalesce(a.approvals, '[]') as approvals, ${whenApproved(sql`a.owners`)} as approved_by,
      ${whenApproved(sql`a.at`)} as approved_at
    from tallyhook.decisions d cross join lateral (
      select count(*) as count, max(p.at) as at,
        string_agg(p.owner, ', ' order by p.at, p.owner) as owners,
        jsonb_agg(jsonb_build_object('owner', p.owner,
          'at', (extract(epoch from p.at) * 1000)::bigint) order by p.at, p.owner) as approvals
      from tallyhook.approvals p where p.subject = d.subject and p.n = d.n) a`;
}

/** The proposals about one subject, oldest first. */
export async function listDecisions({ sql }: Queryable, subject: string): Promise<Decision[]> {
  return sql<Decision[]>`
    ${selectDecisions(sql)} where d.subject = ${subject} order by d.n limit ${DECISIONS_MAX}`;
}

async function newestDecision({ sql }: Queryable, subject: string): Promise<Decision | undefined> {
  const rows = await sql<Decision[]>`
    ${selectDecisions(sql)} where d.subject = ${subject} order by d.n desc limit 1`;
  return rows[0];
}

/** The newest proposal about each of these subjects; subjects without one are absent. */
export async function newestDecisions(
  { sql }: Queryable,
  subjects: readonly string[],
): Promise<Map<string, Decision>> {
  if (subjects.length === 0) return new Map();
  const rows = await sql<Decision[]>`
    ${selectDecisions(sql)} where d.subject = any(${subjects as string[]}::text[])
      and d.n = (select max(m.n) from tallyhook.decisions m where m.subject = d.subject)`;
  return new Map(rows.map((row) => [row.subject, row]));
}
