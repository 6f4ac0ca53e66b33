/** Polls for tests of the API: an observation is stored, reconciled, and what follows is posted. */
import { isoText } from '../../src/kernel/clock.ts';
import type { Json } from '../../src/kernel/json.ts';
import { plannedAt, recordObservation } from '../../src/observer/observations.ts';
import type { useApi } from './rig.ts';

type Api = ReturnType<typeof useApi>;

/** @param object name of the target */
export async function observe(
  api: Api,
  kind: 'wallet' | 'token',
  object: string,
  record: object,
): Promise<void> {
  const now = api.deps.clock.now();
  const at = isoText(now);
  await api.database.db.sql`
    insert into tallyhook.targets (name, kind, next_poll_at, added_at)
    values (${object}, ${kind}, ${at}, ${at}) on conflict do nothing`;
  const row = { id: api.ids.next('obs'), target: object, kind, startedAt: now, endedAt: now };
  await api.database.db.begin((tx) =>
    recordObservation(
      tx,
      { ...row, result: 'seen', cause: null, record: record as Json },
      plannedAt(now),
    ),
  );
  await api.reconciler.runOnce(api.deps.clock.now());
  await api.postAll();
}

/** Polls of a wallet that show these balances, one after the other. */
export async function pollWallet(api: Api, addr: string, ...balances: bigint[]): Promise<void> {
  for (const balance of balances)
    await observe(api, 'wallet', `wallet:${addr.toLowerCase()}`, { addr, balance, status: 1 });
}
