/**
 * Has the hash chain cover the evidence of all stages within about a second. Every batch takes
 * what evidence waits; when no postings are due, a batch without any is made for it.
 */
import type { Db, Queryable, Tx } from '../../db/connect.ts';
import { type Clock, type Instant, isoText } from '../../kernel/clock.ts';
import { readHead } from '../batch.ts';

/** So that a write, whose evidence comes in several commits, does not cause as many batches. */
const EVERY_MS = 1_000;
/** What one batch takes at most; see `take_evidence` in drizzle/0001_guards.sql. */
const TAKEN_MAX = 2_000;

interface EvidenceChain {
  /** Whether evidence waits; counts at most once per second unless the last batch left some. */
  isDue(now: Instant): Promise<boolean>;
  /** Makes a batch without postings. Returns whether more evidence waits than it takes. */
  extend(fence: bigint): Promise<boolean>;
}

export function makeEvidenceChain(deps: {
  db: Db;
  clock: Clock;
  /** @throws Failure `lease_lost` */
  lockLease: (tx: Tx, fence: bigint) => Promise<void>;
}): EvidenceChain {
  const { db, clock, lockLease } = deps;
  let waiting = 0;
  let countedAt: Instant | undefined;
  return {
    async isDue(now) {
      const ageMs = countedAt === undefined ? EVERY_MS : now - countedAt;
      if (waiting <= TAKEN_MAX && ageMs >= 0 && ageMs < EVERY_MS) return false;
      waiting = await countUnchained(db);
      countedAt = now;
      return waiting > 0;
    },
    async extend(fence) {
      await db.begin(async (tx) => {
        const [, head] = await Promise.all([lockLease(tx, fence), readHead(tx)]);
        await insertBareBatch(tx, head, clock.now());
      });
      return waiting > TAKEN_MAX;
    },
  };
}

/** How many rows of evidence wait, up to 2,001 inserting statements of one row at least. */
export async function countUnchained({ sql }: Queryable): Promise<number> {
  const rows = await sql<{ found: number }[]>`
    select coalesce(sum(cardinality(row_ids)), 0)::int as found
    from (select row_ids from tallyhook.unchained_rows order by id limit 2001) u`;
  return rows[0]?.found ?? 0;
}

/** A batch without postings, which takes what evidence waits when it commits. */
async function insertBareBatch(
  { sql }: Tx,
  last: { batchId: bigint; recordedAt: Instant },
  now: Instant,
): Promise<void> {
  await sql`
    insert into tallyhook.batches (id, recorded_at, transactions, entries)
    values (${String(last.batchId + 1n)}::bigint,
      ${isoText(Math.max(now, last.recordedAt + 1))}::timestamptz, 0, 0)`;
}
