/** Instants as text, and waits that end when they are told to. */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  after,
  isoText,
  monotonicMs,
  parseInstant,
  pause,
  withDeadline,
} from '../../src/kernel/clock.ts';

describe('Instants', () => {
  test('Are the same after text and back', () => {
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
  ])('%j names %s', (text, at) => {
    expect(parseInstant(text)).toBe(at);
  });
});

describe('Waiting', () => {
  test('A pause ends at once when its signal aborts, or had aborted before', async () => {
    const gone = new AbortController();
    const waiting = pause(60_000, gone.signal);
    gone.abort();
    await waiting;
    const before = pause(60_000, gone.signal);
    await before;
  });

  test('A wait longer than a timer can hold does not end at once', async () => {
    const gone = new AbortController();
    let ended = false;
    const waiting = pause(400 * 86_400_000, gone.signal).then(() => {
      ended = true;
    });
    let fired = false;
    const cancel = after(400 * 86_400_000, () => {
      fired = true;
    });
    // A timer that overflowed would come before this one, which is set later and longer.
    const one = pause(5);
    await one;
    expect([ended, fired]).toEqual([false, false]);
    cancel();
    gone.abort();
    await waiting;
  });

  test('What was cancelled is never called', async () => {
    const called: string[] = [];
    after(1, () => called.push('cancelled'))();
    const both = new Promise<void>((resolve) => {
      after(2, () => {
        called.push('kept');
        resolve();
      });
    });
    // The timer of `after` does not keep a process alive, but this one does.
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

  test('The count of milliseconds never falls', () => {
    const counts = Array.from({ length: 1_000 }, monotonicMs);
    expect(counts.toSorted((a, b) => a - b)).toEqual(counts);
  });
});
