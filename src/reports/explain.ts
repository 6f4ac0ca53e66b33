/** Why a wallet holds what it holds: its roll-forward, its last observation and its drifts. */
import type { Db } from '../db/connect.ts';
import type { Row } from '../resources/resource.ts';
import type { explanation } from '../resources/wallet.ts';
import {
  balanceBefore,
  lastObservation,
  listDriftsOf,
  listMovements,
  type WalletPeriod,
} from './queries/explain-store.ts';

/** Explains one wallet in one snapshot. */
export function explainWallet(db: Db, period: WalletPeriod): Promise<Row<typeof explanation>> {
  return db.begin(
    async (tx) => ({
      ...period,
      opening: await balanceBefore(tx, period.addr, period.from),
      movements: await listMovements(tx, period),
      closing: await balanceBefore(tx, period.addr, period.to),
      observed: await lastObservation(tx, period.addr),
      drifts: await listDriftsOf(tx, period),
    }),
    { snapshot: true },
  );
}
