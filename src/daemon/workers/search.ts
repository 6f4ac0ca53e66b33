/**
 * The worker that finds the work for which no worker was woken: what another daemon or a person
 * committed, and what came due. It asks for all stages in one statement, so that idle workers ask
 * for nothing.
 */
import type { Db, Sql } from '../../db/connect.ts';
import { isWorking } from '../../imports/imports.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Wake, WorkerName } from '../../kernel/workers.ts';
import { hasWork } from '../../ledger/ledger.ts';
import { hasDueTarget, hasUnprocessed } from '../../observer/observer.ts';
import { hasOpen, hasQueuedWrites, hasUnknown, maybeOverdue } from '../../operations/operations.ts';
import { hasUnnumbered, hasUnsearched, lastNumber } from '../../outbox/outbox.ts';
import { hasAlerts } from '../../reconciler/reconciler.ts';
import type { Role } from '../../resources/admin/status.ts';
import type { Worker } from './schedule.ts';

/** What wakes each worker. */
type Conditions = Partial<Record<WorkerName, ReturnType<typeof hasWork>>>;

function conditionsOf(roles: readonly Role[], sql: Sql, now: Instant): Conditions {
  const queue = roles.includes('gateway') ? { queue: hasQueuedWrites(sql) } : {};
  if (!roles.includes('workers')) return queue;
  return {
    ...queue,
    operations: maybeOverdue(sql, now),
    imports: isWorking(sql),
    ledger: hasWork(sql),
    observer: sql`(${hasDueTarget(sql, now)} or ${hasOpen(sql)})`,
    reconciler: sql`(${hasUnprocessed(sql, now)} or ${hasUnknown(sql)})`,
    // What else they are about comes with an event.
    alerts: sql`(${hasOpen(sql)} or ${hasUnknown(sql)} or ${hasAlerts(sql)})`,
    sequencer: hasUnnumbered(sql),
    incidents: hasUnsearched(sql),
  };
}

/** However seldom workers are to search; some of the work is late after a second. */
const INTERVAL_MAX_MS = 1_000;

export function searchWorker({
  db,
  roles,
  intervalMs,
  wake,
}: {
  db: Db;
  roles: readonly Role[];
  intervalMs: number;
  wake: Wake;
}): Worker {
  let lastNumbered: bigint | null = null;
  return {
    name: 'search',
    intervalMs: Math.min(intervalMs, INTERVAL_MAX_MS),
    pass: async (now) => {
      const { found, numbered } = await search(db, roles, now);
      wake(...found);
      if (numbered !== lastNumbered) wake('alerts');
      lastNumbered = numbered;
      return undefined;
    },
  };
}

/** The workers that have work, and the number of the newest event. */
export async function search(
  { sql }: Db,
  roles: readonly Role[],
  now: Instant,
): Promise<{ found: WorkerName[]; numbered: bigint | null }> {
  const conditions = Object.entries(conditionsOf(roles, sql, now));
  const list = conditions.reduce(
    (some, [name, condition]) => sql`${some}, ${condition} as ${sql(name)}`,
    sql`${lastNumber(sql)} as numbered`,
  );
  const [row] = await sql<{ numbered: bigint | null; [worker: string]: unknown }[]>`select ${list}`;
  const found = conditions.flatMap(([name]) => (row?.[name] ? [name as WorkerName] : []));
  return { found, numbered: row?.numbered ?? null };
}
