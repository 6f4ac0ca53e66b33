/**
 * Alerts: what the watchdog and the rules of the configuration find. One elected daemon compares
 * what holds with the alerts that are raised; the change of the table and its events are one
 * commit, so each begins and ends once.
 */

import type { Tx } from '../../db/connect.ts';
import type { Context } from '../../db/context.ts';
import { type Daemon, lockLease, makeLease } from '../../db/leases.ts';
import type { Instant } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { addWallets, availableSince, type Observer } from '../../observer/observer.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { begunEvents, endedEvents } from './events.ts';
import { CONTRADICTED, checkFeeRule } from './fee-votes.ts';
import { type Condition, changesOf, type StuckSettings } from './rule.ts';
import { type AlertRule, checkRules } from './rule-checks.ts';
import * as store from './store.ts';
import { checkVanished, LATE, makeLateCheck, makeStuckCheck, STUCK } from './watchdog.ts';

export interface Alerts {
  /** Returns how many alerts began or ended; 0 while another daemon is the leader. */
  runOnce(now: Instant): Promise<number>;
}

export interface AlertSettings extends StuckSettings {
  rules: readonly AlertRule[];
}

interface Deps extends Pick<Context, 'db' | 'clock' | 'ids' | 'log'> {
  daemon: Daemon;
  outbox: Outbox;
  observer: Pick<Observer, 'pricing'>;
  settings: AlertSettings;
}

const LEASE = 'alerts';
const LEASE_MS = 15_000;

export function makeAlerts(deps: Deps): Alerts {
  const { db, ids, outbox, settings } = deps;
  let walletsAdded = false;
  const acquire = makeLease(db, { ...deps, name: LEASE, ttlMs: LEASE_MS });
  const lateCheck = makeLateCheck(deps);
  const stuckCheck = makeStuckCheck(deps);

  const pass = async (fence: bigint, now: Instant): Promise<number> => {
    // The wallets of rules are observed without a watch.
    const addrs = settings.rules.flatMap((rule) => ('addr' in rule ? [rule.addr] : []));
    if (!walletsAdded) await addWallets(db, addrs, now);
    walletsAdded = true;
    // While the service is down nothing can be polled or settle: these alerts stay as they are.
    const from = await availableSince(db);
    const isUp = Number.isFinite(from);
    const late = isUp ? await lateCheck(now, from) : undefined;
    return db.begin(async (tx) => {
      await lockLease(tx, LEASE, fence);
      const raised = await store.listRaised(tx);
      const found = await checkRules(tx, settings.rules, { now, from, raised });
      const findings = [...found.values()];
      const checked = (rule: string) => {
        if (rule === LATE) return late !== undefined;
        if (rule === STUCK || rule === CONTRADICTED) return isUp;
        // What a rule raised that was removed ends.
        return found.has(rule) || !settings.rules.some(({ name }) => name === rule);
      };
      const holding: Condition[] = [
        ...(late ? [late] : []),
        ...(isUp ? await stuckCheck(tx, now, from, raised) : []),
        ...(isUp ? await checkFeeRule(tx) : []),
        ...(await checkVanished(tx)),
        ...findings.flatMap(({ holding: some }) => some),
      ];
      const { begun, ended, updated } = changesOf(
        raised,
        holding,
        checked,
        findings.flatMap(({ lapsed }) => lapsed),
      );
      const still = await stillHolding(tx, begun);
      const added = still.map((one) => ({ ...one, id: ids.next('alr'), raisedAt: now }));
      if (added.length > 0) await store.insertAlerts(tx, added);
      if (updated.length > 0) await store.updateDetails(tx, updated);
      const endedIds = ended.map(({ id }) => id);
      if (endedIds.length > 0) await store.deleteAlerts(tx, endedIds);
      const events = [
        ...added.flatMap(begunEvents),
        ...ended.flatMap((one) => endedEvents(one, now)),
      ];
      await outbox.emit(tx, events);
      return events.length;
    });
  };

  return {
    async runOnce(now) {
      const fence = await acquire(now);
      if (fence === undefined) return 0;
      try {
        return await pass(fence, now);
      } catch (error) {
        if (error instanceof Failure && error.code === 'lease_lost') return 0;
        throw error;
      }
    },
  };
}

/** Without operations that settled meanwhile: no event may follow their last one. */
async function stillHolding(tx: Tx, begun: readonly Condition[]): Promise<Condition[]> {
  const stuck = begun.flatMap(({ rule, subject }) => (rule === STUCK ? [subject] : []));
  const unsettled = await store.lockUnsettled(tx, stuck);
  return begun.filter(({ rule, subject }) => rule !== STUCK || unsettled.has(subject));
}
