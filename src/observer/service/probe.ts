/**
 * Probes: polls of the maintenance status. When its answer would stop polls, or while they are
 * stopped, one target is read as well, since the answers to real requests decide. The new state and
 * its events are one commit; concurrent probes of several daemons are serialized.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { Upstream } from '../../upstream/upstream.ts';
import { read, readableOf } from '../absence.ts';
import {
  afterProbe,
  announcementFields,
  mayPoll,
  nextProbeAt,
  type ProbeResult,
  type RealRequests,
  realVoiceOf,
  type Service,
} from './state.ts';
import * as store from './store.ts';

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
  const before = await store.findService(db);
  if (before && before.nextProbeAt > now) return before.nextProbeAt;
  // Another daemon may have received a deadline.
  await upstream.syncQuota();
  const probe = probeResultOf(
    await upstream.maintenance(AbortSignal.timeout(settings.pollTimeoutMs)),
  );
  const isUp = probe.status === 'READY' || probe.status === 'ACTIVE';
  if (!isUp || (before && !mayPoll(before.state))) await readOne(deps);
  const { probeAt, isBack } = await db.begin(async (tx) => {
    const dueAt = await store.lockService(tx);
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
  const target = await store.findReadable(db);
  if (!target) return;
  await upstream.syncQuota();
  const { pollTimeoutMs } = settings;
  if (target.kind !== 'contract')
    return void (await read(upstream, readableOf(target), 'unknown', pollTimeoutMs));
  const contractId = must(target.contractId, 'contract');
  await upstream.tokens(contractId, { page: 1 }, 'unknown', AbortSignal.timeout(pollTimeoutMs));
}

async function saveProbe(
  tx: Tx,
  { outbox, settings, real }: Deps,
  probe: ProbeResult,
  now: Instant,
): Promise<{ probeAt: Instant; isBack: boolean }> {
  const found = await store.findService(tx);
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
  await store.saveService(tx, service, probeAt);
  if (!found || service.state !== before.state) await store.insertServiceChange(tx, service);
  const announced = service.announced ?? before.announced;
  await outbox.emit(
    tx,
    events.map((type) => serviceEvent(type, before, service, announced, now)),
  );
  return { probeAt, isBack: !mayPoll(before.state) && mayPoll(service.state) };
}

function serviceEvent(
  type: string,
  before: Service,
  after: Service,
  announced: Service['announced'],
  at: Instant,
): EventDraft {
  const data = {
    service: 'upstream' as const,
    previous: before.state,
    current: after.state,
    ...announcementFields(announced),
  };
  return { type, subject: 'service:upstream', occurredAt: at, data } as EventDraft;
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
