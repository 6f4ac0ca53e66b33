/**
 * Whether the service answers: a state machine over what probes and looks say. Pure. Any change may
 * happen, also unannounced (not-shown); each is one event. While the state is not `active` or
 * `announced` nobody looks at anything, so that maintenance raises no alarm.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { EventType } from '../../outbox/events.ts';

export type ServiceState = 'active' | 'announced' | 'maintenance' | 'unreachable';

/** What was announced: the service's own texts. */
export interface Announced {
  start: string | null;
  end: string | null;
  message: string | null;
}

export interface Service {
  state: ServiceState;
  since: Instant;
  announced: Announced | null;
  /** Probes in a row that brought nothing. */
  failures: number;
}

export type Sign =
  | { says: 'READY' | 'ACTIVE' | 'INACTIVE'; announced: Announced }
  | { says: 'nothing' };

/** Failed probes in a row after which the service counts as unreachable. */
export const FAILURES_MAX = 3;

/** The state after a sign, and the events of the change. */
export function afterSign(
  service: Service,
  sign: Sign,
  at: Instant,
): { service: Service; events: EventType[] } {
  if (sign.says === 'nothing') {
    const failures = service.failures + 1;
    if (
      failures < FAILURES_MAX ||
      service.state === 'unreachable' ||
      service.state === 'maintenance'
    ) {
      return { service: { ...service, failures }, events: [] };
    }
    return {
      service: { ...service, state: 'unreachable', since: at, failures },
      events: ['service.unreachable'],
    };
  }
  const state = ({ READY: 'announced', ACTIVE: 'active', INACTIVE: 'maintenance' } as const)[
    sign.says
  ];
  const next = {
    state,
    since: state === service.state ? service.since : at,
    announced: state === 'active' ? null : sign.announced,
    failures: 0,
  };
  const events: EventType[] = [];
  if (service.state === 'unreachable') events.push('service.recovered');
  if (service.state === 'maintenance' && state !== 'maintenance')
    events.push('service.maintenance_ended');
  if (state === 'maintenance' && service.state !== 'maintenance')
    events.push('service.maintenance_started');
  if (state === 'announced' && !sameAnnouncement(service.announced, sign.announced)) {
    events.push('service.maintenance_announced');
  }
  return { service: next, events };
}

/** True while looking makes sense. */
export function mayPoll(state: ServiceState): boolean {
  return state === 'active' || state === 'announced';
}

function sameAnnouncement(a: Announced | null, b: Announced): boolean {
  return a !== null && a.start === b.start && a.end === b.end && a.message === b.message;
}
