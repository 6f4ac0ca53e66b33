import { describe, expect, it } from 'vitest';
import { type Sighting, stepOf, windowMsOf } from '../../src/reconciler/unknown/bracket.ts';

/** A write of 7, sent at 10 s, applied by 46 s if at all; reads lag by 1 s. */
const ASKED = { effect: 7n, sentAt: 10_000, quietAt: 46_000, readLagMs: 1_000 };

/** A look of 10 ms that began so many seconds after zero. */
const look = (atS: number, residual: bigint, plain = true): Sighting => ({
  ...{ lookId: `look_${atS}`, startedAt: atS * 1_000, endedAt: atS * 1_000 + 10, residual, plain },
});

const SHOWN: { title: string; looks: Sighting[]; windowMs: number | undefined }[] = [
  {
    title: 'it lies between the last look without it and the first with it',
    looks: [look(1, 0n), look(12, 0n), look(14, 7n), look(30, 7n)],
    windowMs: 3_010,
  },
  {
    title: 'a look from before the write bounds it as well',
    looks: [look(8, 0n), look(14, 7n)],
    windowMs: 7_010,
  },
  {
    title: 'a look that may show other writes bounds nothing',
    looks: [look(8, 0n), look(12, 0n, false), look(14, 7n, false), look(16, 7n)],
    windowMs: 9_010,
  },
  { title: 'no look without it bounds nothing', looks: [look(14, 7n)], windowMs: undefined },
  {
    title: 'a balance that was off bounds nothing',
    looks: [look(8, 3n), look(14, 7n)],
    windowMs: undefined,
  },
  {
    title: 'what showed before it was sent is something else',
    looks: [look(6, 0n), look(8, 7n), look(14, 7n)],
    windowMs: Number.POSITIVE_INFINITY,
  },
  {
    title: 'what is gone again bounds nothing',
    looks: [look(8, 0n), look(14, 7n), look(16, 0n)],
    windowMs: undefined,
  },
];

const HIDDEN: typeof SHOWN = [
  {
    title: 'it is the longest gap while the write could still be applied',
    looks: [look(1, 0n), look(9, 0n), look(12, 0n), look(30, 0n), look(50, 0n), look(900, 0n)],
    windowMs: 21_010,
  },
  {
    title: 'a late first look after quiescence makes it long',
    looks: [look(9, 0n), look(40, 0n), look(900, 0n)],
    windowMs: 861_010,
  },
  {
    title: 'without a look from before the write nothing is bounded',
    looks: [look(11, 0n), look(50, 0n)],
    windowMs: undefined,
  },
  {
    title: 'without a look from after quiescence nothing is bounded',
    looks: [look(9, 0n), look(45, 0n)],
    windowMs: undefined,
  },
  {
    title: 'a balance that was off meanwhile bounds nothing',
    looks: [look(9, 0n), look(20, 7n), look(50, 0n)],
    windowMs: undefined,
  },
];

const STEPS: typeof SHOWN = [
  {
    title: 'it is the one gap in which it moved by the effect, whatever else came before',
    looks: [look(1, 0n), look(9, 0n), look(12, 100n), look(14, 107n), look(30, 107n)],
    windowMs: 3_010,
  },
  {
    title: 'a change from before the write does not matter',
    looks: [look(9, 100n), look(14, 107n)],
    windowMs: 6_010,
  },
  {
    title: 'a step from before the write is none',
    looks: [look(1, 0n), look(9, 7n)],
    windowMs: undefined,
  },
  {
    title: 'without a look from before the write there is none',
    looks: [look(12, 0n), look(14, 7n)],
    windowMs: undefined,
  },
  {
    title: 'two of them tell nothing',
    looks: [look(9, 0n), look(12, 7n), look(14, 14n)],
    windowMs: undefined,
  },
  {
    title: 'one that is taken back tells nothing',
    looks: [look(9, 0n), look(12, 7n), look(14, 0n)],
    windowMs: undefined,
  },
  {
    title: 'a newest look that may show other writes tells nothing',
    looks: [look(9, 0n), look(12, 7n), look(14, 7n, false)],
    windowMs: undefined,
  },
  {
    title: 'a step together with another change is none',
    looks: [look(9, 0n), look(12, 107n)],
    windowMs: undefined,
  },
];

describe('When an outside change must have happened that looks like a lost write', () => {
  it.each(SHOWN)('Where it shows, $title', ({ looks, windowMs }) => {
    expect(windowMsOf('executed', looks, ASKED)).toBe(windowMs);
  });

  it.each(HIDDEN)('Where it does not show, $title', ({ looks, windowMs }) => {
    expect(windowMsOf('not_executed', looks, ASKED)).toBe(windowMs);
  });

  it.each(STEPS)('On a wallet that others changed, $title', ({ looks, windowMs }) => {
    expect(stepOf(looks, ASKED)?.windowMs).toBe(windowMs);
  });
});
