/** SQL of decisions and their approvals. */
import type { Queryable, Sql, Tx } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { decision } from '../../resources/decision.ts';
import type { Row } from '../../resources/resource.ts';
import type { Operation } from '../operation.ts';
import { operationColumns } from '../store.ts';

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
export async function evaluatedWithLateAnswer(
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

export async function newestDecision(
  { sql }: Queryable,
  subject: string,
): Promise<Decision | undefined> {
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

export async function insertDecision({ sql }: Tx, decision: Decision): Promise<void> {
  await sql`
    insert into tallyhook.decisions (subject, n, decision, operation_id, reason, approvals_needed,
      proposed_by, proposed_key, proposed_at)
    values (${decision.subject}, ${decision.n}, ${decision.decision}, ${decision.operationId},
      ${decision.reason}, ${decision.approvalsNeeded}, ${decision.proposedBy},
      ${decision.proposedKey}, ${isoText(decision.proposedAt)})`;
}

export async function insertApproval(
  { sql }: Tx,
  { subject, n, proposedBy }: Decision,
  { owner, keyId }: { owner: string; keyId: string },
  at: Instant,
): Promise<void> {
  await sql`
    insert into tallyhook.approvals (subject, n, proposed_by, owner, key_id, at)
    values (${subject}, ${n}, ${proposedBy}, ${owner}, ${keyId}, ${isoText(at)})`;
}
