/**
 * The state machine of the service's availability. Pure. Any change of the maintenance status may
 * happen, also without announcement. Polls stop unless the state is `active` or `announced`, so
 * that maintenance raises no alarms.
 */
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { EventType } from '../../outbox/events.ts';

export type ServiceState = 'active' | 'announced' | 'maintenance' | 'unreachable';

/** The last time the service was down; it still is while the end is null. */
export interface Outage {
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

const TEXT = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)$/;

/**
 * The instant of a text such as `2026-01-31 10:00:00`. The service names no time zone; UTC is
 * assumed. Undefined for any other text.
 */
export function announcedAt(text: string | null | undefined): Instant | undefined {
  const [, day, time] = TEXT.exec(text ?? '') ?? [];
  const at = Date.parse(`${day}T${time}Z`);
  return Number.isNaN(at) ? undefined : at;
}

/** The announcement as events and the API show it: instants beside the service's own texts. */
export function announcementFields(announced: Announced | null) {
  const { start = null, end = null, message = null } = announced ?? {};
  const rfc3339 = (text: string | null) => {
    const at = announcedAt(text);
    return at === undefined ? null : isoText(at);
  };
  return {
    ...{ start: rfc3339(start), start_text: start, end: rfc3339(end), end_text: end },
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

/** Consecutive failed probes after which the service counts as unreachable. */
export const FAILURES_MAX = 3;

/** The state after a probe, and the events of the change. */
export function afterProbe(
  service: Service,
  probe: ProbeResult,
  at: Instant,
): { service: Service; events: EventType[] } {
  if (probe.status === 'postponed') return { service, events: [] };
  if (probe.status === 'none') {
    const failures = service.failures + 1;
    if (
      failures < FAILURES_MAX ||
      service.state === 'unreachable' ||
      service.state === 'maintenance'
    ) {
      return { service: { ...service, failures }, events: [] };
    }
    return {
      service: { ...service, state: 'unreachable', since: at, failures, ...downSince(service, at) },
      events: ['service.unreachable'],
    };
  }
  const state = ({ READY: 'announced', ACTIVE: 'active', INACTIVE: 'maintenance' } as const)[
    probe.status
  ];
  const outage = mayPoll(state)
    ? { downFrom: service.downFrom, downUntil: service.downFrom && (service.downUntil ?? at) }
    : downSince(service, at);
  const next = {
    ...outage,
    state,
    since: state === service.state ? service.since : at,

    announced: state === 'active' ? null : announcementOf(service, probe.announced),
    failures: 0,
  };
  const events: EventType[] = [];
  if (service.state === 'unreachable') events.push('service.recovered');
  if (service.state === 'maintenance' && state !== 'maintenance')
    events.push('service.maintenance_ended');
  if (state === 'maintenance' && service.state !== 'maintenance')
    events.push('service.maintenance_started');
  if (state === 'announced' && !sameAnnouncement(service.announced, probe.announced)) {
    events.push('service.maintenance_announced');
  }
  return { service: next, events };
}

/** The outage that began at once, or goes on. */
function downSince({ state, downFrom, downUntil }: Service, at: Instant): Outage {
  return mayPoll(state) ? { downFrom: at, downUntil: null } : { downFrom, downUntil };
}

export function mayPoll(state: ServiceState): boolean {
  return state === 'active' || state === 'announced';
}

/** The announcement that stands: a 503 says nothing of the one before. */
function announcementOf({ announced }: Service, probed: Announced): Announced {
  const { start, end, message } = probed;
  return start === null && end === null && message === null ? (announced ?? probed) : probed;
}

function sameAnnouncement(a: Announced | null, b: Announced): boolean {
  return a !== null && a.start === b.start && a.end === b.end && a.message === b.message;
}
