import { describe, expect, it } from 'vitest';
import {
  type Announced,
  afterSign,
  mayPoll,
  type Service,
  type Sign,
} from '../../src/observer/service/state.ts';

const NONE: Announced = { start: null, end: null, message: null };
const TOLD: Announced = { start: '2026-01-01 02:00:00', end: null, message: 'soon' };
const service = (state: Service['state'], given: Partial<Service> = {}): Service => ({
  state,
  since: 1_000,
  announced: null,
  failures: 0,
  ...given,
});
const says = (status: 'READY' | 'ACTIVE' | 'INACTIVE', announced = NONE): Sign => ({
  says: status,
  announced,
});
const nothing: Sign = { says: 'nothing' };

describe('The state of the service', () => {
  it.each([
    ['Normal stays normal', service('active'), says('ACTIVE'), 'active', []],
    [
      'An announcement is told',
      service('active'),
      says('READY', TOLD),
      'announced',
      ['service.maintenance_announced'],
    ],
    [
      'The same announcement is told once',
      service('announced', { announced: TOLD }),
      says('READY', TOLD),
      'announced',
      [],
    ],
    [
      'Another announcement is told',
      service('announced', { announced: NONE }),
      says('READY', TOLD),
      'announced',
      ['service.maintenance_announced'],
    ],
    [
      'An announcement taken back is no event',
      service('announced', { announced: TOLD }),
      says('ACTIVE'),
      'active',
      [],
    ],
    [
      'Maintenance begins as announced',
      service('announced', { announced: TOLD }),
      says('INACTIVE', TOLD),
      'maintenance',
      ['service.maintenance_started'],
    ],
    [
      'Maintenance begins unannounced',
      service('active'),
      says('INACTIVE'),
      'maintenance',
      ['service.maintenance_started'],
    ],
    ['Maintenance goes on', service('maintenance'), says('INACTIVE'), 'maintenance', []],
    [
      'Maintenance ends',
      service('maintenance'),
      says('ACTIVE'),
      'active',
      ['service.maintenance_ended'],
    ],
    [
      'Maintenance ends and the next is announced',
      service('maintenance'),
      says('READY', TOLD),
      'announced',
      ['service.maintenance_ended', 'service.maintenance_announced'],
    ],
    ['One failed probe is nothing', service('active'), nothing, 'active', []],
    [
      'The third failed probe in a row is told',
      service('active', { failures: 2 }),
      nothing,
      'unreachable',
      ['service.unreachable'],
    ],
    [
      'Further failed probes are told no more',
      service('unreachable', { failures: 3 }),
      nothing,
      'unreachable',
      [],
    ],
    [
      'No answer during maintenance is maintenance',
      service('maintenance', { failures: 9 }),
      nothing,
      'maintenance',
      [],
    ],
    [
      'An answer after silence is a recovery',
      service('unreachable'),
      says('ACTIVE'),
      'active',
      ['service.recovered'],
    ],
    [
      'Maintenance after silence is both',
      service('unreachable'),
      says('INACTIVE'),
      'maintenance',
      ['service.recovered', 'service.maintenance_started'],
    ],
  ] as const)('%s', (_title, before, sign, state, events) => {
    const next = afterSign(before, sign, 2_000);
    expect(next.service.state).toBe(state);
    expect(next.service.since).toBe(state === before.state ? 1_000 : 2_000);
    expect(next.service.failures).toBe(sign.says === 'nothing' ? before.failures + 1 : 0);
    expect(next.events).toEqual(events);
  });

  it.each([
    ['active', true],
    ['announced', true],
    ['maintenance', false],
    ['unreachable', false],
  ] as const)('Looking makes sense while it is %s: %s', (state, may) => {
    expect(mayPoll(state)).toBe(may);
  });
});
