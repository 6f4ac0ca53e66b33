/** The limits that the service has set, stored for the upstream stages of all daemons. */
import type { Db, Queryable } from '../db/connect.ts';
import { columnsOf, rowOf } from '../db/rows.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { QuotaState, QuotaStore } from '../upstream/upstream.ts';
import { quota } from './tables.ts';

export function makeQuotaStore(db: Db): QuotaStore {
  return {
    load: () => db.single(loadQuota),
    // `single` has a deadline, and a response waits until its limits are stored.
    save: (state) => db.single((q) => saveQuota(q, state)),
    clear: (at) => db.single((q) => clearQuota(q, at)),
  };
}

async function loadQuota(db: Queryable): Promise<QuotaState[]> {
  return db.sql<QuotaState[]>`
    select ${columnsOf(db.sql, quota)} from tallyhook.quota`;
}

/**
 * Keeps the later deadline and the later throttling, whichever daemon received them. A daemon that
 * does not know yet that deadlines were removed cannot restore them.
 */
async function saveQuota(db: Queryable, state: QuotaState): Promise<void> {
  await db.sql`
    insert into tallyhook.quota ${rowOf(db.sql, quota, state)}
    on conflict (name) do update set
      blocked_until = greatest(quota.blocked_until, excluded.blocked_until),
      rate = case when excluded.rises_from >= coalesce(quota.rises_from, '-infinity')
        then excluded.rate else quota.rate end,
      rise_ms = case when excluded.rises_from >= coalesce(quota.rises_from, '-infinity')
        then excluded.rise_ms else quota.rise_ms end,
      rises_from = greatest(quota.rises_from, excluded.rises_from)
    where quota.cleared_at is not distinct from excluded.cleared_at`;
}

async function clearQuota(db: Queryable, at: Instant): Promise<void> {
  await db.sql`
    update tallyhook.quota set blocked_until = null, cleared_at = ${isoText(at)},
      rises_from = case when rises_from is not null then least(rises_from, ${isoText(at)}) end`;
}
