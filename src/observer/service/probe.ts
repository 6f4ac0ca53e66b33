/**
 * Asking whether the service is there at all: one probe of its maintenance status, and what it
 * changes. The state and its events are one commit; two daemons that probe at once follow each
 * other.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { Upstream } from '../../upstream/upstream.ts';
import { afterSign, mayPoll, type Service, type Sign } from './state.ts';
import * as store from './store.ts';

interface Deps {
  db: Db;
  clock: Clock;
  upstream: Upstream;
  outbox: Outbox;
  settings: ProbeSettings;
}

interface ProbeSettings {
  probeMs: number;
  probeDownMs: number;
  pollTimeoutMs: number;
}

/** One probe, when it is due. Answers when the next one is. */
export async function probeOnce(parts: Deps, now: Instant): Promise<Instant> {
  const { db, clock, upstream, outbox, settings } = parts;
  const before = await store.findService(db);
  if (before && before.nextProbeAt > now) return before.nextProbeAt;
  const sign = signOf(await upstream.maintenance(AbortSignal.timeout(settings.pollTimeoutMs)));
  return db.begin(async (tx) => {
    const dueAt = await store.lockService(tx);
    // Another daemon's probe was taken meanwhile: this turn is over.
    if (dueAt !== undefined && dueAt !== before?.nextProbeAt) return dueAt;
    return takeSign(tx, outbox, settings, sign, clock.now());
  });
}

/** Applies one sign to the state of the service, with its events, in one transaction. */
async function takeSign(
  tx: Tx,
  outbox: Outbox,
  settings: ProbeSettings,
  sign: Sign,
  now: Instant,
): Promise<Instant> {
  const found = await store.findService(tx);
  const before: Service = found ?? { state: 'active', since: now, announced: null, failures: 0 };
  const { service, events } = afterSign(before, sign, now);
  const down = !mayPoll(service.state);
  const nextProbeAt =
    now + (down || service.failures > 0 ? settings.probeDownMs : settings.probeMs);
  const wasDown = found !== undefined && !mayPoll(found.state);
  const frozenMs = wasDown ? Math.max(0, now - found.nextProbeAt + settings.probeDownMs) : 0;
  await store.saveService(tx, service, now, nextProbeAt, frozenMs);
  const told = sign.says === 'nothing' ? before.announced : sign.announced;
  await outbox.emit(
    tx,
    events.map((type) => serviceEvent(type, before, service, told, now)),
  );
  return nextProbeAt;
}

function serviceEvent(
  type: string,
  before: Service,
  after: Service,
  told: Service['announced'],
  at: Instant,
): EventDraft {
  const data = {
    service: 'upstream' as const,
    previous: before.state,
    current: after.state,
    start: told?.start ?? null,
    end: told?.end ?? null,
    message: told?.message ?? null,
  };
  return { type, subject: 'service:upstream', occurredAt: at, data } as EventDraft;
}

function signOf(observation: Awaited<ReturnType<Upstream['maintenance']>>): Sign {
  if (observation.result === 'seen') {
    const { status, startText, endText, message } = observation.record;
    const announced = { start: startText ?? null, end: endText ?? null, message: message ?? null };
    return { says: status, announced };
  }
  if (observation.result === 'inconclusive' && observation.cause === 'maintenance') {
    return { says: 'INACTIVE', announced: { start: null, end: null, message: null } };
  }
  return { says: 'nothing' };
}
