/**
 * The database's time as a Clock, so that instants of several daemons can be compared. Between two
 * readings it runs by the machine's monotonic clock. A step of the database's clock is logged, and
 * corrected by `slew.ts` for all daemons through the table `clock`.
 */
import { type Clock, type Instant, isoText, monotonicMs, uptimeMs } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import type { Db } from '../connect.ts';
import {
  type Correction,
  correctionAt,
  correctStep,
  type Reading,
  TOLERANCE_MS,
  timeAt,
} from './slew.ts';

export interface DatabaseClock extends Clock {
  /** What is added to the time of the database since its clock stepped; zero usually. */
  correctionMs(): number;
  /**
   * Reads the database's clock again, and corrects a step of it.
   * @throws DatabaseError; the previous reading stays in use
   */
  follow(): Promise<void>;
}

/** Reads the database's clock. */
export type ReadDatabaseTime = (db: Db) => Promise<Instant>;

/** The machine's two counts of milliseconds; see `MachineClocks`. */
export interface Counts {
  monotonicMs(): number;
  uptimeMs(): number;
}

/** @throws DatabaseError when the database does not answer */
export async function databaseClock(
  db: Db,
  log: Log,
  readTime: ReadDatabaseTime = readClockTimestamp,
  counts: Counts = { monotonicMs, uptimeMs },
): Promise<DatabaseClock> {
  let reading = await readAndCorrect(db, log, readTime, counts);
  let last: Instant = 0;
  const databaseAt = () => reading.databaseAt + counts.monotonicMs() - reading.monotonicMs;
  const now = () => {
    // Errors of a reading must not take time back.
    last = Math.max(last, Math.floor(timeAt(reading.correction, databaseAt())));
    return last;
  };
  return {
    now,
    correctionMs: () => Math.round(correctionAt(reading.correction, databaseAt())),
    async follow() {
      const fresh = await readAndCorrect(db, log, readTime, counts, reading);
      const jumpMs = timeAt(fresh.correction, fresh.databaseAt) - now();
      reading = fresh;
      if (jumpMs > TOLERANCE_MS)
        log.warn({ jumpMs: Math.round(jumpMs) }, 'time jumped to that of the other daemons');
      await reportHighest(db, now());
    },
  };
}

async function readAndCorrect(
  db: Db,
  log: Log,
  readTime: ReadDatabaseTime,
  counts: Counts,
  previous?: Reading,
): Promise<Reading> {
  const reading = await read(db, readTime, counts);
  const corrected = correctStep(reading, previous);
  if (!corrected) return reading;
  // Another daemon was faster: its correction applies.
  if (!(await replaceCorrection(db, corrected)))
    return readAndCorrect(db, log, readTime, counts, previous);
  const { correctionMs, endsAt } = corrected;
  const stepMs = Math.round(correctionAt(reading.correction, reading.databaseAt)) - correctionMs;
  log.error(
    { stepMs, correctionMs, endsAt: isoText(endsAt) },
    "the database's clock stepped; check the clock of its server, the correction decays slowly",
  );
  return { ...reading, correction: corrected };
}

const READINGS_MAX = 3;
/** Half a round trip; a reading with a smaller error needs no other. */
const EXACT_MS = 1;

/** Of three readings, the one with the shortest round trip has the smallest error. */
async function read(
  db: Db,
  readTime: ReadDatabaseTime,
  { monotonicMs: count, uptimeMs: countAll }: Counts,
): Promise<Reading> {
  const readings: Omit<Reading, 'correction'>[] = [];
  while (readings.length < READINGS_MAX && !readings.some(({ errorMs }) => errorMs <= EXACT_MS)) {
    const before = count();
    const databaseAt = await readTime(db);
    const errorMs = (count() - before) / 2;
    readings.push({
      databaseAt,
      errorMs,
      monotonicMs: before + errorMs,
      uptimeMs: countAll() - errorMs,
    });
  }
  const best = readings.reduce((a, b) => (b.errorMs < a.errorMs ? b : a));
  return { ...best, correction: await findCorrection(db) };
}

async function readClockTimestamp({ sql }: Db): Promise<Instant> {
  const [row] = await sql<{ ms: number }[]>`
    select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
  return must(row, 'time of the database').ms;
}

async function findCorrection({ sql }: Db): Promise<Correction> {
  const [row] = await sql<Correction[]>`
    select steps, correction_ms, set_at, ends_at, highest_at from tallyhook.clock`;
  return must(row, 'row of the table clock');
}

/** Returns false when another daemon has replaced the correction before. */
async function replaceCorrection({ sql }: Db, next: Correction): Promise<boolean> {
  const { steps, correctionMs, setAt, endsAt, highestAt } = next;
  const rows = await sql`
    update tallyhook.clock set steps = ${steps}, correction_ms = ${correctionMs},
      set_at = ${isoText(setAt)}, ends_at = ${isoText(endsAt)},
      highest_at = greatest(highest_at, ${isoText(highestAt)})
    where steps = ${steps - 1}
    returning steps`;
  return rows.length > 0;
}

async function reportHighest({ sql }: Db, now: Instant): Promise<void> {
  await sql`
    update tallyhook.clock set highest_at = ${isoText(now)} where highest_at < ${isoText(now)}`;
}
