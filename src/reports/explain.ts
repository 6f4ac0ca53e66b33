/** Why a wallet holds what it holds: its roll-forward, its last observation and its drifts. */
import type { Db } from '../db/connect.ts';
import {
  balanceBefore,
  type ExplainedDrift,
  type LastObservation,
  lastObservation,
  listDriftsOf,
  listMovements,
  type Movement,
  type WalletPeriod,
} from './queries/explain-store.ts';

export interface Explanation {
  /** Ledger balances at both ends; null while they are not known. */
  opening: bigint | null;
  closing: bigint | null;
  movements: Movement[];
  /** Undefined for a wallet that was never observed. */
  observed: LastObservation | undefined;
  drifts: ExplainedDrift[];
}

/** Explains one wallet in one snapshot. */
export function explainWallet(db: Db, period: WalletPeriod): Promise<Explanation> {
  return db.begin(
    async (tx) => ({
      opening: await balanceBefore(tx, period.addr, period.from),
      movements: await listMovements(tx, period),
      closing: await balanceBefore(tx, period.addr, period.to),
      observed: await lastObservation(tx, period.addr),
      drifts: await listDriftsOf(tx, period),
    }),
    { snapshot: true },
  );
}
