/** The rig of the reconciler with alerts; targets are polled once a minute at least. */
import { registerDaemon } from '../../../src/db/leases.ts';
import { isoText } from '../../../src/kernel/clock.ts';
import { makeLog } from '../../../src/kernel/telemetry/log.ts';
import { type AlertSettings, makeAlerts } from '../../../src/reconciler/reconciler.ts';
import { openRig } from '../rig.ts';

export const SETTINGS: AlertSettings = { stuckFactor: 3, stuckMinMs: 60_000, rules: [] };

export async function openAlertRig(settings: Partial<AlertSettings> = {}) {
  const rig = await openRig();
  const { clock, ids, outbox, database } = rig;
  const { db } = database;
  const log = makeLog('silent');
  const pricing = async () => ({
    price: 1,
    budgetPerS: 1,
    perS: 1,
    intervalMs: 1_000,
    oldestPollAt: null,
    bounds: { minMs: 500, maxMs: 60_000 },
    delay: undefined,
  });
  const alertsOf = async (id: string, changed: Partial<AlertSettings> = settings) =>
    makeAlerts({
      db,
      clock,
      ids,
      log,
      outbox,
      observer: { pricing },
      settings: { ...SETTINGS, ...changed },
      daemon: await registerDaemon(db, id, clock.now(), 1e12),
    });
  const alerts = await alertsOf('dmn_alerts');
  return {
    ...rig,
    db,
    alertsOf,
    /** Lets time pass, then checks. */
    async check(afterMs = 0) {
      clock.advance(afterMs);
      return alerts.runOnce(clock.now());
    },
    async serviceIs(state: string) {
      await database.owner.sql`
        insert into tallyhook.service_state (name, state, since, down_from, next_probe_at,
          failures)
        values ('upstream', ${state}, ${isoText(clock.now())}, ${isoText(clock.now())},
          ${isoText(clock.now())}, 0)
        on conflict (name) do update set state = excluded.state, since = excluded.since,
          down_until = excluded.since`;
    },
    /** Lets time pass, then polls all targets without a result to process. */
    async polled(afterMs = 0) {
      clock.advance(afterMs);
      await database.owner.sql`
        update tallyhook.targets set last_started_at = ${isoText(clock.now())}`;
    },
  };
}
