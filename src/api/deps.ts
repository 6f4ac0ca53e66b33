/**
 * What the API is made of: the doors of the stages and what comes in from outside. Nothing of the
 * API holds state of its own, so any number of daemons answer alike.
 */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Db } from '../db/connect.ts';
import type { readMigrations } from '../db/migrate.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { Metrics } from '../kernel/metrics.ts';
import type { Caller, Keys } from '../keys/keys.ts';
import type { Observer } from '../observer/observer.ts';
import type { Decisions, Operations, ReportedOperations } from '../operations/operations.ts';
import type { Reports } from '../reports/reports.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';

export interface ApiDeps {
  db: Db;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  keys: Keys;
  operations: Pick<Operations, 'cancel' | 'freeze' | 'unfreeze' | 'currentFreeze'>;
  decisions: Decisions;
  elsewhere: ReportedOperations;
  observer: Pick<Observer, 'watch' | 'unwatch' | 'observationAgeMaxMs'>;
  upstream: Pick<Upstream, 'budget' | 'blockedUntil'>;
  webhooks: Webhooks;
  reports: Pick<Reports, 'makeReconciliation' | 'listReports' | 'getReport'>;
  /** The migrations of this program, for the question whether the database has them all. */
  migrations: Awaited<ReturnType<typeof readMigrations>>;
  /** Makes workers look for work now instead of at their next turn. */
  wake: (...workers: string[]) => void;
  /** Resolves when the feed has something new, after `ms`, or when the signal aborts. */
  nextEvent: (signal: AbortSignal, ms: number) => Promise<void>;
  /** Aborts when the daemon stops: nobody is kept waiting then. */
  stopping: AbortSignal;
  /** The longest that a pull of events may wait, in milliseconds. */
  feedWaitMaxMs: number;
  /** The largest body that is read, in bytes. */
  bodyBytesMax: number;
}

/** What a request carries on its way through the API. */
export interface ApiEnv {
  Variables: { caller: Caller };
}

export type Api = OpenAPIHono<ApiEnv>;
