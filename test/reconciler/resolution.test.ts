import { describe, expect, it } from 'vitest';
import { isOverdue, isQuiescent, quiescentAt } from '../../src/reconciler/resolution.ts';
import { at, SETTINGS, write } from './builders.ts';

describe('When observations can prove that a write was not executed (quiescence 30,000, lag 1,000)', () => {
  const unknown = write('unknown', { sent: 1_000, sendDeadlineAt: at(6_000) });
  const down = Number.POSITIVE_INFINITY;
  it.each([
    ['They can after the deadline', unknown, 0, 37_000],
    [
      'Without a deadline the time counts from the record',
      { ...unknown, sendDeadlineAt: null },
      0,
      32_000,
    ],
    ['After maintenance the time counts from its end', unknown, at(50_000), 81_000],
    ['Maintenance that ended before the deadline does not count', unknown, at(5_000), 37_000],
    ['While the service is down they cannot', unknown, down, down],
  ] as const)('%s', (_title, operation, availableSince, after) => {
    const deps = { settings: SETTINGS, availableSince };
    const quiescent = quiescentAt(operation, deps);
    expect(quiescent).toBe(after === down ? down : at(after));
    expect(isQuiescent(operation, Math.min(quiescent - 1, at(1e12)), deps)).toBe(false);
    expect(isQuiescent(operation, quiescent, deps)).toBe(true);
  });
});

describe('When a write becomes undecided (600,000 after quiescence)', () => {
  const unknown = write('unknown', { sent: 1_000, sendDeadlineAt: at(6_000) });
  const down = Number.POSITIVE_INFINITY;
  it.each([
    ['It becomes undecided 600,000 after quiescence', 0, 40_000, 637_000],
    ['Time in which the service was down does not count', at(50_000), 90_000, 681_000],
    ['Without an observation after quiescence it waits for a day', 0, 36_999, 86_437_000],
    ['A target that was never observed counts the same', 0, undefined, 86_437_000],
    ['While the service is down it does not', down, 40_000, down],
  ] as const)('%s', (_title, availableSince, observed, after) => {
    const deps = { settings: SETTINGS, availableSince };
    const observedAt = observed === undefined ? undefined : at(observed);
    const from = after === down ? at(1e12) : at(after);
    expect(isOverdue(unknown, deps, observedAt, from - 1)).toBe(false);
    expect(isOverdue(unknown, deps, observedAt, from)).toBe(after !== down);
  });
});
