import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  after,
  isoText,
  monotonicMs,
  parseInstant,
  pause,
  withDeadline,
} from '../../src/kernel/clock.ts';
import { type ManualMachine, manualMachine } from '../harness/manual-machine.ts';

it('An instant is the same after it is written and parsed', () => {
  const at = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
  fc.assert(fc.property(at, (instant) => parseInstant(isoText(instant)) === instant));
});

it.each<[string, number | undefined]>([
  ['2026-01-01T00:00:00Z', Date.UTC(2026, 0, 1)],
  ['2026-01-01t00:00:00z', Date.UTC(2026, 0, 1)],
  ['2026-01-01T02:00:00+02:00', Date.UTC(2026, 0, 1)],
  ['2026-01-01T00:00:00.123456789Z', Date.UTC(2026, 0, 1) + 123],
  ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
  ['2026-02-29T00:00:00Z', undefined],
  ['2026-02-30T00:00:00Z', undefined],
  ['2026-04-31T00:00:00Z', undefined],
  ['2026-13-01T00:00:00Z', undefined],
  ['2026-01-01T24:00:00Z', undefined],
  ['2026-01-01T00:60:00Z', undefined],
  ['2026-01-01T00:00:00', undefined],
  ['2026-01-01', undefined],
  ['2026-01-01 00:00:00Z', undefined],
  ['2026-01-01T00:00:00+25:00', undefined],
  ['1767225600000', undefined],
  ['yesterday', undefined],
  ['', undefined],
])('An instant is parsed from %j as %s', (text, at) => {
  expect(parseInstant(text)).toBe(at);
});

it('A pause ends at once when its signal aborts or is already aborted', async () => {
  const abort = new AbortController();
  const running = pause(60_000, abort.signal);
  abort.abort();
  await running;
  const late = pause(60_000, abort.signal);
  await late;
});

it('A wait that is longer than the longest timer does not end at once', async () => {
  const abort = new AbortController();
  let ended = false;
  const running = pause(400 * 86_400_000, abort.signal).then(() => {
    ended = true;
  });
  let fired = false;
  const cancel = after(400 * 86_400_000, () => {
    fired = true;
  });
  // A timer that overflows fires before this one, which is set later and is longer.
  const short = pause(5);
  await short;
  expect([ended, fired]).toEqual([false, false]);
  cancel();
  abort.abort();
  await running;
});

it('A cancelled timer is never called', async () => {
  const called: string[] = [];
  after(1, () => called.push('cancelled'))();
  const both = new Promise<void>((resolve) => {
    after(2, () => {
      called.push('kept');
      resolve();
    });
  });
  // A pause keeps the process alive; the timer of `after` does not.
  await Promise.race([both, pause(5_000)]);
  expect(called).toEqual(['kept']);
});

it('Work that ends before its deadline keeps its result or its error', async () => {
  const late = () => 'late';
  expect(await withDeadline(Promise.resolve('done'), 60_000, late)).toBe('done');
  const failing = withDeadline(Promise.reject(new Error('broken')), 60_000, late);
  await expect(failing).rejects.toThrow('broken');
});

it('Work past its deadline settles as the caller decides', async () => {
  const never = new Promise<never>(() => {});
  expect(await withDeadline(never, 1, () => 'late')).toBe('late');
  expect(await withDeadline(never, 60_000, () => 'late', AbortSignal.abort())).toBe('late');
  const failing = withDeadline(never, 1, () => {
    throw new Error('too late');
  });
  await expect(failing).rejects.toThrow('too late');
});

it('The monotonic clock never decreases', () => {
  const counts = Array.from({ length: 1_000 }, monotonicMs);
  expect(counts.toSorted((a, b) => a - b)).toEqual(counts);
});

it.each<[string, (machine: ManualMachine) => void, { ms: number; interruptions: number }]>([
  ['runs on', (one) => one.pass(3_600_000), { ms: 3_600_000, interruptions: 0 }],
  ['is suspended', (one) => one.suspend(3_600_000), { ms: 3_600_000, interruptions: 1 }],
  [
    'is suspended twice',
    (one) => {
      one.suspend(60_000);
      one.count.ms();
      one.suspend(30_000);
    },
    { ms: 90_000, interruptions: 2 },
  ],
  [
    'is suspended often for a moment',
    (one) => {
      for (let n = 0; n < 100; n++) {
        one.suspend(300);
        one.count.ms();
      }
    },
    { ms: 30_000, interruptions: 50 },
  ],
  ['gets its clock set forward', (one) => one.setClock(3_600_000), { ms: 0, interruptions: 1 }],
  ['gets its clock set back', (one) => one.setClock(-3_600_000), { ms: 0, interruptions: 1 }],
  ['is another one with a longer uptime', (one) => one.move(9e8), { ms: 0, interruptions: 0 }],
  [
    'is another one with another uptime and time',
    (one) => {
      one.move(9e8);
      one.setClock(2_000);
    },
    { ms: 2_000, interruptions: 1 },
  ],
])('A machine that %s counts what is true', (_, happens, { ms, interruptions }) => {
  const machine = manualMachine();
  const before = machine.count.ms();
  happens(machine);
  // The uptime has whole seconds.
  expect(Math.abs(machine.count.ms() - before - ms)).toBeLessThanOrEqual(1_000);
  expect(machine.count.interruptions()).toBe(interruptions);
});
