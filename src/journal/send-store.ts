/** SQL that reads how often an operation was about to leave. */
import type { Queryable } from '../db/connect.ts';
import type { Instant } from '../kernel/clock.ts';

/** One time that an operation was about to leave. */
export interface Send {
  /** 1 for the first. */
  n: number;
  startedAt: Instant;
  /** No byte of it leaves later. */
  deadlineAt: Instant;
  daemonId: string;
  /** Why an earlier send allowed this one; null for the first. */
  after: string | null;
}

/** The sends of an operation, in their order. */
export async function listSends(db: Queryable, operationId: string): Promise<Send[]> {
  return db.sql<Send[]>`
    select n::int as n, started_at as "startedAt", deadline_at as "deadlineAt",
      daemon_id as "daemonId", after
    from tallyhook.sends where operation_id = ${operationId} order by n limit 1000`;
}
