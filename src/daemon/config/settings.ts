/**
 * Every setting, once: its bounds, its default, what it means, and the variable that overrides it.
 * The parser, config/default.yaml, docs/settings.md and /api/settings derive from it. Names end in
 * their unit. Pure.
 */
import { z } from 'zod';
import { DAY_MS } from '../../kernel/clock.ts';
import { parseProxy } from '../../kernel/http/forward-proxy.ts';
import { FEE_MODES } from '../../operations/operations.ts';
import { SCOPES, SECRET_WORDS } from '../../resources/admin/key.ts';
import { ROLES } from '../../resources/admin/status.ts';
import { isEventPattern } from '../../resources/delivery/events.ts';
import { REPORT_FORMATS } from '../../resources/reports/report.ts';
import { alertRules, refuseUnknownOperators } from './alert-rules.ts';

const ms = z
  .number()
  .int()
  .min(1)
  .max(400 * DAY_MS);
const count = z.number().int().min(1).max(1_000_000);
const perS = z.number().positive().max(10_000);
const share = z.number().min(0).max(1);
const port = z.number().int().min(0).max(65_535);
const bytes = z.number().int().min(1_024).max(1_073_741_824);
const days = z.number().int().min(1).max(36_500);
const addr = z.string().length(42).nullable();
const url = z.url({ protocol: /^https?$/ }).nullable();
// Postgres stores it in 32 bits.
const statementMs = ms.max(2_147_483_647);

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

/** Words instead of the address of a proxy. */
const PROXY_WORDS = ['environment', 'none'];
const PROXY_FORM = `http://user:password@proxy:3128 or https://…, or ${PROXY_WORDS.join(' or ')}`;
const isProxy = (text: string) => /^https?:/.test(text) && parseProxy(text) !== undefined;
const proxy = z
  .string()
  .refine((text) => PROXY_WORDS.includes(text) || isProxy(text), `must be ${PROXY_FORM}`);
const ranges = z.array(z.union([z.cidrv4(), z.cidrv6()]));
const basePath = z
  .string()
  .max(200)
  .regex(/^(\/[A-Za-z0-9][\w.~-]*)*$/, 'must be like /tallyhook')
  .refine((path) => !/^\/(api|v1|console|docs|sign-in|healthz|readyz|metrics)(\/|$)/.test(path), {
    message: 'must not begin like a path of the daemon itself',
  });

const shortText = z.string().min(1).max(200);
const PLAIN = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(\/|$)/;
const secureUrl = z.url().refine((value) => value.startsWith('https:') || PLAIN.test(value), {
  message: 'must begin with https://, or name this machine',
});

const oidc = z.strictObject({
  issuer: secureUrl,
  client_id: shortText,
  redirect_url: secureUrl.refine((value) => value.endsWith('/sign-in/callback'), {
    message: 'must be the address of the console followed by /sign-in/callback',
  }),
  requested: z
    .array(shortText)
    .refine((names) => names.includes('openid'), { message: 'must include openid' })
    .default(['openid', 'email']),
  owner_claim: shortText.default('email'),
  groups_claim: shortText.default('groups'),
  groups: z.record(shortText, z.array(z.enum(SCOPES)).min(1)),
  key_hours: z.number().positive().max(168).default(12),
});

/** An environment variable that overrides a setting. */
interface Variable {
  name: string;
  /** What it must be, for people. */
  expected: string;
  read: (text: string) => unknown;
}

/** What is known of a setting or a section beside its schema. */
export interface About {
  /** Lines that begin with a dash are shown as they are. */
  description?: string;
  /** As in YAML; a section has none. */
  default?: unknown;
  variable?: Variable;
  /** A URL, of which people are shown no login. */
  isUrl?: boolean;
}

const aboutOf = (schema: z.ZodType): About => schema.meta() ?? {};

function setting<S extends z.ZodType>(
  schema: S,
  fallback: z.input<S>,
  description: string,
  variable?: Variable,
): S {
  return schema.meta({ default: fallback, description, ...(variable ? { variable } : {}) });
}

function section<S extends z.ZodRawShape>(shape: S, description?: string) {
  return z.strictObject(shape).meta(description === undefined ? {} : { description });
}

/** Where requests leave through a forward proxy. */
function proxySetting(name: string, description: string) {
  const schema = setting(proxy, 'environment', description, {
    name,
    read: String,
    expected: PROXY_FORM,
  });
  return schema.meta({ ...schema.meta(), isUrl: true });
}

const listOf = (text: string) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean);

const http = section({
  host: setting(
    z.string().min(1),
    '127.0.0.1',
    'address to listen on; 0.0.0.0 for all interfaces',
    { name: 'HOST', read: String, expected: 'an address such as 127.0.0.1' },
  ),
  port: setting(port, 8_080, '0 picks a free port and prints it', {
    name: 'PORT',
    read: Number,
    expected: 'a port from 0 to 65535',
  }),
  metrics_port: setting(
    port.nullable(),
    null,
    'port for /metrics alone, which http.port then does not serve; 0 picks a free one',
    {
      name: 'TALLYHOOK_METRICS_PORT',
      read: Number,
      expected: 'a port from 0 to 65535, not that of PORT',
    },
  ),
  base_path: setting(
    basePath,
    '',
    'path of a reverse proxy under which all of this is, such as /tallyhook; with or without it ' +
      'the daemon serves the same',
    { name: 'TALLYHOOK_BASE_PATH', read: String, expected: 'a path such as /tallyhook' },
  ),
  trusted_proxies: setting(
    ranges,
    [],
    'address ranges of reverse proxies whose X-Forwarded-For, -Proto and -Host are believed',
    {
      name: 'TALLYHOOK_TRUSTED_PROXIES',
      read: listOf,
      expected: 'ranges such as 10.0.0.0/8 or 10.0.0.5/32, separated by commas',
    },
  ),
  body_bytes_max: setting(bytes, 1_048_576, 'largest request body; a larger one is answered 413'),
  feed_wait_max_ms: setting(ms, 30_000, 'longest long poll of GET /api/events?wait='),
});

const daemon = section(
  {
    roles: setting(z.array(z.enum(ROLES)).min(1), [...ROLES], 'what this daemon runs', {
      name: 'TALLYHOOK_ROLES',
      read: listOf,
      expected: `some of ${ROLES.join(', ')}, separated by commas`,
    }),
    worker_interval_ms: setting(
      ms,
      1_000,
      'how often a daemon searches the database for work that others have made for its workers',
    ),
    worker_pass_timeout_ms: setting(
      ms,
      60_000,
      'a longer worker pass counts as failed and is told to stop; the next waits for its end',
    ),
    metrics_interval_ms: setting(
      ms.min(100),
      30_000,
      'how often the gauges of backlogs and open work are read',
    ),
    heartbeat_timeout_ms: setting(
      ms.min(500),
      15_000,
      'without a heartbeat for this long a daemon counts as dead and may not send',
    ),
    unready_ms: setting(
      z.number().int().min(0).max(600_000),
      500,
      'after SIGTERM /readyz answers 503 for so long before the daemon accepts no more; ' +
        'longer than your load balancer takes to notice',
    ),
    drain_ms: setting(
      ms,
      35_000,
      'time to finish running work after SIGTERM, longer than upstream.write_timeout_ms; then ' +
        'writes without an answer get 504 outcome_unknown, and the daemon stops',
    ),
  },
  'A role is a part of the work of an installation. Over several machines each role needs at ' +
    'least one daemon, on the same database and with the same settings. Every daemon answers ' +
    '/healthz, /readyz and /metrics (the last on http.metrics_port, if that is set).\n' +
    "- gateway: the service's own paths for apps, and the queued writes\n" +
    '- api: /api, console and documents\n' +
    '- workers: ledger, observer, reconciler, the event feed, reports, housekeeping\n' +
    '- delivery: webhooks, sent by a process of its own that the daemon starts and supervises',
);

const database = section({
  embedded_port: setting(
    port,
    0,
    'of the embedded Postgres; 0 keeps its former port while that is free',
    { name: 'DATABASE_PORT', read: Number, expected: 'a port from 0 to 65535' },
  ),
  connections: section(
    {
      gateway: setting(count.min(2).max(500), 8, "apps' requests and the heartbeat"),
      workers: setting(count.min(2).max(500), 4, 'background work'),
      people: setting(
        count.max(500),
        4,
        'API, console and reports; at most 128 statements per connection wait',
      ),
      delivery: setting(count.min(2).max(500), 3, 'the process that sends webhooks'),
    },
    'per daemon; their sum, 19, must be free in max_connections of Postgres',
  ),
  statement_timeout_ms: setting(
    statementMs,
    60_000,
    'Postgres cancels a statement of gateway, workers or delivery that runs longer',
  ),
  people_statement_timeout_ms: setting(
    statementMs,
    5_000,
    'the same for API and console; then 503 query_too_slow',
  ),
  start_wait_ms: setting(
    z.number().int().min(0),
    60_000,
    'how long a start waits for a Postgres that does not answer',
  ),
  retention_days: section(
    {
      events: setting(
        days,
        400,
        'also the reach of the pull feed; an older cursor is answered 410',
      ),
      observations: setting(
        days,
        90,
        'observations cited as evidence are kept forever with their findings',
      ),
      deliveries: setting(days, 90, 'also of deleted endpoints'),
      attempts: setting(days, 90, 'of attempts to deliver webhooks'),
      audit: setting(days.min(366), 3_650, 'who changed what through the API'),
    },
    'monthly partitions are dropped when all their rows are older',
  ),
  body_retention_days: setting(
    z.record(z.string().max(100), days).refine((ages) => Object.keys(ages).every(isEventPattern), {
      message: 'must be days by event types, group.* or *',
    }),
    {},
    'bodies of older events are removed: by event type, group.* or *; the most exact one counts',
  ),
});

const upstream = section(
  {
    budget_per_s: setting(
      z.union([perS, z.literal('auto')]),
      'auto',
      'highest rate of polls of all daemons together, or auto',
      {
        name: 'UPSTREAM_BUDGET_PER_S',
        read: (text) => (text === 'auto' ? text : Number(text)),
        expected: 'polls per second, more than 0, or auto',
      },
    ),
    initial_rate_per_s: setting(
      perS,
      5,
      'poll rate at the start; rises to the budget within 30 seconds',
    ),
    steady_share: setting(share, 0.2, 'share of the budget reserved for steady polls'),
    poll_concurrency_max: setting(count, 32, 'polls in flight per daemon'),
    poll_queue_max: setting(
      count,
      100,
      'polls that wait for budget; further ones fail and are scheduled again',
    ),
    poll_queue_timeout_ms: setting(ms, 5_000, 'longest wait of a poll for budget'),
    app_concurrency_max: setting(
      count,
      1_000,
      'app requests in flight to the service; further ones are answered 502',
    ),
    proxy: proxySetting(
      'UPSTREAM_PROXY',
      'forward proxy, http://user:password@proxy:3128, with the exceptions of NO_PROXY; ' +
        'environment: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY; none: directly',
    ),
    connect_timeout_ms: setting(ms, 5_000, 'name lookup, TCP and TLS; also to open a tunnel'),
    read_timeout_ms: setting(ms, 10_000, 'a whole read: connect, request, response'),
    write_timeout_ms: setting(
      ms,
      30_000,
      'a whole write; without an answer by then its outcome is unknown',
    ),
    body_bytes_max: setting(bytes, 4_194_304, 'largest response that is read'),
  },
  'The client of the service. All polls of all daemons share one budget; requests of apps ' +
    'neither wait for it nor use it up. `auto` is 5 polls per second, or a fourth of the ' +
    'requests of apps per second if that is more: what apps send without a 429 shows that the ' +
    'service bears it. A number is the highest rate of polls, however many requests apps send. ' +
    'Tallyhook halves its rate when the service answers 429, to apps or to polls, and raises it ' +
    'again within 5 minutes of the end of its Retry-After.',
);

const gateway = section({
  concurrency_max: setting(
    count,
    2_000,
    'requests in progress per daemon; further ones are answered 429',
  ),
  unauthenticated_per_s: setting(
    perS,
    50,
    'requests to /v1/oauth and /v1/system per second and client address',
  ),
  first_poll_wait_ms: setting(
    z.number().int().min(0).max(60_000),
    1_000,
    'longest wait of the first write on a wallet for a poll of it; 0 disables it',
  ),
  queue_ttl_ms: setting(
    ms.max(7 * DAY_MS),
    DAY_MS,
    'expiry of a queued write (Prefer: respond-async)',
  ),
});

const operations = section(
  {
    conflict_wait_ms: setting(
      z.number().int().min(0).max(60_000),
      2_000,
      'longest wait of a write for the write it conflicts with',
    ),
    refuse_conflicts: setting(
      z.boolean(),
      false,
      'after the wait: true answers 409, false sends the write marked ambiguous',
    ),
    wait_queue_max: setting(
      count,
      1_000,
      'writes that wait for a conflicting one; a further one does not wait',
    ),
    request_queue_max: setting(
      count,
      100_000,
      'queued writes (Prefer: respond-async); further ones are answered 429',
    ),
  },
  'Two open writes conflict when a wallet balance could not tell which of them was applied.',
);

const decisions = section(
  {
    second_approver_above: setting(
      z.union([z.int().min(0), z.string().regex(/^\d{1,100}$/)]).nullable(),
      null,
      'larger amounts need two approvals, of two owners: "100000"; null: no amount does',
    ),
  },
  'What people decide (outcomes of operations, ends of drifts): one owner proposes, another one ' +
    'approves.',
);

const observer = section(
  {
    steady_interval_ms: setting(
      ms,
      60_000,
      'longest between polls of a steady target, unless the budget takes longer',
    ),
    min_gap_ms: setting(
      ms,
      500,
      'shortest between polls of a steady target, however much budget is left',
    ),
    settled_interval_ms: setting(
      ms,
      DAY_MS,
      'between polls of a token whose operations have settled, unless it is watched',
    ),
    pending_interval_min_ms: setting(
      ms,
      1_000,
      'least between polls of a pending target, which follow what was learned of how long ' +
        'operations take to show',
    ),
    pending_interval_max_ms: setting(ms, 30_000, 'most between polls of a pending target'),
    poll_timeout_ms: setting(ms, 15_000, 'a whole poll, waiting for budget included'),
    probe_interval_ms: setting(ms, 30_000, 'between polls of the maintenance status'),
    probe_interval_down_ms: setting(ms, 5_000, 'the same while the service is down or unreachable'),
  },
  'Intervals between polls. A target is pending while an operation on it is open, and steady ' +
    'otherwise. Steady targets share what the budget leaves; those that change often are polled ' +
    'more often.',
);

const reconciler = section({
  read_lag_ms: setting(
    z.number().int().min(0).max(3_600_000),
    1_000,
    'how long an accepted write may be missing from reads; what a poll proves rests on it',
  ),
  quiescence_ms: setting(ms, 30_000, 'how long after its deadline a write may still be applied', {
    name: 'UPSTREAM_QUIESCENCE_MS',
    read: Number,
    expected: 'whole milliseconds, at least 1',
  }),
  undecided_after_ms: setting(
    ms,
    600_000,
    'an unknown operation not resolved by evidence until then is decided by people',
  ),
  one_sided: setting(
    z.enum(['resolve', 'people']),
    'resolve',
    'whether the balance of one wallet may end an unknown operation; people: they always decide',
  ),
  bracket_max_ms: setting(
    ms,
    600_000,
    'one_sided: resolve needs polls before and after the send that are at most so far apart',
  ),
});

const alerts = section(
  {
    stuck_factor: setting(
      z.number().min(1).max(1_000),
      3,
      'stuck after so many times the time in which 99 % of the last 1000 of a kind settled',
    ),
    stuck_min_ms: setting(
      ms,
      60_000,
      'but not earlier, and after ten times that until 20 of a kind have settled',
    ),
    rules: setting(
      alertRules,
      [],
      'Tallyhook emits alert.raised when a rule begins to hold, alert.cleared when it ends:\n' +
        '- { name: operator-low, kind: wallet_below, wallet: "operator:1", amount: "100000" }\n' +
        '- { name: shop-full, kind: wallet_above, wallet: "0x…", amount: "5000000" }\n' +
        '- { name: unknown-old, kind: unknown_older, age_ms: 900000 }\n' +
        '- { name: drift-large, kind: drift_above, amount: "1000" }',
    ),
  },
  'What raises an alarm by itself: targets that were not polled within twice the guaranteed age ' +
    '(the event observer.late), and executed operations that do not settle (operation.stuck).',
);

const ledger = section(
  {
    fee_mode: setting(
      z.union([feeMode, feeRules]),
      'on_top',
      'on_top: the payer pays amount + fee; deducted: the payee receives amount - fee. If it ' +
        'changed, the rule of a write is the one in force when it was sent; what was posted ' +
        'under another rule is reversed and posted again at the next start:\n' +
        '- { mode: on_top }\n' +
        '- { from: "2026-03-01T00:00:00Z", mode: deducted }',
    ),
    operators: setting(
      z.record(z.string().regex(/^\d+$/), z.string().length(42)),
      {},
      'wallet address per operator number: { "1": "0x…" }. If the wallet was watched before, ' +
        'gives of the operator since its opening are posted from it at the next start. ' +
        'Two owners map others without a start; see docs/operators.md',
    ),
    fees_addr: setting(addr, null, 'wallet that receives the fees'),
    collection_addr: setting(addr, null, 'wallet that receives what receive-from takes from users'),
    verify_interval_ms: setting(
      z
        .number()
        .int()
        .min(0)
        .max(31 * DAY_MS),
      DAY_MS,
      'how often the hash chain is verified; 0: only by npx tallyhook verify',
    ),
  },
  'How the service books payments. Addresses have 42 characters; null means unknown. An ' +
    'operator, fee or collection account without an address is not compared with the service.',
);

const webhooks = section(
  {
    allow_cidrs: setting(
      ranges,
      [],
      'private address ranges that endpoints may have; with the sandbox also loopback',
      {
        name: 'WEBHOOK_ALLOW_CIDRS',
        read: listOf,
        expected: 'ranges such as 10.0.0.0/8 or 10.0.0.5/32, separated by commas',
      },
    ),
    allow_http: setting(
      z.boolean(),
      true,
      'receivers without encryption; false refuses http:// URLs, also when sending, except to ' +
        'loopback addresses in allow_cidrs',
    ),
    proxy: proxySetting('WEBHOOK_PROXY', 'as upstream.proxy, for receivers'),
    proxy_resolves_names: setting(
      z.boolean(),
      false,
      'for networks in which only the proxy resolves names: it gets the name of a receiver, and ' +
        'only addresses written in URLs are checked',
    ),
    attempt_timeout_ms: setting(
      ms,
      15_000,
      'an attempt up to the status of its answer; the body has half a second more',
    ),
    concurrency_max: setting(count, 128, 'attempts in flight per daemon'),
    in_flight_per_endpoint_max: setting(
      count,
      8,
      'attempts in flight per endpoint; lower while an endpoint fails',
    ),
    endpoints_per_owner_max: setting(
      count,
      1_000,
      'endpoints of one owner, such as of the subscriber of a portal link',
    ),
  },
  "Receivers' names are resolved by DNS and the hosts file as they are, without search domains.",
);

const reports = section({
  organisation: setting(
    z
      .string()
      .max(200)
      .regex(/^\S(\P{C}*\S)?$/u, 'not a name on one line')
      .nullable(),
    null,
    'whose books these are, printed on every report, such as Example Games Ltd',
  ),
  console_url: setting(
    z
      .url({ protocol: /^https?$/ })
      .overwrite((value) => value.replace(/\/+$/, ''))
      .nullable(),
    null,
    'printed reports link operations, drifts and wallets to it: https://tallyhook.example.com',
  ),
  reconciliation: section({
    period: setting(
      z.union([z.literal('day'), z.number().int().min(1).max(1_440)]),
      'day',
      'day, or a number of minutes that the report covers, such as 15',
    ),
    time_zone: setting(
      z.string().refine(isTimeZone, 'not a time zone'),
      'UTC',
      'days begin and end in this zone, such as Europe/Berlin; printed reports and workbooks ' +
        'show times in it, CSV and JSON in UTC',
    ),
    cron: setting(
      z.string().min(9, 'must be the five fields of cron, such as "5 0 * * *"'),
      '5 0 * * *',
      'when to check for due reports, in that zone',
    ),
  }),
  stale_after_ms: setting(
    ms,
    900_000,
    'a wallet without a conclusive observation for this long counts as stale',
  ),
  delivery: section({
    folder: setting(
      z.string().min(1).nullable(),
      null,
      'an existing folder that gets the files of every new report, such as /srv/finance',
    ),
    bucket: section(
      {
        name: setting(
          z
            .string()
            .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'not a bucket')
            .nullable(),
          null,
          'such as finance',
        ),
        endpoint: setting(
          url,
          null,
          'such as https://s3.eu-central-1.amazonaws.com or http://10.0.0.5:9000',
        ),
        region: setting(
          z.string().regex(/^[a-z0-9-]{1,40}$/, 'not a region'),
          'us-east-1',
          'as the service names it',
        ),
        prefix: setting(
          z.string().regex(/^(\w[\w.-]*(\/\w[\w.-]*)*)?$/, 'not a prefix such as a/b'),
          '',
          'begins the name of every object, such as tallyhook/reports',
        ),
        path_style: setting(
          z.boolean(),
          true,
          'https://endpoint/bucket/name; false: https://bucket.endpoint/name',
        ),
      },
      'or an S3-compatible bucket; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and ' +
        'AWS_SESSION_TOKEN) hold its keys; it may be in a private network, and http',
    ),
    formats: setting(
      z.array(z.enum(REPORT_FORMATS)).min(1),
      ['html', 'csv-zip'],
      'of html, xlsx, csv, csv-zip (a CSV per section), hledger and json',
    ),
  }),
});

const sections = z.strictObject({
  http,
  daemon,
  database,
  upstream,
  gateway,
  operations,
  decisions,
  observer,
  reconciler,
  alerts,
  ledger,
  webhooks,
  reports,
  console: section({
    oidc: setting(
      oidc.nullable(),
      null,
      'sign-in of people by OpenID Connect, beside keys; see docs/operators.md',
    ),
  }),
  sandbox: section(
    {
      seed: setting(
        z.number().int().min(0).max(4_294_967_295),
        1,
        'the same seed creates the same members, wallets and tokens',
      ),
      background_traffic: setting(
        z.boolean(),
        true,
        'a sample app writes now and then, so that a new installation shows data',
      ),
      settle_ms: setting(ms, 3_000, 'median time until its chain settles a write'),
    },
    'The simulated service; it runs only while no UPSTREAM_* variable is set.',
  ),
  log: section({
    level: setting(
      z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal']),
      'info',
      'trace, debug, info, warn, error or fatal',
      {
        name: 'LOG_LEVEL',
        read: String,
        expected: 'trace, debug, info, warn, error or fatal',
      },
    ),
  }),
});

export const settingsSchema = sections.superRefine(refuseUnknownOperators);

export type Settings = z.output<typeof settingsSchema>;

/** A setting or a section, by its path. */
export interface Defined extends About {
  path: readonly string[];
  schema: z.ZodType;
  isSection: boolean;
}

/** Every section and setting in their order, a section before what it holds. */
export const DEFINED: readonly Defined[] = definedIn(sections, []);

function definedIn({ shape }: z.ZodObject, before: readonly string[]): Defined[] {
  return Object.entries(shape).flatMap(([name, schema]): Defined[] => {
    const about = aboutOf(schema as z.ZodType);
    const path = [...before, name];
    const isSection = schema instanceof z.ZodObject && about.default === undefined;
    const own = { ...about, path, schema: schema as z.ZodType, isSection };
    return isSection ? [own, ...definedIn(schema, path)] : [own];
  });
}

const UNITS = [
  [/_ms$/, 'ms'],
  [/_per_s$/, 'per s'],
  [/(^|_)bytes_max$/, 'bytes'],
  [/retention_days(\.|$)/, 'days'],
] as const;

/** The unit that a dotted name says. */
export function unitOf(name: string): (typeof UNITS)[number][1] | null {
  return UNITS.find(([pattern]) => pattern.test(name))?.[1] ?? null;
}

/** Values by the paths of their settings, as a file has them. */
export function treeOf(values: Iterable<readonly [path: readonly string[], value: unknown]>) {
  const tree: Record<string, unknown> = {};
  for (const [path, value] of values) {
    let at = tree;
    for (const name of path.slice(0, -1)) {
      at[name] ??= {};
      at = at[name] as Record<string, unknown>;
    }
    at[path.at(-1) ?? ''] = value;
  }
  return tree;
}

interface KnownVariable {
  /** A secret is never shown; those of commands are not read by a daemon. */
  kind: 'secret' | 'url' | 'text' | 'command';
  description: string;
}

/** Environment variables that are no settings. */
export const VARIABLES: Record<string, KnownVariable> = {
  DATA_DIR: {
    kind: 'text',
    description: 'folder of the embedded Postgres and of generated keys; by default ./data',
  },
  UPSTREAM_CLIENT_ID: {
    kind: 'text',
    description: 'of the service; all five UPSTREAM_* or none, then the sandbox runs',
  },
  TALLYHOOK_CONFIG: { kind: 'text', description: 'a YAML file with the settings that it changes' },
  HTTPS_PROXY: {
    kind: 'url',
    description: 'forward proxy of https:// targets; each of these is read in lower case first',
  },
  HTTP_PROXY: { kind: 'url', description: 'forward proxy of http:// targets' },
  ALL_PROXY: { kind: 'url', description: 'of targets for which neither of the former is set' },
  NO_PROXY: {
    kind: 'text',
    description:
      'targets reached directly: names (with all below them), addresses, ranges, each with :port ' +
      'or not; * for all; loopback always is',
  },
  NODE_ENV: { kind: 'text', description: 'production refuses a start with the sandbox' },
  UPSTREAM_BASE_URL: { kind: 'url', description: 'address of the service' },
  UPSTREAM_AUTH_URL: { kind: 'url', description: 'address of its authorization' },
  UPSTREAM_TX_URL: { kind: 'url', description: 'address of its writes' },
  UPSTREAM_CLIENT_SECRET: { kind: 'secret', description: 'of the client of the service' },
  DATABASE_URL: { kind: 'secret', description: 'by default an embedded Postgres under DATA_DIR' },
  DATABASE_OWNER_URL: { kind: 'secret', description: "the owner's login, which migrates" },
  DATABASE_READ_URL: {
    kind: 'secret',
    description:
      'a replica, on which reports are made once it has all that is committed; without one, or ' +
      'when it is away or 10 s behind, on the primary',
  },
  ADMIN_KEY: {
    kind: 'secret',
    description:
      `a key with every scope: ${SECRET_WORDS} ` +
      '(echo thk_$(openssl rand -hex 24)); another value revokes the key of the former; without ' +
      'it one is generated at the first start and printed once',
  },
  MASTER_KEY: {
    kind: 'secret',
    description:
      '32 bytes in base64 (openssl rand -base64 32); generated only with the embedded database',
  },
  MASTER_KEY_OLD: { kind: 'secret', description: 'the former key while MASTER_KEY replaces it' },
  OIDC_CLIENT_SECRET: {
    kind: 'secret',
    description: 'of console.oidc, unless it is a public client',
  },
  AWS_ACCESS_KEY_ID: { kind: 'secret', description: 'used by reports.delivery.bucket alone' },
  AWS_SECRET_ACCESS_KEY: { kind: 'secret', description: 'belongs to AWS_ACCESS_KEY_ID' },
  AWS_SESSION_TOKEN: {
    kind: 'secret',
    description: 'belongs to AWS_ACCESS_KEY_ID, if that is temporary',
  },
  TALLYHOOK_URL: { kind: 'command', description: 'of the daemon that a command speaks to' },
  TALLYHOOK_KEY: {
    kind: 'command',
    description: 'the key with which it does; TALLYHOOK_KEY_FILE names a file with it',
  },
};

/** Each may also stand in a file; see secret-files.ts. */
export const SECRETS = Object.entries(VARIABLES).flatMap(([name, { kind }]) =>
  kind === 'secret' ? [name] : [],
);
export const FILE_SUFFIX = '_FILE';

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone.length > 0;
  } catch {
    return false;
  }
}
