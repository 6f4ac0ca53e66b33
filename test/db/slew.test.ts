/** The rule that corrects steps of the database's clock, without a database. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Correction,
  correctionAt,
  correctStep,
  FASTER_MAX,
  type Reading,
  SLOWER_MAX,
  TOLERANCE_MS,
  timeAt,
} from '../../src/db/clock/slew.ts';

const START = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;
const BEAT = 5_000;
const NONE: Correction = { steps: 0, correctionMs: 0, setAt: 0, endsAt: 0, highestAt: START };

/** What a daemon reads when the database's clock shows `databaseAt`. */
const readingAt = (databaseAt: number, more: Partial<Reading> = {}): Reading => {
  const machine = { monotonicMs: 0, uptimeMs: 0, errorMs: 1 };
  return { correction: NONE, databaseAt, ...machine, ...more };
};
/** The reading one heartbeat later, when the machine's counts advanced by these milliseconds. */
const later = (databaseAt: number, counts: [number, number], more: Partial<Reading> = {}) =>
  readingAt(databaseAt, { monotonicMs: counts[0], uptimeMs: counts[1], ...more });

describe('A step', () => {
  const first = readingAt(START);
  const beat: [number, number] = [BEAT, BEAT];
  it.each<[string, Reading, Reading | undefined, number | undefined]>([
    ['of nothing is not corrected', later(START + BEAT, beat), first, undefined],
    [
      'back by less than the tolerance is not corrected',
      later(START + BEAT - 1_900, beat),
      first,
      undefined,
    ],
    ['back by an hour is corrected', later(START + BEAT - HOUR, beat), first, START + BEAT],
    ['forward by an hour is corrected', later(START + BEAT + HOUR, beat), first, START + BEAT],
    ['back by an hour is found by a new daemon', readingAt(START - HOUR), undefined, START],
    ['forward is downtime to a new daemon', readingAt(START + HOUR), undefined, undefined],
    [
      'forward is no step when the machine was suspended',
      later(START + HOUR, [BEAT, HOUR]),
      first,
      undefined,
    ],
    [
      'is not seen when only the uptime jumps',
      later(START + BEAT, [BEAT, 97 * 24 * HOUR]),
      first,
      undefined,
    ],
    [
      'forward is no step when other daemons have reached that time',
      later(START + HOUR, beat, { correction: { ...NONE, highestAt: START + HOUR - 3_000 } }),
      first,
      undefined,
    ],
    [
      'back is corrected to the time that other daemons have reached',
      later(START - HOUR, beat, { correction: { ...NONE, highestAt: START + 60_000 } }),
      first,
      START + 60_000,
    ],
    [
      'within the error of a slow reading is not corrected',
      later(START + BEAT + 4_000, beat, { errorMs: 2_500 }),
      first,
      undefined,
    ],
    [
      'that another daemon has corrected is not corrected again',
      later(START + BEAT - HOUR, beat, {
        correction: {
          steps: 1,
          correctionMs: HOUR,
          setAt: START + BEAT - HOUR,
          endsAt: START + 9 * HOUR,
          highestAt: START + BEAT,
        },
      }),
      first,
      undefined,
    ],
  ])('%s', (_what, reading, previous, continuesAt) => {
    const corrected = correctStep(reading, previous);
    expect(corrected && timeAt(corrected, reading.databaseAt)).toBe(continuesAt);
  });

  it('of an hour back is absorbed in ten hours, one of an hour forward in 100 hours', () => {
    const hours = (stepMs: number) => {
      const corrected = correctStep(later(START + BEAT + stepMs, beat), first) as Correction;
      return (corrected.endsAt - corrected.setAt) / HOUR;
    };
    expect(hours(-HOUR)).toBeCloseTo(10, 2);
    expect(hours(HOUR)).toBeCloseTo(100, 2);
  });

  it('that is taken back by the database leaves almost no correction', () => {
    const away = later(START + BEAT - HOUR, beat);
    const correction = correctStep(away, first) as Correction;
    const back = later(START + 2 * BEAT, [2 * BEAT, 2 * BEAT], { correction });
    const again = correctStep(back, { ...away, correction });
    expect(Math.abs(again?.correctionMs ?? Number.NaN)).toBeLessThanOrEqual(BEAT * SLOWER_MAX);
  });
});

/** One step of a history: real time passes, then something happens. */
interface Happening {
  passMs: number;
  /** The database's clock steps. */
  stepMs: number;
  /** The daemon that reads next. */
  daemon: number;
  /** It is started again. */
  restarts: boolean;
}

const happening = fc.record<Happening>({
  passMs: fc.integer({ min: 1, max: BEAT }),
  stepMs: fc.oneof(
    { weight: 8, arbitrary: fc.constant(0) },
    fc.integer({ min: -2 * HOUR, max: 2 * HOUR }),
  ),
  daemon: fc.nat(2),
  restarts: fc.oneof({ weight: 8, arbitrary: fc.constant(false) }, fc.boolean()),
});

/** Daemons with one database, in simulated real time. */
class Daemons {
  real = START;
  offset = 0;
  row: Correction = { ...NONE, highestAt: 0 };
  readings: (Reading | undefined)[] = [];

  /** The time of a daemon by its last reading. */
  timeOf(reading: Reading): number {
    return timeAt(reading.correction, reading.databaseAt + this.real - reading.monotonicMs);
  }

  /** A heartbeat of a daemon, or its start. */
  read(daemon: number): void {
    const machine = { monotonicMs: this.real, uptimeMs: this.real };
    const databaseAt = this.real + this.offset;
    const reading = readingAt(databaseAt, { correction: this.row, ...machine, errorMs: 0 });
    const previous = this.readings[daemon];
    this.row = correctStep(reading, previous) ?? this.row;
    if (previous) {
      const highestAt = Math.max(this.row.highestAt, Math.floor(timeAt(this.row, databaseAt)));
      this.row = { ...this.row, highestAt };
    }
    this.readings[daemon] = { ...reading, correction: this.row };
  }

  times(): number[] {
    return this.readings.flatMap((reading) => (reading ? [this.timeOf(reading)] : []));
  }
}

describe('The time of daemons that follow a stepping clock', () => {
  const histories = fc.array(happening, { minLength: 1, maxLength: 60 });

  it('passes at nearly the real pace, without jumps beyond the tolerance', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const daemons = new Daemons();
        for (const daemon of [0, 1, 2]) daemons.read(daemon);
        for (const daemon of [0, 1, 2]) daemons.read(daemon);
        for (const { passMs, stepMs } of history) {
          const before = daemons.times();
          daemons.real += passMs;
          daemons.times().forEach((time, i) => {
            const passed = time - (before[i] ?? 0);
            expect(passed).toBeGreaterThanOrEqual(passMs * (1 - SLOWER_MAX) - 1);
            expect(passed).toBeLessThanOrEqual(passMs * (1 + FASTER_MAX) + 1);
          });
          daemons.offset += stepMs;
          for (const daemon of [0, 1, 2]) {
            const kept = daemons.times()[daemon] ?? 0;
            daemons.read(daemon);
            const jumped = Math.abs((daemons.times()[daemon] ?? 0) - kept);
            expect(jumped).toBeLessThanOrEqual(TOLERANCE_MS + 1);
          }
          const agreed = daemons.times();
          expect(Math.max(...agreed) - Math.min(...agreed)).toBeLessThanOrEqual(1);
        }
      }),
    );
  });

  it('never falls behind what a daemon has reported, whoever reads when and restarts', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const daemons = new Daemons();
        daemons.read(0);
        for (const { passMs, stepMs, daemon, restarts } of history) {
          daemons.real += passMs;
          daemons.offset += stepMs;
          if (restarts) daemons.readings[daemon] = undefined;
          const reported = daemons.row.highestAt;
          daemons.read(daemon);
          const time = daemons.timeOf(daemons.readings[daemon] as Reading);
          expect(time).toBeGreaterThanOrEqual(reported - TOLERANCE_MS - 1);
        }
      }),
    );
  });

  it('is that of the database again in the end', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const daemons = new Daemons();
        for (const { passMs, stepMs, daemon } of history) {
          daemons.real += passMs;
          daemons.offset += stepMs;
          daemons.read(daemon);
        }
        expect(correctionAt(daemons.row, daemons.row.endsAt)).toBe(0);
        const mostMs = Math.abs(daemons.row.correctionMs) / FASTER_MAX;
        expect(daemons.row.endsAt - daemons.row.setAt).toBeLessThanOrEqual(Math.ceil(mostMs));
      }),
    );
  });
});
