import { describe, expect, it } from 'vitest';
import {
  ANSWER_RECENT_MS,
  type Announced,
  afterProbe,
  announcementFields,
  mayPoll,
  nextProbeAt,
  type ProbeResult,
  type RealRequests,
  type RealVoice,
  realVoiceOf,
  runningMs,
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
    const next = afterProbe(before, probe, 'silent', 2_000);
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

describe('The answers to real requests', () => {
  const down = service('unreachable', { failures: 3 });
  const postponed: ProbeResult = { status: 'postponed' };
  const rows: [string, Service, ProbeResult, RealVoice, Service['state'], string[]][] = [
    [
      'keep polls going without a probe',
      service('active', { failures: 9 }),
      none,
      'answers',
      'active',
      [],
    ],
    [
      'keep polls going against a probe',
      service('active'),
      probed('INACTIVE'),
      'answers',
      'active',
      [],
    ],
    [
      'keep an announcement',
      service('announced', { announced: ANNOUNCED }),
      none,
      'answers',
      'announced',
      [],
    ],
    ['end an outage without a probe', down, none, 'answers', 'active', ['service.recovered']],
    [
      'end a maintenance against the probe',
      service('maintenance'),
      probed('INACTIVE'),
      'answers',
      'active',
      ['service.maintenance_ended'],
    ],
    [
      'leave an announcement to the probe',
      service('active'),
      probed('READY', ANNOUNCED),
      'answers',
      'announced',
      ['service.maintenance_announced'],
    ],
    [
      'that fail outweigh a probe',
      service('active'),
      probed('ACTIVE'),
      'fails',
      'unreachable',
      ['service.unreachable'],
    ],
    ['that still fail outweigh a probe', down, probed('ACTIVE'), 'fails', 'unreachable', []],
    [
      'that fail during a maintenance are maintenance',
      service('maintenance'),
      none,
      'fails',
      'maintenance',
      [],
    ],
    [
      'that name a maintenance outweigh a probe',
      service('active'),
      probed('ACTIVE'),
      'maintenance',
      'maintenance',
      ['service.maintenance_started'],
    ],
    [
      'name a maintenance without a probe',
      service('active'),
      none,
      'maintenance',
      'maintenance',
      ['service.maintenance_started'],
    ],
    ['outweigh a postponed probe', down, postponed, 'answers', 'active', ['service.recovered']],
  ];
  it.each(rows)('%s', (_title, before, probe, real, state, events) => {
    const next = afterProbe(before, probe, real, 2_000);
    expect(next.service.state).toBe(state);
    expect(next.events).toEqual(events);
    if (real === 'answers') expect(next.service.failures).toBe(0);
  });

  const NOW = 1_000_000;
  const recent = NOW - ANSWER_RECENT_MS + 1;
  const old = NOW - ANSWER_RECENT_MS;
  const counted = (failures: number, isMaintenance = false): RealRequests => ({
    answeredAt: null,
    failures,
    isMaintenance,
  });
  const voices: [string, RealRequests, number | null, Service['state'], ProbeResult, RealVoice][] =
    [
      ['one that was answered lately', counted(0), recent, 'active', none, 'answers'],
      ['an answer to another daemon', counted(5), recent, 'active', none, 'answers'],
      ['an answer of long ago', counted(0), old, 'active', none, 'silent'],
      ['no request at all', counted(0), null, 'active', none, 'silent'],
      ['two failures', counted(2), old, 'active', none, 'silent'],
      ['three failures', counted(3), old, 'active', probed('ACTIVE'), 'fails'],
      ['three failures without any answer', counted(3), null, 'active', none, 'fails'],
      ['one failure while it is down', counted(1), old, 'unreachable', probed('ACTIVE'), 'fails'],
      ['one failure just after it went down', counted(1), recent, 'unreachable', none, 'silent'],
      [
        'one refusal because of maintenance',
        counted(1, true),
        recent,
        'active',
        none,
        'maintenance',
      ],
      [
        'one that the probe denies',
        counted(1, true),
        recent,
        'active',
        probed('ACTIVE'),
        'answers',
      ],
      [
        'three that the probe denies',
        counted(3, true),
        recent,
        'active',
        probed('ACTIVE'),
        'maintenance',
      ],
    ];
  it.each(voices)('%s', (_title, real, answeredAt, state, probe, voice) => {
    expect(realVoiceOf(real, answeredAt, service(state), probe, NOW)).toBe(voice);
  });
});

describe('An announcement', () => {
  it('is shown as instants, in UTC, beside the texts of the service', () => {
    expect(announcementFields({ ...ANNOUNCED, end: 'about noon' })).toEqual({
      start: '2026-01-01T02:00:00.000Z',
      start_text: '2026-01-01 02:00:00',
      end: null,
      end_text: 'about noon',
      message: 'soon',
    });
  });

  it('that was withdrawn does not end an outage, nor does one begin with it', () => {
    const announced = afterProbe(
      service('active'),
      probed('READY', ANNOUNCED),
      'silent',
      5_000,
    ).service;
    expect(announced).toMatchObject({ downFrom: null, downUntil: null });
    const withdrawn = afterProbe(announced, probed('ACTIVE'), 'silent', 6_000).service;
    expect(withdrawn).toMatchObject({ downFrom: null, downUntil: null });
  });
});

describe('The next probe', () => {
  const TIMES = { probeMs: 30_000, probeDownMs: 5_000 };
  const NOW = Date.parse('2026-01-01T02:00:00Z');
  const until = (end: string | null) => ({ announced: { start: null, end, message: null } });
  it.each([
    ['is made in turn while the service is available', service('active'), 30_000],
    ['is made soon after one without an answer', service('active', { failures: 1 }), 5_000],
    ['is made soon while the end of a maintenance is not known', service('maintenance'), 5_000],
    [
      'is made seldom until the announced end',
      service('maintenance', until('2026-01-01 03:00:00')),
      30_000,
    ],
    ['is made at the announced end', service('maintenance', until('2026-01-01 02:00:12')), 12_000],
    [
      'is made soon after the announced end',
      service('maintenance', until('2026-01-01 01:59:00')),
      5_000,
    ],
    [
      'is made at the announced start',
      service('announced', {
        announced: { start: '2026-01-01 02:00:07', end: null, message: null },
      }),
      7_000,
    ],
  ])('%s', (_title, state, afterMs) => {
    expect(nextProbeAt(state, TIMES, NOW) - NOW).toBe(afterMs);
  });
});

describe('The clock of what waits for the service', () => {
  it('stands still from the start of an outage to its end, also if a failure begins it', () => {
    const down = afterProbe(service('active', { failures: 2 }), none, 'silent', 10_000).service;
    const later = afterProbe(down, probed('INACTIVE'), 'silent', 20_000).service;
    expect(runningMs(later, 4_000, 25_000)).toBe(6_000);
    const back = afterProbe(later, probed('ACTIVE'), 'silent', 30_000).service;
    expect(back).toMatchObject({ downFrom: 10_000, downUntil: 30_000 });
    expect(runningMs(back, 4_000, 35_000)).toBe(11_000);
    expect(runningMs(back, 15_000, 35_000)).toBe(5_000);
    expect(runningMs(back, 31_000, 35_000)).toBe(4_000);
  });
});
