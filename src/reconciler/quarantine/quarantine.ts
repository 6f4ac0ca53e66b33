/**
 * What is quarantined, of the ledger and of the reconciler, and its release by a person: it is
 * tried again, and the release is recorded in the same commit.
 */
import type { Db } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { releasePosting } from '../../ledger/ledger.ts';
import { releaseObservation } from '../../observer/observer.ts';
import { insertRelease, type QuarantineKind, type Release } from './store.ts';

/**
 * Releases one posting or observation: the ledger posts it, even with the number of another app, or
 * the reconciler processes it. What still cannot be processed is quarantined again.
 * @throws Failure `not_found` when it is not quarantined
 */
export function releaseQuarantined(
  db: Db,
  { kind, id, reason }: { kind: QuarantineKind; id: string; reason: string },
  by: { owner: string; keyId: string },
  at: Instant,
): Promise<Release> {
  return db.begin(async (tx) => {
    const problem =
      kind === 'observation'
        ? await releaseObservation(tx, id, at)
        : await releasePosting(tx, kind, id);
    if (problem === undefined)
      throw new Failure('not_found', `no quarantined ${kind} ${id}; see GET /api/quarantine`);
    const { owner: releasedBy, keyId: releasedKey } = by;
    const release = { kind, subject: id, problem, releasedAt: at, releasedBy, releasedKey, reason };
    return insertRelease(tx, release);
  });
}
