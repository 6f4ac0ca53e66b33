import { describe, expect, it } from 'vitest';
import {
  bracketMsOf,
  stepOf,
  type WalletObservation,
} from '../../../src/reconciler/unknown/bracket.ts';

/** A write of 7, sent at 10 s, applied by 46 s if at all; reads lag by 1 s. */
const ASKED = { effect: 7n, sentAt: 10_000, quiescentAt: 46_000, readLagMs: 1_000 };

/** A look of 10 ms that began so many seconds after zero. */
const observation = (atS: number, residual: bigint, unambiguous = true): WalletObservation => ({
  ...{
    observationId: `obs_${atS}`,
    startedAt: atS * 1_000,
    endedAt: atS * 1_000 + 10,
    residual,
    unambiguous,
  },
});

const SHOWN: { title: string; observations: WalletObservation[]; bracketMs: number | undefined }[] =
  [
    {
      title: 'it lies between the last look without it and the first with it',
      observations: [
        observation(1, 0n),
        observation(12, 0n),
        observation(14, 7n),
        observation(30, 7n),
      ],
      bracketMs: 3_010,
    },
    {
      title: 'a look from before the write bounds it as well',
      observations: [observation(8, 0n), observation(14, 7n)],
      bracketMs: 7_010,
    },
    {
      title: 'a look that may show other writes bounds nothing',
      observations: [
        observation(8, 0n),
        observation(12, 0n, false),
        observation(14, 7n, false),
        observation(16, 7n),
      ],
      bracketMs: 9_010,
    },
    {
      title: 'no look without it bounds nothing',
      observations: [observation(14, 7n)],
      bracketMs: undefined,
    },
    {
      title: 'a balance that was off bounds nothing',
      observations: [observation(8, 3n), observation(14, 7n)],
      bracketMs: undefined,
    },
    {
      title: 'what showed before it was sent is something else',
      observations: [observation(6, 0n), observation(8, 7n), observation(14, 7n)],
      bracketMs: Number.POSITIVE_INFINITY,
    },
    {
      title: 'what is gone again bounds nothing',
      observations: [observation(8, 0n), observation(14, 7n), observation(16, 0n)],
      bracketMs: undefined,
    },
  ];

const HIDDEN: typeof SHOWN = [
  {
    title: 'it is the longest gap while the write could still be applied',
    observations: [
      observation(1, 0n),
      observation(9, 0n),
      observation(12, 0n),
      observation(30, 0n),
      observation(50, 0n),
      observation(900, 0n),
    ],
    bracketMs: 21_010,
  },
  {
    title: 'a late first look after quiescence makes it long',
    observations: [observation(9, 0n), observation(40, 0n), observation(900, 0n)],
    bracketMs: 861_010,
  },
  {
    title: 'without a look from before the write nothing is bounded',
    observations: [observation(11, 0n), observation(50, 0n)],
    bracketMs: undefined,
  },
  {
    title: 'without a look from after quiescence nothing is bounded',
    observations: [observation(9, 0n), observation(45, 0n)],
    bracketMs: undefined,
  },
  {
    title: 'a balance that was off meanwhile bounds nothing',
    observations: [observation(9, 0n), observation(20, 7n), observation(50, 0n)],
    bracketMs: undefined,
  },
];

const STEPS: typeof SHOWN = [
  {
    title: 'it is the one gap in which it moved by the effect, whatever else came before',
    observations: [
      observation(1, 0n),
      observation(9, 0n),
      observation(12, 100n),
      observation(14, 107n),
      observation(30, 107n),
    ],
    bracketMs: 3_010,
  },
  {
    title: 'a change from before the write does not matter',
    observations: [observation(9, 100n), observation(14, 107n)],
    bracketMs: 6_010,
  },
  {
    title: 'a step from before the write is none',
    observations: [observation(1, 0n), observation(9, 7n)],
    bracketMs: undefined,
  },
  {
    title: 'without a look from before the write there is none',
    observations: [observation(12, 0n), observation(14, 7n)],
    bracketMs: undefined,
  },
  {
    title: 'two of them tell nothing',
    observations: [observation(9, 0n), observation(12, 7n), observation(14, 14n)],
    bracketMs: undefined,
  },
  {
    title: 'one that is taken back tells nothing',
    observations: [observation(9, 0n), observation(12, 7n), observation(14, 0n)],
    bracketMs: undefined,
  },
  {
    title: 'a newest look that may show other writes tells nothing',
    observations: [observation(9, 0n), observation(12, 7n), observation(14, 7n, false)],
    bracketMs: undefined,
  },
  {
    title: 'a step together with another change is none',
    observations: [observation(9, 0n), observation(12, 107n)],
    bracketMs: undefined,
  },
];

describe('When an outside change must have happened that looks like a lost write', () => {
  it.each(SHOWN)('Where it shows, $title', ({ observations, bracketMs }) => {
    expect(bracketMsOf('executed', observations, ASKED)).toBe(bracketMs);
  });

  it.each(HIDDEN)('Where it does not show, $title', ({ observations, bracketMs }) => {
    expect(bracketMsOf('not_executed', observations, ASKED)).toBe(bracketMs);
  });

  it.each(STEPS)('On a wallet that others changed, $title', ({ observations, bracketMs }) => {
    expect(stepOf(observations, ASKED)?.bracketMs).toBe(bracketMs);
  });
});
