/** What waits here for a worker, as conditions of one statement that asks for all stages. */
import type { Sql } from '../../db/connect.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';

/** A send that is open for longer is looked at; its answer usually came within a second. */
const OLD_MS = 2_000;

/** A send may be abandoned or unconfirmed, or a queued write overdue; see expire.ts. */
export function maybeOverdue(sql: Sql, now: Instant) {
  return sql`(${hasQueuedWrites(sql)} or exists (
    select from (select changed_at from tallyhook.open_operations
      where state = 'sending' order by changed_at limit 1) w
    where w.changed_at < ${isoText(now - OLD_MS)}))`;
}

export function hasQueuedWrites(sql: Sql) {
  return hasState(sql, 'queued');
}

export function hasUnknown(sql: Sql) {
  return hasState(sql, 'unknown');
}

function hasState(sql: Sql, state: 'queued' | 'unknown') {
  return sql`exists (select from tallyhook.open_operations where state = ${state})`;
}

/** An operation is open: a poll may show its effect. */
export function hasOpen(sql: Sql) {
  return sql`exists (select from tallyhook.open_operations where state <> 'undecided')`;
}
