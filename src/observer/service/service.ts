/**
 * The state of the service, stored: what probes and real requests say of it. A probe is a poll of
 * the maintenance status. When its answer would stop polls, or while they are stopped, one target
 * is read as well, since the answers to real requests decide. The new state and its events are one
 * commit; concurrent probes of several daemons are serialized.
 */
import type { Db, Queryable, Tx } from '../../db/connect.ts';
import { newValues, rowOf } from '../../db/rows.ts';
import { type Clock, type Instant, isoText } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { ServiceState } from '../../resources/service.ts';
import type { Observation, Upstream } from '../../upstream/upstream.ts';
import { read, readableOf } from '../absence.ts';
import { serviceState } from '../tables.ts';
import type { TargetColumns } from '../targets.ts';
import {
  ANSWER_RECENT_MS,
  afterProbe,
  announcementFields,
  FAILURES_MAX,
  mayPoll,
  nextProbeAt,
  type ProbeResult,
  type RealRequests,
  realVoiceOf,
  type Service,
} from './state.ts';

interface Deps {
  db: Db;
  clock: Clock;
  upstream: Upstream;
  /** What `upstream` has counted of its reads. */
  real: RealRequests;
  outbox: Outbox;
  settings: ProbeSettings;
}

interface ProbeSettings {
  probeMs: number;
  probeDownMs: number;
  pollTimeoutMs: number;
}

/** Probes if due; returns when the next probe is due. */
export async function probeOnce(deps: Deps, now: Instant): Promise<Instant> {
  const { db, clock, upstream, settings } = deps;
  const before = await findService(db);
  if (before && before.nextProbeAt > now) return before.nextProbeAt;
  // Another daemon may have received a deadline.
  await upstream.syncQuota();
  const probe = probeResultOf(
    await upstream.maintenance(AbortSignal.timeout(settings.pollTimeoutMs)),
  );
  const isUp = probe.status === 'READY' || probe.status === 'ACTIVE';
  if (!isUp || (before && !mayPoll(before.state))) await readOne(deps);
  const { probeAt, isBack } = await db.begin(async (tx) => {
    const dueAt = await lockService(tx);
    // Another daemon has stored a newer probe.
    if (dueAt !== undefined && dueAt !== before?.nextProbeAt)
      return { probeAt: dueAt, isBack: false };
    return saveProbe(tx, deps, probe, clock.now());
  });
  if (isBack) await upstream.slowStart();
  return probeAt;
}

/** Reads the target that is due first, if there is one; only whether it is answered counts. */
async function readOne({ db, upstream, settings }: Deps): Promise<void> {
  const target = await findReadable(db);
  if (!target) return;
  await upstream.syncQuota();
  const { pollTimeoutMs } = settings;
  if (target.kind !== 'contract')
    return void (await read(upstream, readableOf(target), 'unknown', pollTimeoutMs));
  const contractId = must(target.contractId, 'contract');
  await upstream.tokens(contractId, { page: 1 }, 'unknown', AbortSignal.timeout(pollTimeoutMs));
}

/** The target that is due first, scans apart; undefined without any. */
async function findReadable(db: Queryable): Promise<TargetColumns | undefined> {
  const rows = await db.sql<TargetColumns[]>`
    select kind, addr, contract_id, token_id from tallyhook.targets
    where kind <> 'scan' order by next_poll_at limit 1`;
  return rows[0];
}

async function saveProbe(
  tx: Tx,
  { outbox, settings, real }: Deps,
  probe: ProbeResult,
  now: Instant,
): Promise<{ probeAt: Instant; isBack: boolean }> {
  const found = await findService(tx);
  const before: Service = found ?? {
    state: 'active',
    since: now,
    announced: null,
    failures: 0,
    downFrom: null,
    downUntil: null,
  };
  const answeredAt = Math.max(found?.answeredAt ?? 0, real.answeredAt ?? 0) || null;
  const voice = realVoiceOf(real, answeredAt, before, probe, now);
  const { service, events } = afterProbe(before, probe, voice, now);
  const probeAt = nextProbeAt(service, settings, now);
  await saveService(tx, service, probeAt);
  if (!found || service.state !== before.state) await insertServiceChange(tx, service);
  const data = {
    service: 'upstream' as const,
    previous: before.state,
    current: service.state,
    ...announcementFields(service.announced ?? before.announced),
  };
  await outbox.emit(
    tx,
    events.map((type) => ({ type, subject: 'service:upstream', occurredAt: now, data })),
  );
  return { probeAt, isBack: !mayPoll(before.state) && mayPoll(service.state) };
}

const LIMITED = new Set(['throttled', 'budget']);

function probeResultOf(observation: Awaited<ReturnType<Upstream['maintenance']>>): ProbeResult {
  if (observation.result === 'seen') {
    const { status, startText, endText, message } = observation.record;
    const announced = { start: startText ?? null, end: endText ?? null, message: message ?? null };
    return { status, announced };
  }
  if (observation.result === 'inconclusive' && observation.cause === 'maintenance') {
    return { status: 'INACTIVE', announced: { start: null, end: null, message: null } };
  }
  if (observation.result === 'inconclusive' && LIMITED.has(observation.cause))
    return { status: 'postponed' };
  return { status: 'none' };
}

type Read = Pick<Upstream, 'account' | 'token' | 'tokens'>;

/** The reads, and the count that each of them changes when it ends. */
export function countingReads<U extends Read>(upstream: U): { upstream: U; real: RealRequests } {
  const real: RealRequests = { answeredAt: null, failures: 0, isMaintenance: false };
  const counted = async <T>(reading: Promise<Observation<T>>): Promise<Observation<T>> => {
    const observation = await reading;
    count(real, observation);
    return observation;
  };
  const reads: Read = {
    account: (...input) => counted(upstream.account(...input)),
    token: (...input) => counted(upstream.token(...input)),
    tokens: (...input) => counted(upstream.tokens(...input)),
  };
  return { upstream: { ...upstream, ...reads }, real };
}

function count(real: RealRequests, observation: Observation<unknown>): void {
  if (observation.result !== 'inconclusive')
    Object.assign(real, { answeredAt: observation.endedAt, failures: 0, isMaintenance: false });
  else if (!observation.isUnsent && FAILURES.has(observation.cause))
    Object.assign(real, {
      failures: real.failures + 1,
      isMaintenance: observation.cause === 'maintenance',
    });
}

const FAILURES = new Set(['unreachable', 'error', 'maintenance']);

/**
 * Tells the other daemons that the service answers this one, and has it probed when it does not.
 * Returns whether the probe is due now.
 */
export function realReporter(deps: Pick<Deps, 'db' | 'real' | 'settings'>) {
  const { db, real, settings } = deps;
  let savedAt = 0;
  let expeditedAt = 0;
  return async (now: Instant, isMaintenance: boolean): Promise<boolean> => {
    const { answeredAt, failures } = real;
    if (answeredAt !== null && Math.abs(answeredAt - savedAt) >= ANSWER_RECENT_MS / 2) {
      await saveAnswered(db, answeredAt);
      savedAt = answeredAt;
    }
    const isSilent = failures >= FAILURES_MAX && now - (answeredAt ?? 0) >= ANSWER_RECENT_MS;
    const isLate = Math.abs(now - expeditedAt) >= settings.probeDownMs;
    if (!isMaintenance && !(isSilent && isLate)) return false;
    expeditedAt = now;
    await expediteProbe(db, now);
    return true;
  };
}

/** Keeps the last answer to a read of any daemon. */
async function saveAnswered(db: Queryable, answeredAt: Instant): Promise<void> {
  await db.sql`
    update tallyhook.service_state set answered_at = ${isoText(answeredAt)}
    where name = 'upstream'
      and (answered_at is null or answered_at < ${isoText(answeredAt)})`;
}

/** Makes the next probe due now, unless the service is known to be down. */
async function expediteProbe(db: Queryable, now: Instant): Promise<void> {
  await db.sql`
    update tallyhook.service_state set next_probe_at = ${isoText(now)}
    where name = 'upstream' and next_probe_at > ${isoText(now)}
      and state in ('active', 'announced')`;
}

interface StoredService extends Service {
  nextProbeAt: Instant;
  /** The last answer to a read of any daemon, some seconds old. */
  answeredAt: Instant | null;
}

/** The state of the service; undefined before the first probe. */
export async function findService(db: Queryable): Promise<StoredService | undefined> {
  const rows = await db.sql<StoredService[]>`
    select state, since, down_from, down_until, announced, failures, next_probe_at, answered_at
    from tallyhook.service_state where name = 'upstream'`;
  return rows[0];
}

/**
 * Serializes concurrent probes until the end of the transaction; returns when the next probe is
 * due, or undefined before the first one.
 */
async function lockService(tx: Tx): Promise<Instant | undefined> {
  await tx.sql`select pg_advisory_xact_lock(hashtext('tallyhook.service_state'))`;
  const rows = await tx.sql<{ nextProbeAt: Instant }[]>`
    select next_probe_at from tallyhook.service_state where name = 'upstream'`;
  return rows[0]?.nextProbeAt;
}

/** What it does not know, it keeps: the last answer to a read. */
async function saveService({ sql }: Tx, service: Service, nextProbeAt: Instant): Promise<void> {
  const announced = service.announced && { ...service.announced };
  const row = { name: 'upstream', ...service, announced, nextProbeAt };
  await sql`
    insert into tallyhook.service_state ${rowOf(sql, serviceState, row)}
    on conflict (name) do update set ${newValues(sql, serviceState, 'name', 'answered_at')}`;
}

/** The service is in another state from then on. */
async function insertServiceChange(
  tx: Tx,
  { state, since }: Pick<Service, 'state' | 'since'>,
): Promise<void> {
  await tx.sql`
    with former as (
      delete from tallyhook.service_changes
      where at < ${isoText(since)}::timestamptz - interval '1 year'
    )
    insert into tallyhook.service_changes (at, state) values (${isoText(since)}, ${state})
    on conflict (at) do update set state = excluded.state`;
}

/** A state of the service from an instant on, until the next one. */
interface ServiceChange {
  at: Instant;
  state: ServiceState;
}

/** Of one list; a service that changes more often is shown as far as this. */
const CHANGES_MAX = 1_000;

/** The changes since then, and the one before them, oldest first. */
export async function listServiceChanges(db: Queryable, since: Instant): Promise<ServiceChange[]> {
  return db.sql<ServiceChange[]>`
    select at, state from tallyhook.service_changes
    where at >= coalesce((select max(at) from tallyhook.service_changes
      where at <= ${isoText(since)}), '-infinity')
    order by at limit ${CHANGES_MAX}`;
}
