/**
 * The first day of a month under load: the partitions of a further month are made and expired ones
 * dropped, as the daemons do it, while a report reads and the database is dumped.
 */
import type { Db } from '../../../src/db/connect.ts';
import { dropPartitions, makePartitions } from '../../../src/db/partitions.ts';
import { isAway } from '../../../src/db/sqlstate.ts';
import { type Instant, isoText, monotonicMs, pause } from '../../../src/kernel/clock.ts';

export interface Month {
  made: number;
  dropped: number;
  /** How often a lock was not free, and how long it took until all was done. */
  locked: number;
  tookMs: number;
}

const DAY_MS = 86_400_000;
const EXPIRED_MS = 730 * DAY_MS;
const KEEP = { events: 400, observations: 90, deliveries: 90, attempts: 90 };
const AGAIN_MS = 500;
const REPORT_MS = 3_000;

/**
 * Runs until all is done. @param db has two connections @param over ends it before; the counts then
 * show what is missing
 */
export async function beginMonth(db: Db, now: Instant, over: () => boolean): Promise<Month> {
  const next = new Date(`${isoText(now).slice(0, 7)}-01T00:00:00Z`);
  next.setUTCMonth(next.getUTCMonth() + 1);
  while (!(await makePartitions(db, now - EXPIRED_MS))) await pause(AGAIN_MS);
  const before = await listPartitions(db);
  const report = db.begin(async ({ sql }) => {
    await sql`select from tallyhook.events limit 1`;
    await pause(REPORT_MS);
  });
  const started = monotonicMs();
  for (let locked = 0; ; locked++) {
    const free =
      (await unlessAway(makePartitions(db, next.getTime()))) &&
      (await unlessAway(dropPartitions(db, now, KEEP)));
    if (free || over()) {
      await report;
      const after = await listPartitions(db);
      const made = after.difference(before).size;
      const dropped = before.difference(after).size;
      return { made, dropped, locked, tookMs: monotonicMs() - started };
    }
    await pause(AGAIN_MS);
  }
}

export function monthText({ made, dropped, locked, tookMs }: Month): string {
  const seconds = (tookMs / 1_000).toFixed(1);
  return `${made} made, ${dropped} dropped in ${seconds} s, ${locked} times a lock was not free`;
}

/** Each table got a partition and lost the expired ones. */
export function isMonthDone({ made, dropped }: Month): boolean {
  return made === Object.keys(KEEP).length + 1 && dropped === 3 * made;
}

async function listPartitions(db: Db): Promise<Set<string>> {
  const rows = await db.sql<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where c.relnamespace = 'tallyhook'::regnamespace and c.relkind = 'r'`;
  return new Set(rows.map(({ name }) => name));
}

/** False while a lock is not free, and while the database is away. */
async function unlessAway(work: Promise<boolean>): Promise<boolean> {
  return work.catch((error) => {
    if (isAway(error)) return false;
    throw error;
  });
}
