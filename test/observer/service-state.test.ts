import { describe, expect, it } from 'vitest';
import {
  type Announced,
  afterProbe,
  mayPoll,
  type ProbeResult,
  type Service,
} from '../../src/observer/service/state.ts';

const NONE: Announced = { start: null, end: null, message: null };
const ANNOUNCED: Announced = { start: '2026-01-01 02:00:00', end: null, message: 'soon' };
const service = (state: Service['state'], given: Partial<Service> = {}): Service => ({
  state,
  since: 1_000,
  announced: null,
  failures: 0,
  downFrom: null,
  downUntil: null,
  ...given,
});
const probed = (status: 'READY' | 'ACTIVE' | 'INACTIVE', announced = NONE): ProbeResult => ({
  status,
  announced,
});
const none: ProbeResult = { status: 'none' };

describe('The state of the service', () => {
  it.each([
    ['Active stays active', service('active'), probed('ACTIVE'), 'active', []],
    [
      'An announcement is an event',
      service('active'),
      probed('READY', ANNOUNCED),
      'announced',
      ['service.maintenance_announced'],
    ],
    [
      'The same announcement is one event',
      service('announced', { announced: ANNOUNCED }),
      probed('READY', ANNOUNCED),
      'announced',
      [],
    ],
    [
      'Another announcement is another event',
      service('announced', { announced: NONE }),
      probed('READY', ANNOUNCED),
      'announced',
      ['service.maintenance_announced'],
    ],
    [
      'A withdrawn announcement is no event',
      service('announced', { announced: ANNOUNCED }),
      probed('ACTIVE'),
      'active',
      [],
    ],
    [
      'Maintenance begins as announced',
      service('announced', { announced: ANNOUNCED }),
      probed('INACTIVE', ANNOUNCED),
      'maintenance',
      ['service.maintenance_started'],
    ],
    [
      'Maintenance begins unannounced',
      service('active'),
      probed('INACTIVE'),
      'maintenance',
      ['service.maintenance_started'],
    ],
    ['Maintenance goes on', service('maintenance'), probed('INACTIVE'), 'maintenance', []],
    [
      'Maintenance ends',
      service('maintenance'),
      probed('ACTIVE'),
      'active',
      ['service.maintenance_ended'],
    ],
    [
      'Maintenance ends and the next is announced',
      service('maintenance'),
      probed('READY', ANNOUNCED),
      'announced',
      ['service.maintenance_ended', 'service.maintenance_announced'],
    ],
    ['One failed probe changes nothing', service('active'), none, 'active', []],
    [
      'The third consecutive failed probe makes it unreachable',
      service('active', { failures: 2 }),
      none,
      'unreachable',
      ['service.unreachable'],
    ],
    [
      'Further failed probes are no events',
      service('unreachable', { failures: 3 }),
      none,
      'unreachable',
      [],
    ],
    [
      'No answer during maintenance is maintenance',
      service('maintenance', { failures: 9 }),
      none,
      'maintenance',
      [],
    ],
    [
      'A probe that a limit of requests postpones changes nothing',
      service('active'),
      { status: 'postponed' },
      'active',
      [],
    ],
    [
      'An answer after silence is a recovery',
      service('unreachable'),
      probed('ACTIVE'),
      'active',
      ['service.recovered'],
    ],
    [
      'Maintenance after silence is a recovery and a start of maintenance',
      service('unreachable'),
      probed('INACTIVE'),
      'maintenance',
      ['service.recovered', 'service.maintenance_started'],
    ],
  ] as const)('%s', (_title, before, probe, state, events) => {
    const next = afterProbe(before, probe, 2_000);
    expect(next.service.state).toBe(state);
    expect(next.service.since).toBe(state === before.state ? 1_000 : 2_000);
    expect(next.service.failures).toBe(probe.status === 'none' ? before.failures + 1 : 0);
    expect(next.events).toEqual(events);
  });

  it.each([
    ['active', true],
    ['announced', true],
    ['maintenance', false],
    ['unreachable', false],
  ] as const)('Polls are made while it is %s: %s', (state, may) => {
    expect(mayPoll(state)).toBe(may);
  });
});
