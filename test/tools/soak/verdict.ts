/** What a run must show: each write against what the service did, its event, its latency. */

import type { Db } from '../../../src/db/connect.ts';
import { quantileOf } from '../bench/frame.ts';
import { isMonthDone, type Month } from './month.ts';
import type { Write } from './traffic.ts';

/** What the service did. */
export interface Done {
  /** Payments, by the name of the write: how often. */
  applied: ReadonlyMap<string, number>;
  tokens: ReadonlySet<bigint>;
}

interface Row {
  name: string;
  state: string;
  outcome: string;
}

export interface Outcomes {
  states: Record<string, number>;
  /** Sentences; each is a fault. */
  wrong: string[];
  /** Applied at the service, and not recorded: only after a failover that lost commits. */
  unrecorded: string[];
  undecided: number;
}

/** Compares every write with the service. */
export async function outcomesOf(db: Db, writes: readonly Write[], done: Done): Promise<Outcomes> {
  const rows = await db.sql<Row[]>`
    select idempotency_key as name, state, outcome from tallyhook.operations
    where idempotency_key like 'app-%' order by id`;
  // A repeat of a write that was certainly not applied is another operation under its key.
  const kept = Map.groupBy(rows, (row) => row.name);
  const found: Outcomes = { states: {}, wrong: [], unrecorded: [], undecided: 0 };
  for (const write of writes) {
    const { name, status } = write;
    const times = timesOf(write, done);
    const operations = kept.get(name) ?? [];
    const has = (fits: (row: Row) => boolean) => operations.some(fits);
    const state = operations.at(-1)?.state ?? 'not recorded';
    const executed = operations.filter(({ outcome }) => outcome === 'executed').length;
    found.states[state] = (found.states[state] ?? 0) + 1;
    if (times > 1) found.wrong.push(`${name} was applied ${times} times`);
    if (status === 200 && times === 0) found.wrong.push(`${name} was answered 200, not applied`);
    if (has((row) => row.state === 'undecided')) found.undecided += 1;
    else if (operations.length === 0) {
      if (times > 0) found.unrecorded.push(name);
    } else if (has(({ outcome }) => outcome === 'open'))
      found.wrong.push(`${name} is still ${state}`);
    else if (executed !== times)
      found.wrong.push(`${name} is ${state}, and was applied ${times} times`);
  }
  return found;
}

function timesOf({ name, tokenId }: Write, { applied, tokens }: Done): number {
  if (tokenId !== null) return tokens.has(tokenId) ? 1 : 0;
  return applied.get(name) ?? 0;
}

/** Ids of operations' events that the receiver did not get. */
export async function undelivered(db: Db, received: ReadonlySet<string>): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`
    select 'evt_' || id as id from tallyhook.events where type like 'operation.%'`;
  return rows.map(({ id }) => id).filter((id) => !received.has(id));
}

/** Whether something may still change by itself. */
export async function isOpen(db: Db): Promise<boolean> {
  const rows = await db.sql`
    select from tallyhook.operations where settled_at is null
      and state in ('queued', 'sending', 'unknown', 'accepted', 'executed') limit 1`;
  return rows.length > 0;
}

/** p50, p95 and the longest, in milliseconds, of the writes that were answered 200. */
export function latencyOf(writes: readonly Write[]): [p50: number, p95: number, max: number] {
  const took = writes.flatMap(({ status, tookMs, kind }) =>
    status === 200 && kind !== 'queued' && tookMs !== undefined ? [tookMs] : [],
  );
  const sorted = took.toSorted((a, b) => a - b);
  return [quantileOf(sorted, 0.5), quantileOf(sorted, 0.95), sorted.at(-1) ?? Number.NaN];
}

/** What a run must not show, in words; empty for a good one. */
export function faultsOf(run: {
  /** Undefined if something was still open at the end. */
  ended: true | undefined;
  outcomes: Outcomes;
  /** Ids of events. */
  missing: readonly string[];
  isVerified: boolean;
  month: Month;
  /** The p95 of writes to that of the quiet part. */
  ratio: number;
  /** A failover loses commits that did not wait for the standby. */
  mayLose: boolean;
}): string[] {
  const { outcomes, month, ratio } = run;
  const faults: Record<string, boolean> = {
    'something is still open': !run.ended,
    'writes were lost': outcomes.unrecorded.length > 0 && !run.mayLose,
    'writes were doubled, or have a wrong outcome': outcomes.wrong.length > 0,
    'events were lost': run.missing.length > 0,
    'the ledger does not verify': !run.isVerified,
    'partitions were not made or not dropped': !isMonthDone(month),
    'the p95 of writes is more than 3 x that of the quiet part': !(ratio <= 3),
  };
  return Object.entries(faults).flatMap(([fault, is]) => (is ? [fault] : []));
}
