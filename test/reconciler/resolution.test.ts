import { describe, expect, it } from 'vitest';
import { isOverdue, isQuiescent, quiescentAt } from '../../src/reconciler/resolution.ts';
import { at, SETTINGS, write } from './builders.ts';

describe('When looks prove that nothing was executed (quiescence 30,000, lag 1,000)', () => {
  const lost = write('unknown', { sent: 1_000, sendDeadlineAt: at(6_000) });
  const down = Number.POSITIVE_INFINITY;
  it.each([
    ['They count from the deadline', lost, 0, 37_000],
    ['Without a deadline they count from the record', { ...lost, sendDeadlineAt: null }, 0, 32_000],
    ['After maintenance they count from its end', lost, at(50_000), 81_000],
    ['Maintenance that ended before does not count', lost, at(5_000), 37_000],
    ['While the service is down they prove nothing', lost, down, down],
  ] as const)('%s', (_title, operation, availableSince, after) => {
    const deps = { settings: SETTINGS, availableSince };
    const quiescent = quiescentAt(operation, deps);
    expect(quiescent).toBe(after === down ? down : at(after));
    expect(isQuiescent(operation, Math.min(quiescent - 1, at(1e12)), deps)).toBe(false);
    expect(isQuiescent(operation, quiescent, deps)).toBe(true);
  });
});

describe('When people are asked (600,000 after it was quiet)', () => {
  const lost = write('unknown', { sent: 1_000, sendDeadlineAt: at(6_000) });
  const down = Number.POSITIVE_INFINITY;
  it.each([
    ['They are asked when evidence had its time', 0, 0, 637_000],
    ['Time in which the service was down does not count', at(50_000), 0, 681_000],
    ['Time in which nobody judged does not count', 0, at(500_000), 1_100_000],
    ['While the service is down nobody is asked', down, 0, down],
  ] as const)('%s', (_title, availableSince, processingSince, after) => {
    const deps = { settings: SETTINGS, availableSince, processingSince };
    const from = after === down ? at(1e12) : at(after);
    expect(isOverdue(lost, deps, from - 1)).toBe(false);
    expect(isOverdue(lost, deps, from)).toBe(after !== down);
  });
});
