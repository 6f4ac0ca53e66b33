/**
 * Alerts: what the watchdog and the rules of the configuration find. One elected daemon compares
 * what holds with the alerts that are raised; the change of the table and its events are one
 * commit, so each begins and ends once.
 */
import { asJson, type Queryable, type Sql, type Tx } from '../../db/connect.ts';
import type { Context } from '../../db/context.ts';
import { type Daemon, isLeaseLost, lockLease, makeHeldLease } from '../../db/leases.ts';
import { columnsOf } from '../../db/rows.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { addWallets, availableSince, type Observer } from '../../observer/observer.ts';
import { numberEvents } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { EventType } from '../../resources/delivery/events.ts';
import { CONTRADICTED, checkFeeRule } from '../drifts/fee-rule.ts';
import { alerts } from '../tables.ts';
import { type Alert, type Condition, changesOf, type StuckSettings } from './rule.ts';
import { type AlertRule, checkRules } from './rule-checks.ts';
import { checkVanished, LATE, makeLateCheck, makeStuckCheck, STUCK, VANISHED } from './watchdog.ts';

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
  const lease = makeHeldLease(db, { ...deps, name: LEASE, ttlMs: LEASE_MS });
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
      const raised = await listRaised(tx);
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
      const numbers = await numberStuck(tx, begun);
      // No event may follow the last one of an operation that settled meanwhile.
      const still = begun.filter(({ rule, subject }) => rule !== STUCK || numbers.has(subject));
      const added = still.map((one) => ({ ...one, id: ids.next('alr'), raisedAt: now }));
      if (added.length > 0) await insertAlerts(tx, added);
      if (updated.length > 0) await updateDetails(tx, updated);
      const endedIds = ended.map(({ id }) => id);
      if (endedIds.length > 0) await deleteAlerts(tx, endedIds);
      const events = [
        ...added.flatMap((one) => begunEvents(one, numbers.get(one.subject))),
        ...ended.flatMap((one) => endedEvents(one, now)),
      ];
      await outbox.emit(tx, events);
      return events.length;
    });
  };

  return {
    async runOnce(now) {
      const fence = await lease.take(now);
      if (fence === undefined) return 0;
      try {
        return await pass(fence, now);
      } catch (error) {
        if (!isLeaseLost(error)) throw error;
        lease.forget();
        return 0;
      }
    },
  };
}

/** The numbers of the events about operations that got stuck and still wait to settle, by id. */
function numberStuck(tx: Tx, begun: readonly Condition[]): Promise<Map<string, bigint>> {
  return numberEvents(
    tx,
    begun.flatMap(({ rule, subject }) => (rule === STUCK ? [subject] : [])),
  );
}

/** None for a wallet that vanished: the observation that shows it is an event. */
function begunEvents(alert: Alert, seq: bigint | undefined): EventDraft[] {
  const { id, rule, subject, detail, raisedAt } = alert;
  if (rule === VANISHED) return [];
  if (rule === STUCK && seq !== undefined)
    return [{ ...draft(STUCK, `operation:${subject}`, raisedAt, detail), seq }];
  if (rule === CONTRADICTED) return [draft(CONTRADICTED, 'ledger:fee_rule', raisedAt, detail)];
  if (rule === LATE) return [draft(LATE, 'observer:targets', raisedAt, detail)];
  return [draft('alert.raised', `alert:${id}`, raisedAt, alertData(alert))];
}

/** None for what another event ends: a stuck operation, a fee rule, a vanished wallet. */
function endedEvents(alert: Alert, at: Instant): EventDraft[] {
  const { id, rule, detail, raisedAt } = alert;
  if (rule === STUCK || rule === CONTRADICTED || rule === VANISHED) return [];
  if (rule !== LATE) {
    const cleared = draft('alert.cleared', `alert:${id}`, at, alertData(alert));
    return [{ ...cleared, last: true }];
  }
  const { observation_age_max_ms } = detail;
  const data = { observation_age_max_ms, late_since: isoText(raisedAt) };
  return [draft('observer.recovered', 'observer:targets', at, data)];
}

function alertData({ id, rule, detail, raisedAt }: Alert): object {
  return { alert_id: id, rule, ...detail, raised_at: isoText(raisedAt) };
}

function draft(type: EventType, subject: string, occurredAt: Instant, data: object): EventDraft {
  return { type, subject, occurredAt, data } as EventDraft;
}

/** More are never raised at once. */
const RAISED_MAX = 50_000;

/** All alerts that are raised. */
async function listRaised({ sql }: Queryable): Promise<Alert[]> {
  return sql<Alert[]>`
    select ${columnsOf(sql, alerts)} from tallyhook.alerts
    order by id limit ${RAISED_MAX}`;
}

async function insertAlerts({ sql }: Tx, raised: readonly Alert[]): Promise<void> {
  const rows = raised.map((alert) => ({ ...alert, raisedAt: isoText(alert.raisedAt) }));
  await sql`
    insert into tallyhook.alerts (id, rule, subject, raised_at, detail)
    select id, rule, subject, "raisedAt", detail
    from jsonb_to_recordset(${asJson(rows)}::jsonb)
      as x(id text, rule text, subject text, "raisedAt" timestamptz, detail jsonb)`;
}

async function updateDetails({ sql }: Tx, changed: readonly Alert[]): Promise<void> {
  await sql`
    update tallyhook.alerts a set detail = x.detail
    from jsonb_to_recordset(${asJson(changed)}::jsonb) as x(id text, detail jsonb)
    where a.id = x.id`;
}

async function deleteAlerts({ sql }: Tx, ids: readonly string[]): Promise<void> {
  await sql`delete from tallyhook.alerts where id = any(${ids as string[]}::text[])`;
}

/** An alert is raised. */
export function hasAlerts(sql: Sql) {
  return sql`exists (select from tallyhook.alerts)`;
}

export interface AlertCount {
  rule: string;
  count: number;
  detail: Alert['detail'];
}

/** How many alerts of each rule are raised, and the detail of one of them. */
export async function countAlerts({ sql }: Queryable): Promise<AlertCount[]> {
  return sql<AlertCount[]>`
    select rule, count(*)::int as count, (array_agg(detail))[1] as detail
    from tallyhook.alerts group by rule`;
}

/** Raised alerts, oldest first, after an id. */
export async function listAlerts(
  { sql }: Queryable,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<Alert[]> {
  return sql<Alert[]>`
    select ${columnsOf(sql, alerts)} from tallyhook.alerts
    where id > ${after ?? ''} order by id limit ${limit}`;
}
