/**
 * The state machine of the service's availability. Pure. Any change of the maintenance status may
 * happen, also without announcement. Polls stop unless the state is `active` or `announced`, so
 * that maintenance raises no alarms. What the service answers to real requests decides; the probe
 * of its maintenance status is one voice, and decides alone only while nothing else is read.
 */
import { type Instant, isoTextOrNull } from '../../kernel/clock.ts';
import type { EventType } from '../../resources/delivery/events.ts';
import type { ServiceState } from '../../resources/service.ts';

/** The last time the service was down; it still is while the end is null. */
interface Outage {
  downFrom: Instant | null;
  downUntil: Instant | null;
}

/**
 * The time between two instants at which the service ran: clocks that wait for its effects stand
 * still while it is down. Outages before the last one are not known any more.
 */
export function runningMs(outage: Outage | undefined, from: Instant, to: Instant): number {
  const { downFrom, downUntil } = outage ?? { downFrom: null, downUntil: null };
  const downMs = downFrom === null ? 0 : Math.min(to, downUntil ?? to) - Math.max(from, downFrom);
  return Math.max(0, to - from - Math.max(0, downMs));
}

/** The texts of the service's announcement. */
export interface Announced {
  start: string | null;
  end: string | null;
  message: string | null;
}

type ServiceEvent = Extract<EventType, `service.${string}`>;

export interface Service extends Outage {
  state: ServiceState;
  since: Instant;
  announced: Announced | null;
  /** Consecutive probes without an answer. */
  failures: number;
}

export type ProbeResult =
  | { status: 'READY' | 'ACTIVE' | 'INACTIVE'; announced: Announced }
  /** No answer. */
  | { status: 'none' }
  /** Not asked, or answered with a limit: it says nothing about the state. */
  | { status: 'postponed' };

/** What the service's answers to real requests say, those of all daemons together. */
export type RealVoice =
  /** It answers. */
  | 'answers'
  /** It refuses them because of maintenance. */
  | 'maintenance'
  /** It has not answered for a while, or still does not. */
  | 'fails'
  /** Nothing was read lately, or too little failed to say anything. */
  | 'silent';

/** The requests of this daemon since the last one that was answered. */
export interface RealRequests {
  /** The end of the last one that was answered. */
  answeredAt: Instant | null;
  failures: number;
  /** Whether the last failure was a refusal because of maintenance. */
  isMaintenance: boolean;
}

/** An answer is recent for so long: then single failures do not make the service unreachable. */
export const ANSWER_RECENT_MS = 10_000;

/** @param answeredAt the last answer to a real request of any daemon */
export function realVoiceOf(
  { failures, isMaintenance }: RealRequests,
  answeredAt: Instant | null,
  { state }: Pick<Service, 'state'>,
  probe: ProbeResult,
  now: Instant,
): RealVoice {
  const isRecent = answeredAt !== null && now - answeredAt < ANSWER_RECENT_MS;
  if (failures > 0) {
    const isRepeated = failures >= (mayPoll(state) ? FAILURES_MAX : 1);
    const isDenied = probe.status === 'ACTIVE' || probe.status === 'READY';
    if (isMaintenance && (isRepeated || !isDenied)) return 'maintenance';
    if (isRepeated && !isRecent) return 'fails';
  }
  return isRecent && (failures === 0 || mayPoll(state)) ? 'answers' : 'silent';
}

const TEXT = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)$/;

/**
 * The instant of a text such as `2026-01-31 10:00:00`. The service names no time zone; UTC is
 * assumed. Undefined for any other text.
 */
function announcedAt(text: string | null | undefined): Instant | undefined {
  const [, day, time] = TEXT.exec(text ?? '') ?? [];
  const at = Date.parse(`${day}T${time}Z`);
  return Number.isNaN(at) ? undefined : at;
}

/** The announcement as events and the API show it: instants beside the service's own texts. */
export function announcementFields(announced: Announced | null) {
  const { start = null, end = null, message = null } = announced ?? {};
  const rfc3339 = (text: string | null) => isoTextOrNull(announcedAt(text));
  return {
    start: rfc3339(start),
    start_text: start,
    end: rfc3339(end),
    end_text: end,
    message,
  };
}

/**
 * When to probe next. While the service is down seldom until the announced end, and at once then;
 * before the announced start no later than that.
 */
export function nextProbeAt(
  { state, announced, failures }: Service,
  { probeMs, probeDownMs }: { probeMs: number; probeDownMs: number },
  now: Instant,
): Instant {
  const down = !mayPoll(state);
  const changesAt = announcedAt(down ? announced?.end : announced?.start);
  const isAhead = changesAt !== undefined && changesAt > now && failures === 0;
  const usualMs = (down && !isAhead) || failures > 0 ? probeDownMs : probeMs;
  return isAhead ? Math.min(changesAt, now + usualMs) : now + usualMs;
}

/**
 * Consecutive failures after which the service counts as unreachable: of real requests, or of
 * probes while nothing else is read.
 */
export const FAILURES_MAX = 3;

/** The state after a probe, and the events of the change. */
export function afterProbe(
  service: Service,
  probe: ProbeResult,
  real: RealVoice,
  at: Instant,
): { service: Service; events: ServiceEvent[] } {
  const failures = real === 'answers' || isAnswered(probe) ? 0 : service.failures + 1;
  if (probe.status === 'postponed' && real === 'silent') return { service, events: [] };
  const state = stateAfter({ ...service, failures }, probe, real);
  const outage = mayPoll(state)
    ? { downFrom: service.downFrom, downUntil: service.downFrom && (service.downUntil ?? at) }
    : downSince(service, at);
  const announced = isAnswered(probe)
    ? announcementOf(service, probe.announced)
    : service.announced;
  const next = {
    ...outage,
    state,
    since: state === service.state ? service.since : at,
    announced: state === 'active' ? null : announced,
    failures,
  };
  return { service: next, events: eventsOf(service, next) };
}

type Answered = Extract<ProbeResult, { announced: Announced }>;

function isAnswered(probe: ProbeResult): probe is Answered {
  return 'announced' in probe;
}

const PROBED = { READY: 'announced', ACTIVE: 'active', INACTIVE: 'maintenance' } as const;

/** @param service with the failures of probes up to now */
function stateAfter(
  { state, failures }: Service,
  probe: ProbeResult,
  real: RealVoice,
): ServiceState {
  if (real === 'maintenance') return 'maintenance';
  if (real === 'fails') return isMaintained(state, probe) ? 'maintenance' : 'unreachable';
  const probed = isAnswered(probe) ? PROBED[probe.status] : undefined;
  if (probed && (real === 'silent' || mayPoll(probed))) return probed;
  if (real === 'answers') return mayPoll(state) ? state : 'active';
  return mayPoll(state) && failures >= FAILURES_MAX ? 'unreachable' : state;
}

/** Whether the service is in maintenance if it does not answer. */
function isMaintained(state: ServiceState, probe: ProbeResult): boolean {
  return probe.status === 'INACTIVE' || (state === 'maintenance' && !isAnswered(probe));
}

function eventsOf(before: Service, after: Service): ServiceEvent[] {
  const [from, to] = [before.state, after.state];
  const events: ServiceEvent[] = [];
  if (from === 'unreachable' && to !== 'unreachable') events.push('service.recovered');
  if (from === 'maintenance' && to !== 'maintenance') events.push('service.maintenance_ended');
  if (to === 'maintenance' && from !== 'maintenance') events.push('service.maintenance_started');
  if (to === 'unreachable' && from !== 'unreachable') events.push('service.unreachable');
  if (to === 'announced' && !sameAnnouncement(before.announced, after.announced))
    events.push('service.maintenance_announced');
  return events;
}

/** The outage that began at once, or goes on. */
function downSince({ state, downFrom, downUntil }: Service, at: Instant): Outage {
  return mayPoll(state) ? { downFrom: at, downUntil: null } : { downFrom, downUntil };
}

export function mayPoll(state: ServiceState): boolean {
  return state === 'active' || state === 'announced';
}

/**
 * Since when the service has been available: 0 before the first probe, infinite while it is down.
 * Waits for effects of the service count from then.
 */
export function availableSinceOf(service: Service | undefined): Instant {
  if (!service) return 0;
  // An announcement, or its withdrawal, interrupts nothing.
  return mayPoll(service.state) ? (service.downUntil ?? 0) : Number.POSITIVE_INFINITY;
}

/** The announcement that stands: a 503 says nothing of the one before. */
function announcementOf({ announced }: Service, probed: Announced): Announced {
  const { start, end, message } = probed;
  return start === null && end === null && message === null ? (announced ?? probed) : probed;
}

function sameAnnouncement(a: Announced | null, b: Announced | null): boolean {
  return (
    a !== null && b !== null && a.start === b.start && a.end === b.end && a.message === b.message
  );
}
