import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  driftStep,
  explainedBy,
  hiddenBy,
  type LateChange,
  type OpenDrift,
  totalOf,
} from '../../../src/reconciler/wallets/drift-rule.ts';
import {
  type Comparison,
  compareBalance,
  type Range,
} from '../../../src/reconciler/wallets/rule.ts';
import { at, expectation, observed, possible } from '../builders.ts';

const observation = observed(0n, 10_000);
const range = (min: bigint, max = min) => ({ min, max });
const suspicion = (min: bigint, max = min, ms = 9_000) => ({ ...range(min, max), at: at(ms) });
const drift = (id: string, min: bigint, max = min): OpenDrift => ({ id, min, max });
const unexplained = (min: bigint, max = min): Comparison => ({
  result: 'unexplained',
  difference: range(min, max),
});
const explained = (min: bigint, max = min): Comparison => ({
  result: 'explained',
  unique: true,
  quiet: true,
  shown: [],
  difference: range(min, max),
});
const open = (min: bigint, max = min) => ({
  revised: [],
  returned: [],
  opened: { range: range(min, max), suspectedAt: at(9_000) },
});
const revised = (...changes: [OpenDrift, Range][]) => ({
  revised: changes.map(([one, to]) => ({ drift: one, range: to })),
  returned: [],
});

describe('A difference that no operation explains', () => {
  it.each([
    [
      'An explained balance leads to nothing',
      explained(0n),
      suspicion(5n),
      [],
      { revised: [], returned: [] },
    ],
    [
      'A first difference is suspected',
      unexplained(5n),
      undefined,
      [],
      { suspicion: suspicion(5n, 5n, 10_010) },
    ],
    [
      'Another amount is a new suspicion',
      unexplained(6n),
      suspicion(5n),
      [],
      { suspicion: suspicion(6n, 6n, 10_010) },
    ],
    [
      'The same amount in a later observation is a drift',
      unexplained(5n),
      suspicion(5n),
      [],
      open(5n),
    ],
    [
      'The same amount in an overlapping observation confirms nothing',
      unexplained(5n),
      suspicion(5n, 5n, 10_000),
      [],
      { suspicion: suspicion(5n, 5n, 10_000) },
    ],
    [
      'A further change beside an open drift of 7 is a separate drift',
      unexplained(12n),
      suspicion(5n),
      [drift('a', 7n)],
      open(5n),
    ],
    [
      'What takes back all drifts returns all of them',
      unexplained(0n),
      suspicion(5n),
      [drift('a', -7n), drift('b', 2n)],
      { revised: [], returned: [drift('a', -7n), drift('b', 2n)] },
    ],
    [
      'What takes back one drift returns that one',
      unexplained(2n),
      suspicion(5n),
      [drift('a', -5n), drift('b', 2n)],
      { revised: [], returned: [drift('a', -5n)] },
    ],
    [
      'One equal drift is preferred to two that sum to the change',
      unexplained(-4n),
      suspicion(5n),
      [drift('a', -3n), drift('b', -2n), drift('c', -5n), drift('d', 1n)],
      { revised: [], returned: [drift('c', -5n)] },
    ],
    [
      'A partial return is a separate drift',
      unexplained(-2n),
      suspicion(5n),
      [drift('a', -7n)],
      open(5n),
    ],
    [
      'Bounds that agree with the suspicion are a drift with the bounds of both',
      unexplained(-60n, -45n),
      suspicion(-50n, -40n),
      [],
      open(-50n, -45n),
    ],
    [
      'Bounds that meet in one amount are exact',
      unexplained(-60n, -50n),
      suspicion(-50n, -40n),
      [],
      open(-50n),
    ],
    [
      'An explained balance that says more of a drift with bounds revises it',
      explained(-48n, -46n),
      undefined,
      [drift('a', -50n, -45n)],
      revised([drift('a', -50n, -45n), range(-48n, -46n)]),
    ],
    [
      'An exact drift beside it is left out',
      explained(-41n, -39n),
      undefined,
      [drift('a', -50n, -45n), drift('b', 7n)],
      revised([drift('a', -50n, -45n), range(-48n, -46n)]),
    ],
    [
      'A drift with bounds that turns out to be nothing returns',
      explained(0n),
      undefined,
      [drift('a', -50n, 3n)],
      { revised: [], returned: [drift('a', -50n, 3n)] },
    ],
    [
      'A further change beside a drift with bounds is a separate drift with bounds',
      unexplained(-105n, -100n),
      suspicion(-60n, -45n),
      [drift('a', -52n, -48n)],
      open(-57n, -48n),
    ],
    [
      'What may take back a drift with bounds is a separate drift until the sum is exact',
      unexplained(-3n, 2n),
      suspicion(40n, 60n),
      [drift('a', -52n, -48n)],
      open(45n, 54n),
    ],
    [
      'Drifts with bounds return when their sum is exactly nothing',
      explained(7n),
      undefined,
      [drift('a', -52n, -48n), drift('b', 45n, 54n), drift('c', 7n)],
      { revised: [], returned: [drift('a', -52n, -48n), drift('b', 45n, 54n)] },
    ],
    [
      'All drifts return when nothing is left',
      explained(0n),
      undefined,
      [drift('a', -9n, 3n), drift('b', 7n)],
      { revised: [], returned: [drift('a', -9n, 3n), drift('b', 7n)] },
    ],
    [
      'A drift with bounds beside an exact one returns when two observations show only that one',
      unexplained(7n),
      suspicion(-50n, -45n),
      [drift('a', 45n, 50n), drift('b', 7n)],
      { revised: [], returned: [drift('a', 45n, 50n)] },
    ],
    [
      'Of two drifts with bounds each keeps what the other leaves over',
      explained(-100n, -99n),
      undefined,
      [drift('a', -51n, -50n), drift('b', -60n, -40n)],
      revised([drift('b', -60n, -40n), range(-50n, -48n)]),
    ],
    [
      'Two drifts with bounds of which only the sum is exact become one',
      explained(-100n),
      undefined,
      [drift('a', -52n, -48n), drift('b', -60n, -40n)],
      {
        revised: [],
        returned: [],
        opened: { range: range(-100n), suspectedAt: undefined },
        merged: [drift('a', -52n, -48n), drift('b', -60n, -40n)],
      },
    ],
    [
      'A further change whose sum with two drifts alone is exact becomes one with them',
      unexplained(-93n),
      suspicion(-60n, -40n),
      [drift('a', -52n, -48n), drift('b', 7n), drift('c', 3n, 9n)],
      {
        revised: [],
        returned: [],
        opened: { range: range(-100n), suspectedAt: at(9_000) },
        merged: [drift('a', -52n, -48n), drift('c', 3n, 9n)],
      },
    ],
    [
      'A drift with bounds takes what exact ones leave over of an exact sum',
      explained(-43n),
      undefined,
      [drift('a', -52n, -48n), drift('b', 7n)],
      revised([drift('a', -52n, -48n), range(-50n)]),
    ],
  ] as const)('%s', (_title, comparison, suspected, drifts, step) => {
    expect(driftStep(comparison, suspected, [...drifts], observation)).toEqual(step);
  });
});

/** One observation of a wallet: what was changed elsewhere before it, and operations around it. */
const polls = fc.array(
  fc.record({
    outside: fc.oneof(fc.constant(0n), fc.bigInt({ min: -40n, max: 40n })),
    around: fc.array(fc.tuple(fc.bigInt({ min: -9n, max: 9n }), fc.boolean()), { maxLength: 16 }),
  }),
  { maxLength: 12 },
);

describe('Over random observations of a wallet', () => {
  it('Open drifts contain the sum of all outside changes after two quiet observations', () => {
    fc.assert(
      fc.property(polls, (drawn) => {
        let outside = 0n;
        let drifts: OpenDrift[] = [];
        let suspected: (Range & { at: number }) | undefined;
        const calm = { outside: 0n, around: [] };
        for (const [i, poll] of [...drawn, calm, calm].entries()) {
          outside += poll.outside;
          const operations = poll.around.map(([effect]) => possible(effect, 'sending'));
          const shown = poll.around.reduce(
            (sum, [effect, shows]) => sum + (shows ? effect : 0n),
            0n,
          );
          const comparison = compareBalance(
            100n + outside + shown,
            expectation(100n, operations),
            totalOf(drifts),
          );
          const step = driftStep(comparison, suspected, drifts, observed(0n, 10_000 + i * 1_000));
          suspected = step.suspicion;
          if (step.opened) drifts = [...drifts, { id: `drf_${i}`, ...step.opened.range }];
          for (const { drift: old, range: to } of step.revised ?? [])
            drifts = drifts.map((one) => (one === old ? { ...one, ...to } : one));
          const ended = [...(step.returned ?? []), ...(step.merged ?? [])];
          drifts = drifts.filter(({ id }) => !ended.some((one) => one.id === id));
        }
        expect(totalOf(drifts)).toEqual({ min: outside, max: outside });
        if (outside === 0n) expect(drifts).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('Which drifts a change takes back, and which stay', () => {
  const many = Array.from({ length: 13 }, (_, i) => drift(`d${i}`, 1n + BigInt(i)));
  const returnedBy = (comparison: Comparison, suspected: bigint, drifts: OpenDrift[]) => {
    const step = driftStep(comparison, suspicion(suspected), drifts, observation);
    return { returned: step.returned?.map(({ id }) => id), opened: step.opened?.range };
  };

  it('Exact drifts alone are taken back, and the others keep their bounds', () => {
    const drifts = [drift('a', 5n), drift('b', -2n), drift('c', 20n, 30n)];
    const comparison = unexplained(20n, 30n);
    const step = driftStep(comparison, suspicion(-3n), drifts, observation);
    expect(step).toEqual({ revised: [], returned: [drift('a', 5n), drift('b', -2n)] });
  });

  it('A change with bounds takes back nothing', () => {
    const drifts = [drift('a', -5n), drift('b', 2n)];
    const step = driftStep(unexplained(0n, 2n), suspicion(3n, 5n), drifts, observation);
    expect(step).toMatchObject({ returned: [], opened: { range: range(3n, 5n) } });
  });

  it('The fewest drifts that sum to the change are taken back, among the newest twelve', () => {
    const total = totalOf(many).min;
    // The oldest, of 1, is not compared: 13 less 1 would take it.
    expect(returnedBy(unexplained(total - 1n), -1n, many)).toEqual({
      returned: [],
      opened: range(-1n),
    });
    expect(returnedBy(unexplained(total - 2n), -2n, many).returned).toEqual(['d1']);
    expect(returnedBy(unexplained(total - 14n), -14n, many).returned).toHaveLength(2);
  });

  it('Where nothing is open a change is a drift', () => {
    expect(returnedBy(unexplained(5n), 5n, [])).toEqual({ returned: [], opened: range(5n) });
  });

  it('Drifts with bounds of which an exact sum leaves nothing return, and the exact one stays', () => {
    const drifts = [drift('a', 7n), drift('b', -5n, 5n), drift('c', -3n, 3n)];
    expect(driftStep(explained(7n), undefined, drifts, observation)).toEqual({
      revised: [],
      returned: [drift('b', -5n, 5n), drift('c', -3n, 3n)],
    });
  });

  it('A drift that becomes exact beside two that do not is revised, and those become one', () => {
    const drifts = [drift('a', -9n, 3n), drift('b', 0n, 9n)];
    const step = driftStep(explained(2n), undefined, drifts, observation);
    expect(step).toEqual({
      revised: [],
      returned: [],
      merged: drifts,
      opened: { range: range(2n), suspectedAt: undefined },
    });
  });
});

it.each<[string, [bigint, bigint?][], bigint, string[]]>([
  ['all of them before the one that is enough', [[5n], [-5n], [2n]], -2n, ['d0', 'd1', 'd2']],
  [
    'all exact ones beside one with bounds',
    [[5n], [-5n], [2n], [20n, 30n]],
    -2n,
    ['d0', 'd1', 'd2'],
  ],
  ['the oldest of equal ones', [[5n], [1n], [5n]], -5n, ['d0']],
  ['the oldest of two pairs', [[2n], [3n], [1n], [4n], [9n]], -5n, ['d0', 'd1']],
  ['the oldest of two pairs in another order', [[1n], [2n], [3n], [4n], [9n]], -5n, ['d0', 'd3']],
  ['none whose amount has bounds', [[5n], [20n, 30n]], -25n, []],
])('A change takes back %s', (_title, amounts, change, returned) => {
  const drifts = amounts.map(([min, max], i) => drift(`d${i}`, min, max ?? min));
  const { min, max } = totalOf(drifts);
  const step = driftStep(
    unexplained(min + change, max + change),
    suspicion(change),
    drifts,
    observation,
  );
  expect(step.returned?.map(({ id }) => id)).toEqual(returned);
});

it('What takes back one drift narrows the others', () => {
  const drifts = [drift('a', -5n), drift('b', 20n, 30n)];
  expect(driftStep(unexplained(22n, 24n), suspicion(5n), drifts, observation)).toEqual({
    revised: [{ drift: drifts[1], range: range(22n, 24n) }],
    returned: [drifts[0]],
  });
});

it('A drift that is narrowed to nothing returns, and one that may be something is revised', () => {
  const [exact, nothing, something] = [drift('a', 7n), drift('b', -5n, 0n), drift('c', -5n, 4n)];
  const stepOf = (drifts: OpenDrift[]) =>
    driftStep(explained(7n, 9n), undefined, drifts, observation);
  expect(stepOf([exact, nothing])).toEqual({ revised: [], returned: [nothing] });
  expect(stepOf([exact, something])).toEqual(revised([something, range(0n, 2n)]));
  const below = drift('d', -4n, 5n);
  const step = driftStep(explained(5n, 7n), undefined, [exact, below], observation);
  expect(step).toEqual(revised([below, range(-2n, 0n)]));
});

describe('What changes that became known late explain (read lag 1,000)', () => {
  /** A drift in whose window, from 10,000 to 20,000, its change took effect. */
  const windowed = (id: string, min: bigint, max = min, from: number | null = 10_000) => ({
    ...drift(id, min, max),
    windowFrom: from === null ? null : at(from),
    windowTo: at((from ?? 10_000) + 10_000),
  });
  const late = (operationId: string, amount: bigint, from = 15_000, to = from): LateChange => ({
    operationId,
    amount,
    from: at(from),
    to: at(to),
  });
  type Drift = ReturnType<typeof windowed>;
  type Found = [id: string, by: string[], rest: Range | undefined][];

  it.each<[string, Drift[], LateChange[], Found, string[]]>([
    ['A change of its amount', [windowed('a', 5n)], [late('x', 5n)], [['a', ['x'], undefined]], []],
    ['A part of it', [windowed('a', 5n)], [late('x', 3n)], [['a', ['x'], range(2n)]], []],
    [
      'Two parts of it',
      [windowed('a', 5n)],
      [late('x', 3n), late('y', 2n)],
      [['a', ['x', 'y'], undefined]],
      [],
    ],
    [
      'Two parts of it, the earlier first',
      [windowed('a', 6n)],
      [late('x', 3n, 16_000), late('y', 2n, 15_000)],
      [['a', ['y', 'x'], range(1n)]],
      [],
    ],
    [
      'No part of what is explained already',
      [windowed('a', 5n)],
      [late('x', 5n), late('y', 2n)],
      [['a', ['x'], undefined]],
      ['y'],
    ],
    [
      'The oldest of two equal drifts',
      [windowed('a', 5n), windowed('b', 5n)],
      [late('x', 5n)],
      [['a', ['x'], undefined]],
      [],
    ],
    [
      'Each of two equal drifts by a change of its own',
      [windowed('a', 5n), windowed('b', 5n)],
      [late('x', 5n), late('y', 5n)],
      [
        ['a', ['x'], undefined],
        ['b', ['y'], undefined],
      ],
      [],
    ],
    [
      'The one of its amount before an older one of which it is a part',
      [windowed('a', 9n), windowed('b', 5n)],
      [late('x', 5n)],
      [['b', ['x'], undefined]],
      [],
    ],
    [
      'The drift in whose window it took effect, not an older one of its amount',
      [windowed('a', 5n, 5n, 30_000), windowed('b', 5n)],
      [late('x', 5n)],
      [['b', ['x'], undefined]],
      [],
    ],
    [
      'A drift with bounds',
      [windowed('a', 3n, 9n)],
      [late('x', 5n)],
      [['a', ['x'], undefined]],
      [],
    ],
    [
      'A part of a drift with bounds',
      [windowed('a', 7n, 9n)],
      [late('x', 5n)],
      [['a', ['x'], range(2n, 4n)]],
      [],
    ],
    [
      'A drift that may be nothing',
      [windowed('a', -3n, 9n)],
      [late('x', 5n)],
      [['a', ['x'], undefined]],
      [],
    ],
    ['Nothing when it took effect later', [windowed('a', 5n)], [late('x', 5n, 20_001)], [], ['x']],
    [
      'A drift at the end of its window',
      [windowed('a', 5n)],
      [late('x', 5n, 20_000)],
      [['a', ['x'], undefined]],
      [],
    ],
    [
      'A drift whose window began a read lag later',
      [windowed('a', 5n)],
      [late('x', 5n, 9_000)],
      [['a', ['x'], undefined]],
      [],
    ],
    [
      'Nothing when it took effect before that',
      [windowed('a', 5n)],
      [late('x', 5n, 8_999)],
      [],
      ['x'],
    ],
    [
      'A drift whose window has no beginning',
      [windowed('a', 5n, 5n, null)],
      [late('x', 5n, 1)],
      [['a', ['x'], undefined]],
      [],
    ],
    [
      'A drift in whose window it may have taken effect',
      [windowed('a', 5n)],
      [late('x', 5n, 0, 9_000)],
      [['a', ['x'], undefined]],
      [],
    ],
    [
      'No part of one when its time is not known',
      [windowed('a', 5n)],
      [late('x', 3n, 12_000, 13_000)],
      [],
      ['x'],
    ],
    ['Nothing without drifts', [], [late('x', 5n), late('y', 1n)], [], ['x', 'y']],
  ])('%s', (_title, drifts, changes, found, others) => {
    const result = explainedBy(drifts, changes, 1_000);
    expect(
      result.explained.map((one) => [
        one.drift.id,
        one.by.map(({ operationId }) => operationId),
        one.rest,
      ]),
    ).toEqual(found);
    expect(result.others.map(({ operationId }) => operationId)).toEqual(others);
    for (const { drift: one } of result.explained) expect(drifts).toContain(one);
  });
});

describe('What hid late changes from the polls since (read lag 1,000)', () => {
  /** Equal polls of 10 ms each; the first began and the last began at these times. */
  const series = (first: number, last = first) => ({
    unchangedSince: at(first),
    firstEndedAt: at(first + 10),
    startedAt: at(last),
    endedAt: at(last + 10),
  });
  const late = (operationId: string, amount: bigint, ms: number): LateChange => ({
    operationId,
    amount,
    from: at(ms),
    to: at(ms),
  });
  const quietAt = at(90_000);
  /** Of a drift whose amount only the poll at its end showed, and of two that share an instant. */
  const windows = [
    { windowFrom: at(100_000), windowTo: at(140_000) },
    { windowFrom: at(139_000), windowTo: at(170_000) },
    { windowFrom: at(50_000), windowTo: at(60_000) },
  ];
  type Found = [by: string, amount: bigint, window: [number, number]][];

  it.each<[string, ReturnType<typeof series>[], LateChange[], Found]>([
    [
      'Between two polls that differ it was before or after the change',
      [series(30_000, 40_000), series(10_000, 20_000)],
      [late('x', 5n, 25_000)],
      [['x', -5n, [20_000, 30_010]]],
    ],
    [
      'A poll within the read lag need not show the change',
      [series(25_999), series(30_000), series(10_000, 20_000)].toSorted(
        (a, b) => b.startedAt - a.startedAt,
      ),
      [late('x', 5n, 25_000)],
      [['x', -5n, [25_000, 30_010]]],
    ],
    [
      'Within a series only its last poll is known to be later',
      [series(10_000, 40_000)],
      [late('x', 5n, 25_000)],
      [['x', -5n, [25_000, 40_010]]],
    ],
    [
      'Before the first known poll',
      [series(30_000)],
      [late('x', 5n, 25_000)],
      [['x', -5n, [25_000, 30_010]]],
    ],
    ['After the last known poll', [], [late('x', 5n, 25_000)], [['x', -5n, [25_000, 90_000]]]],
    [
      'Changes between the same polls are hidden together',
      [series(30_000), series(20_000)],
      [late('y', 3n, 26_000), late('x', 5n, 25_000)],
      [['x', -8n, [20_000, 30_010]]],
    ],
    [
      'Changes between the same polls that cancel out are not hidden',
      [series(30_000), series(20_000)],
      [late('x', 5n, 25_000), late('y', -5n, 26_000)],
      [],
    ],
    [
      'Changes between other polls are hidden by something else',
      [series(30_000), series(20_000), series(10_000)],
      [late('x', 5n, 15_000), late('y', -5n, 25_000)],
      [
        ['x', -5n, [10_000, 20_010]],
        ['y', 5n, [20_000, 30_010]],
      ],
    ],
    [
      'In the window of a drift polls only bounded the balance, so they tell nothing apart',
      [series(60_000), series(56_000), series(54_000), series(52_000), series(50_000)],
      [late('x', 5n, 53_000), late('y', 3n, 55_000)],
      [['x', -8n, [50_000, 60_000]]],
    ],
    [
      'In the windows of two drifts the later one holds, if only its polls showed the change',
      [series(170_000), series(150_000), series(139_000)],
      [late('x', 5n, 139_500)],
      [['x', -5n, [139_000, 170_000]]],
    ],
  ])('%s', (_title, polls, changes, expected) => {
    const found = hiddenBy(changes, { polls, windows, readLagMs: 1_000, quietAt });
    expect(
      found.map(({ operationId, amount, windowFrom, windowTo }) => [
        operationId,
        amount,
        [windowFrom, windowTo],
      ]),
    ).toEqual(expected.map(([by, amount, window]) => [by, amount, window.map(at)]));
  });
});
