/** The schema of config/default.yaml: every setting with its bounds. Pure. */
import { z } from 'zod';
import { FEE_MODES } from '../../operations/operations.ts';
import { REPORT_FORMATS } from '../../resources/reports/report.ts';
import { ROLES } from '../../resources/status.ts';
import { alertRules, refuseUnknownOperators } from './alert-rules.ts';
import { oidc } from './oidc.ts';

const ms = z
  .number()
  .int()
  .min(1)
  .max(86_400_000 * 400);
const count = z.number().int().min(1).max(1_000_000);
const perS = z.number().positive().max(10_000);
const share = z.number().min(0).max(1);
const bytes = z.number().int().min(1_024).max(1_073_741_824);
const days = z.number().int().min(1).max(36_500);
const addr = z.string().length(42).nullable();

const feeMode = z.enum(FEE_MODES);
/** The first rule without an instant, the others each later than the one before. */
const feeRules = z
  .tuple(
    [z.strictObject({ mode: feeMode })],
    z.strictObject({ from: z.iso.datetime({ offset: true }), mode: feeMode }),
  )
  .refine(([, ...changes]) => {
    const times = changes.map(({ from }) => Date.parse(from));
    return times.every((time, i) => i === 0 || time > (times[i - 1] ?? time));
  }, 'each rule must have a later from than the one before it');

const sections = z.strictObject({
  http: z.strictObject({
    host: z.string().min(1),
    port: z.number().int().min(0).max(65_535),
    body_bytes_max: bytes,
    feed_wait_max_ms: ms,
  }),
  daemon: z.strictObject({
    roles: z.array(z.enum(ROLES)).min(1),
    worker_interval_ms: ms,
    worker_pass_timeout_ms: ms,
    metrics_interval_ms: ms.min(100),
    heartbeat_timeout_ms: ms.min(500),
    unready_ms: z.number().int().min(0).max(600_000),
    drain_ms: ms,
  }),
  database: z.strictObject({
    embedded_port: z.number().int().min(0).max(65_535),
    connections: z.strictObject({
      gateway: count.min(2).max(500),
      workers: count.min(2).max(500),
      people: count.max(500),
      delivery: count.min(2).max(500),
    }),
    // Postgres stores it in 32 bits.
    statement_timeout_ms: ms.max(2_147_483_647),
    people_statement_timeout_ms: ms.max(2_147_483_647),
    start_wait_ms: z.number().int().min(0),
    retention_days: z.strictObject({
      events: days,
      observations: days,
      deliveries: days,
      attempts: days,
      audit: days.min(366),
    }),
  }),
  upstream: z.strictObject({
    budget_per_s: z.union([perS, z.literal('auto')]),
    initial_rate_per_s: perS,
    steady_share: share,
    poll_concurrency_max: count,
    poll_queue_max: count,
    poll_queue_timeout_ms: ms,
    app_concurrency_max: count,
    connect_timeout_ms: ms,
    read_timeout_ms: ms,
    write_timeout_ms: ms,
    body_bytes_max: bytes,
  }),
  gateway: z.strictObject({
    concurrency_max: count,
    unauthenticated_per_s: perS,
    first_poll_wait_ms: z.number().int().min(0).max(60_000),
    queue_ttl_ms: ms.max(7 * 86_400_000),
  }),
  operations: z.strictObject({
    conflict_wait_ms: z.number().int().min(0).max(60_000),
    refuse_conflicts: z.boolean(),
    wait_queue_max: count,
    request_queue_max: count,
  }),
  decisions: z.strictObject({
    second_approver_above: z.union([z.int().min(0), z.string().regex(/^\d{1,100}$/)]).nullable(),
  }),
  observer: z.strictObject({
    steady_interval_ms: ms,
    min_gap_ms: ms,
    settled_interval_ms: ms,
    pending_interval_min_ms: ms,
    pending_interval_max_ms: ms,
    poll_timeout_ms: ms,
    probe_interval_ms: ms,
    probe_interval_down_ms: ms,
  }),
  reconciler: z.strictObject({
    read_lag_ms: z.number().int().min(0).max(3_600_000),
    quiescence_ms: ms,
    undecided_after_ms: ms,
    bracket_max_ms: ms,
    one_sided: z.enum(['resolve', 'people']),
  }),
  alerts: z.strictObject({
    stuck_factor: z.number().min(1).max(1_000),
    stuck_min_ms: ms,
    rules: alertRules,
  }),
  ledger: z.strictObject({
    fee_mode: z.union([feeMode, feeRules]),
    operators: z.record(z.string().regex(/^\d+$/), z.string().length(42)),
    fees_addr: addr,
    collection_addr: addr,
    verify_interval_ms: z
      .number()
      .int()
      .min(0)
      .max(31 * 86_400_000),
  }),
  webhooks: z.strictObject({
    allow_cidrs: z.array(z.union([z.cidrv4(), z.cidrv6()])),
    allow_http: z.boolean(),
    attempt_timeout_ms: ms,
    concurrency_max: count,
    in_flight_per_endpoint_max: count,
  }),
  reports: z.strictObject({
    organisation: z
      .string()
      .max(200)
      .regex(/^\S(\P{C}*\S)?$/u, 'not a name on one line')
      .nullable(),
    reconciliation: z.strictObject({
      period: z.union([z.literal('day'), z.number().int().min(1).max(1_440)]),
      time_zone: z.string().refine(isTimeZone, 'not a time zone'),
      cron: z.string().min(9),
    }),
    stale_after_ms: ms,
    console_url: z.url({ protocol: /^https?$/ }).nullable(),
    delivery: z.strictObject({
      folder: z.string().min(1).nullable(),
      bucket: z.strictObject({
        name: z
          .string()
          .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'not a bucket')
          .nullable(),
        endpoint: z.url({ protocol: /^https?$/ }).nullable(),
        region: z.string().regex(/^[a-z0-9-]{1,40}$/, 'not a region'),
        prefix: z.string().regex(/^(\w[\w.-]*(\/\w[\w.-]*)*)?$/, 'not a prefix such as a/b'),
        path_style: z.boolean(),
      }),
      formats: z.array(z.enum(REPORT_FORMATS)).min(1),
    }),
  }),
  console: z.strictObject({ oidc: oidc.nullable() }),
  sandbox: z.strictObject({
    seed: z.number().int().min(0).max(4_294_967_295),
    background_traffic: z.boolean(),
    settle_ms: ms,
  }),
  log: z.strictObject({
    level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal']),
  }),
});

export const settingsSchema = sections.superRefine(refuseUnknownOperators);

export type Settings = z.output<typeof settingsSchema>;

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone.length > 0;
  } catch {
    return false;
  }
}
