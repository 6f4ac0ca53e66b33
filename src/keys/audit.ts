/**
 * The audit trail: who changed what through the API, and when. An entry is committed before its
 * action, so that none is missing, and closed after it.
 */
import type { Db } from '../db/connect.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';
import * as store from './audit-store.ts';

export interface AuditEntry {
  id: bigint;
  at: Instant;
  owner: string;
  keyId: string;
  /** Method and path of the route. */
  action: string;
  detail: Json;
  /** `done`, or the code of the refusal; null while it runs, and if the daemon was killed then. */
  result: string | null;
}

export interface Audit {
  begin(entry: Pick<AuditEntry, 'owner' | 'keyId' | 'action' | 'detail'>): Promise<bigint>;
  end(id: bigint, result: string): Promise<void>;
  /** Newest first. */
  list(page: { before: bigint | undefined; limit: number }): Promise<AuditEntry[]>;
}

export function makeAudit({ db, clock }: { db: Db; clock: Clock }): Audit {
  return {
    begin: (entry) => store.insertAudit(db, entry, clock.now()),
    end: (id, result) => store.closeAudit(db, id, result),
    list: (page) => store.listAudit(db, page),
  };
}
