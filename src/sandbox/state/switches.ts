/**
 * Switches: each reading that the interface leaves open, settable at the start and while running.
 * The defaults are the assumptions in docs/assumptions.md.
 */
import { z } from 'zod';
import { wholeOf } from '../../kernel/amounts.ts';

/** A whole number of any size: a bigint, a JSON number, or decimal text. */
export const whole = z
  .union([z.bigint(), z.int(), z.string().regex(/^-?(0|[1-9]\d{0,999})$/)])
  .transform((value) => wholeOf(value) ?? 0n);

const ms = z.int().min(0).max(1e12);
const seconds = z.int().min(1).max(1e9);
const timeZone = z.string().max(64).refine(isTimeZone, 'not a time zone');

export const switchesSchema = z.strictObject({
  // Payments.
  /** Who pays the fee: the sender on top of the amount, or the receiver from the amount. */
  fee: z.enum(['on_top', 'deducted']).default('on_top'),
  transfer_min: whole.default(1n),
  transfer_max: whole.default(10n ** 60n),
  /** The most that one wallet may send by transfers within 24 hours. */
  oneday_limit: whole.default(10n ** 62n),
  /** Allowed reason types; null allows any text that is not empty. */
  reason_types: z.array(z.string()).max(100).nullable().default(null),
  /** The operator wallet that receives deducted tokens. */
  collect_operator: whole.default(1n),
  /** The operator wallet that receives fees. */
  fee_operator: whole.default(0n),
  /** Whether a wallet with status 3 (user request) can move tokens; if not, error 197. */
  user_request: z.enum(['refuse', 'allow']).default('refuse'),
  /** Added to each transaction number, to test numbers of any size. */
  tx_log_no_base: whole.default(0n),
  // Chain.
  settle_median_ms: ms.default(3000),
  /** Standard deviation of the logarithm of the settle time. */
  settle_sigma: z.number().min(0).max(3).default(0.5),
  /** Share of chain writes that fail. */
  fail_share: z.number().min(0).max(1).default(0),
  /** Whose tokens a client token may burn. */
  burn: z.enum(['any', 'own']).default('any'),
  /** Body status of a read of an unknown or burned token. */
  absent_token: z.union([z.literal(404), z.literal(422)]).default(404),
  // Reads.
  time_zone: timeZone.default('UTC'),
  list_order: z
    .enum(['token_id', 'token_id_desc', 'created', 'created_desc', 'owned_desc'])
    .default('token_id'),
  per_page_default: z.int().min(1).max(10_000).default(20),
  per_page_max: z.int().min(1).max(10_000).default(100),
  /** How long reads do not show a write. */
  read_lag_ms: ms.default(0),
  /** HTTP code of account and transaction errors: the status in the body, or 200. */
  error_http: z.enum(['status', 'ok']).default('status'),
  // Authorization.
  /** The interface shows it (a day); only tests whose clock moves by years change it. */
  access_lifetime_s: seconds.default(86_400),
  code_lifetime_s: seconds.default(600),
  refresh_lifetime_s: seconds.default(30 * 86_400),
  /** Whether a refresh returns a new refresh token and ends the old one. */
  refresh_rotates: z.boolean().default(false),
  expires_in_unit: z.enum(['s', 'ms', 'min', 'h']).default('s'),
  scope: z.string().max(200).default('default'),
  /** How check_token reports an expired token: 200 with active false, or error invalid_token. */
  check_expired: z.enum(['inactive', 'invalid_token']).default('inactive'),
  check_needs_basic: z.boolean().default(true),
  /** Whether token records are wrapped in `{status, data}`. */
  token_envelope: z.boolean().default(false),
  // Rate limit.
  /** Requests per second over all endpoints; null means no limit. */
  rate_per_s: z.number().positive().max(1e6).nullable().default(null),
  rate_burst: z.int().min(1).max(1e6).default(10),
  retry_after: z.enum(['seconds', 'date', 'none']).default('seconds'),
  // Background traffic.
  background_traffic: z.boolean().default(false),
  background_interval_ms: z.int().min(100).max(1e9).default(20_000),
});

export type Switches = z.output<typeof switchesSchema>;

/** A change of some switches; unknown names are refused. */
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
