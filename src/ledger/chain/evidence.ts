/**
 * Has the hash chain cover the evidence of all stages within about a second. Every batch takes
 * what evidence waits; when no postings are due, a batch without any is made for it.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { readHead } from '../posting-store.ts';
import { countUnchained, insertBareBatch } from './unchained-store.ts';

/** So that a write, whose evidence comes in several commits, does not cause as many batches. */
const EVERY_MS = 1_000;
/** What one batch takes at most; see `take_evidence` in drizzle/0001_guards.sql. */
const TAKEN_MAX = 2_000;

export interface EvidenceChain {
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
