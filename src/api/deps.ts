/** What the HTTP API works with: public modules of the stages, and settings of the daemon. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Refusals } from '../db/checks/refusals.ts';
import type { DatabaseClock } from '../db/clock/clock.ts';
import type { Db } from '../db/connect.ts';
import type { readMigrations } from '../db/migrate.ts';
import type { Imports } from '../imports/imports.ts';
import type { Clock } from '../kernel/clock.ts';
import type { TrustedProxies } from '../kernel/http/trusted-proxies.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import type { Metrics, MetricsSnapshot } from '../kernel/telemetry/metrics.ts';
import type { Wake } from '../kernel/workers.ts';
import type { Audit, Keys, Sessions } from '../keys/keys.ts';
import type { OperatorMappings } from '../ledger/ledger.ts';
import type { Observer } from '../observer/observer.ts';
import type { Decisions, Operations, ReportedOperations } from '../operations/operations.ts';
import type { Consumers } from '../outbox/outbox.ts';
import type { Drifts } from '../reconciler/reconciler.ts';
import type { Periods, Reports } from '../reports/reports.ts';
import type { setting } from '../resources/admin/setting.ts';
import type { Role } from '../resources/admin/status.ts';
import type { Shown } from '../resources/resource.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';

export interface ApiDeps {
  db: Db;
  clock: Pick<DatabaseClock, 'now' | 'correctionMs'>;
  log: Log;
  /** Absent: a port of its own serves `/metrics`. */
  metrics: Metrics | undefined;
  keys: Keys;
  sessions: Sessions;
  audit: Audit;
  operations: Pick<Operations, 'cancel' | 'freeze' | 'unfreeze' | 'currentFreeze'>;
  decisions: Decisions;
  drifts: Drifts;
  operatorMappings: OperatorMappings;
  reportedOperations: ReportedOperations;
  imports: Imports;
  observer: Pick<
    Observer,
    'watch' | 'watchMany' | 'unwatch' | 'unwatchMany' | 'pricing' | 'nextPollAt' | 'maximumAgeMs'
  >;
  upstream: Pick<Upstream, 'budget' | 'blockedUntil' | 'clearDeadlines'>;
  webhooks: Webhooks;
  consumers: Consumers;
  periods: Periods;
  reports: Pick<
    Reports,
    'makeReconciliation' | 'listReports' | 'getReport' | 'renderReport' | 'listLines' | 'filesOf'
  >;
  /** What this daemon runs. */
  roles: readonly Role[];
  /** Its process that sends webhooks, if it has one. */
  delivery: { isRunning(): boolean; report(): Promise<MetricsSnapshot | undefined> };
  /** The migrations of this program; `/readyz` compares them with those of the database. */
  migrations: Awaited<ReturnType<typeof readMigrations>>;
  wake: Wake;
  /** Resolves when the feed has a new event, after `ms`, or when the signal aborts. */
  nextEvent: (signal: AbortSignal, ms: number) => Promise<void>;
  /** False when the heartbeats of this daemon are not committed; then it sends nothing. */
  isAlive: () => boolean;
  /** What Postgres refuses to record of the writes of apps. */
  refusals: Pick<Refusals, 'within'>;
  /** Aborts when the daemon will stop; it is not ready from then on. */
  leaving: AbortSignal;
  /** Aborts when the daemon stops; ends long polls and streams. */
  stopping: AbortSignal;
  /** The age at which the newest observation of a wallet is stale, in milliseconds. */
  staleAfterMs: number;
  /** The longest wait of a long poll, in milliseconds. */
  feedWaitMaxMs: number;
  /** What `/api/settings` lists. */
  settings: readonly Shown<typeof setting>[];
  /** The largest request body, in bytes. */
  bodyBytesMax: number;
  /** Under which path browsers and programs reach this API; may be empty. */
  basePath: string;
  /** The public address of the console, if it is set; without a slash at its end. */
  consoleUrl?: string | undefined;
  trusted: TrustedProxies;
  /** Measures the rate of requests without a key; by default the clock of the process. */
  monotonic?: Clock;
}

export type Api = OpenAPIHono;
