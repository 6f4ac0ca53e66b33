/**
 * Has the hash chain cover the evidence of all stages within about a second. Every batch takes
 * what evidence waits; when no postings are due, a batch without any is made for it.
 */
import type { Tx } from '../../db/connect.ts';
import { type Clock, type Instant, isoText } from '../../kernel/clock.ts';
import type { Head } from '../batch.ts';

/** So that a write, whose evidence comes in several commits, does not cause as many batches. */
const EVERY_MS = 1_000;
/** What one batch takes at most; see `take_evidence` in drizzle/0001_guards.sql. */
const TAKEN_MAX = 2_000;

interface EvidenceChain {
  /**
   * Makes a batch without postings for what waits, unless the last one was a moment ago. Returns
   * whether more waits than it takes.
   */
  extend(tx: Tx, input: { head: Head; unchained: number; now: Instant }): Promise<boolean>;
}

export function makeEvidenceChain({ clock }: { clock: Clock }): EvidenceChain {
  let last: { at: Instant; waited: number } | undefined;
  return {
    async extend(tx, { head, unchained, now }) {
      if (unchained === 0) return false;
      const ageMs = last && last.waited <= TAKEN_MAX ? now - last.at : EVERY_MS;
      if (ageMs >= 0 && ageMs < EVERY_MS) return false;
      await insertBareBatch(tx, head, clock.now());
      tx.afterCommit(() => {
        last = { at: now, waited: unchained };
      });
      return unchained > TAKEN_MAX;
    },
  };
}

/** A batch without postings, which takes what evidence waits when it commits. */
async function insertBareBatch({ sql }: Tx, last: Head, now: Instant): Promise<void> {
  await sql`
    insert into tallyhook.batches (id, recorded_at, transactions, entries)
    values (${String(last.batchId + 1n)}::bigint,
      ${isoText(Math.max(now, last.recordedAt + 1))}::timestamptz, 0, 0)`;
}
