/**
 * What the interface does not show, as switches: every reading of a silent line that a caller
 * could meet. The defaults are the assumptions of the README's table; a test or a person turns
 * them, at the start or while running. A rule of the service that the document does show is no
 * switch, with the one exception that says why.
 */
import { z } from 'zod';
import { wholeOf } from '../../kernel/amounts.ts';

/** A whole number of any size: a JSON number, or decimal text where digits would be lost. */
export const whole = z
  .union([z.bigint(), z.int(), z.string().regex(/^-?(0|[1-9]\d{0,999})$/)])
  .transform((value) => wholeOf(value) ?? 0n);

const ms = z.int().min(0).max(1e12);
const seconds = z.int().min(1).max(1e9);
const timeZone = z.string().max(64).refine(isTimeZone, 'not a time zone');

export const switchesSchema = z.strictObject({
  // Money.
  /** Who pays the fee: on top of the amount, or deducted from what the other side receives. */
  fee: z.enum(['on_top', 'deducted']).default('on_top'),
  transfer_min: whole.default(1n),
  transfer_max: whole.default(10n ** 60n),
  /** The most one wallet may send by transfers within 24 hours. */
  oneday_limit: whole.default(10n ** 62n),
  /** Allowed reason types; null: any text that is not empty. */
  reason_types: z.array(z.string()).max(100).nullable().default(null),
  /** The operator wallet that receives deducted tokens. */
  collect_operator: whole.default(1n),
  /** The operator wallet that receives fees. */
  fee_operator: whole.default(0n),
  /** Whether a wallet stopped at its user's request can move tokens; refusing is error 197. */
  user_request: z.enum(['refuse', 'allow']).default('refuse'),
  /** Added to the running number of transactions, to see numbers of any size. */
  tx_log_no_base: whole.default(0n),
  // Chain.
  settle_median_ms: ms.default(3000),
  /** Spread of the settle time: the standard deviation of its logarithm. */
  settle_sigma: z.number().min(0).max(3).default(0.5),
  /** Share of the chain's transactions that fail. */
  fail_share: z.number().min(0).max(1).default(0),
  /** Whose tokens a client token may burn. */
  burn: z.enum(['any', 'own']).default('any'),
  /** The body status with which an unknown or burned token reads. */
  absent_token: z.union([z.literal(404), z.literal(422)]).default(404),
  // Reads.
  time_zone: timeZone.default('UTC'),
  list_order: z
    .enum(['token_id', 'token_id_desc', 'created', 'created_desc', 'owned_desc'])
    .default('token_id'),
  per_page_default: z.int().min(1).max(10_000).default(20),
  per_page_max: z.int().min(1).max(10_000).default(100),
  /** How long a write stays invisible to reads. */
  read_lag_ms: ms.default(0),
  /** HTTP code of account and transaction errors: the number in the body, or 200. */
  error_http: z.enum(['status', 'ok']).default('status'),
  // Authorization.
  /** Shown by the document, a day; turned only by tests whose clock leaps over years. */
  access_lifetime_s: seconds.default(86_400),
  code_lifetime_s: seconds.default(600),
  refresh_lifetime_s: seconds.default(30 * 86_400),
  /** Whether a refresh answers a new refresh token and ends the old one. */
  refresh_rotates: z.boolean().default(false),
  expires_in_unit: z.enum(['s', 'ms', 'min', 'h']).default('s'),
  scope: z.string().max(200).default('default'),
  /** How an expired token is reported: 200 with active false, or the error invalid_token. */
  check_expired: z.enum(['inactive', 'invalid_token']).default('inactive'),
  check_needs_basic: z.boolean().default(true),
  /** Whether token records stand inside `{status, data}`. */
  token_envelope: z.boolean().default(false),
  // Limits.
  /** Requests per second over everything; null: none. */
  rate_per_s: z.number().positive().max(1e6).nullable().default(null),
  rate_burst: z.int().min(1).max(1e6).default(10),
  retry_after: z.enum(['seconds', 'date', 'none']).default('seconds'),
  // Life of its own.
  liveliness: z.boolean().default(false),
  lively_interval_ms: z.int().min(100).max(1e9).default(20_000),
});

export type Switches = z.output<typeof switchesSchema>;

/** A change of some switches, from outside: unknown names are refused, absent ones stay. */
export const switchPatchSchema = z
  .strictObject(
    Object.fromEntries(
      Object.entries(switchesSchema.shape).map(([name, type]) => [name, type.unwrap().optional()]),
    ),
  )
  .transform((patch) => patch as Partial<Switches>);

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
