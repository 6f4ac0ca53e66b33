/**
 * Schemas of the service's records (interface, section 2). Lenient where the interface is silent:
 * whole numbers may have any size and be a number or text; timestamps stay text, because their time
 * zone is not shown.
 */
import { z } from 'zod';
import { isAddress } from '../../kernel/addresses.ts';
import { wholeOf } from '../../kernel/amounts.ts';

/** A whole number of any size. */
const whole = z.unknown().transform((value, context) => {
  const number = wholeOf(value);
  if (number !== undefined) return number;
  context.addIssue({ code: 'custom', message: 'not a whole number' });
  return z.NEVER;
});
/** A whole number that fits in a column of type integer, such as a status or a page. */
const small = whole.transform((value, context) => {
  const number = Number(value);
  if ((number | 0) === number) return number;
  context.addIssue({ code: 'custom', message: 'too large' });
  return z.NEVER;
});
const addr = z.string().refine(isAddress, 'not an address');
/** Missing and null read as the empty text. */
const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');
const optional = <T extends z.ZodType>(type: T) =>
  type.nullish().transform((value) => value ?? undefined);

/** Section 2.3. Status: 1 normal, 2 suspended, 3 user request, 9 withdrawn. */
export const walletRecord = z
  .object({ token_addr: addr, amt_token: whole, status: small })
  .transform((r) => ({ addr: r.token_addr, balance: r.amt_token, status: r.status }));
export type WalletRecord = z.output<typeof walletRecord>;

/** Section 2.1. Status: 0 pending, 1 complete, 2 progress, 3 fail. */
export const tokenRecord = z
  .object({
    contract_id: whole,
    token_id: whole,
    token_owner: text,
    token_uri: text,
    token_metadata: text,
    token_extradata: text,
    token_creator: text,
    token_created_at: text,
    token_owned_at: text,
    token_is_locked: z.union([z.boolean(), small.pipe(z.literal([0, 1]))]),
    status: small,
    last_tx_hash: text,
  })
  .transform((r) => ({
    contractId: r.contract_id,
    tokenId: r.token_id,
    owner: r.token_owner,
    uri: r.token_uri,
    metaData: r.token_metadata,
    extraData: r.token_extradata,
    creator: r.token_creator,
    /** The service's own text, such as `2026-01-31 09:00:00`. */
    createdAtText: r.token_created_at,
    ownedAtText: r.token_owned_at,
    locked: r.token_is_locked === true || r.token_is_locked === 1,
    status: r.status,
    lastTxHash: r.last_tx_hash,
  }));
export type TokenRecord = z.output<typeof tokenRecord>;

/** A page of a list (section 4.1). An unreadable row makes the page unreadable. */
export const tokenPage = z
  .object({
    total: whole,
    perPage: small,
    page: small,
    lastPage: small,
    data: z.array(tokenRecord),
  })
  .transform(({ data, ...page }) => ({ ...page, tokens: data }));
export type TokenPage = z.output<typeof tokenPage>;

/** Section 2.7. `start` and `end` are the service's own text. */
export const maintenanceRecord = z
  .object({
    status: z.enum(['READY', 'ACTIVE', 'INACTIVE']),
    start: optional(z.string()),
    end: optional(z.string()),
    message: optional(z.string()),
  })
  .transform((r) => ({
    status: r.status,
    startText: r.start,
    endText: r.end,
    message: r.message,
  }));
export type MaintenanceRecord = z.output<typeof maintenanceRecord>;

/** Section 2.6. */
export const tokenCheckRecord = z
  .object({
    active: optional(z.boolean()),
    exp: optional(whole),
    grant_type: optional(z.string()),
    client_id: optional(z.string()),
    app_no: optional(whole),
  })
  .transform((r) => ({
    active: r.active,
    /** The end of the token, in a unit that the interface does not show. */
    exp: r.exp,
    grantType: r.grant_type,
    clientId: r.client_id,
    appNo: r.app_no,
  }));
export type TokenCheckRecord = z.output<typeof tokenCheckRecord>;

/** Section 2.5, the members that a client token has. */
export const accessTokenRecord = z
  .object({
    access_token: z
      .string()
      .max(16_384)
      .regex(/^[\x21-\x7e]+$/),
    /** An unreadable value counts as missing; the token is then renewed early. */
    expires_in: z.unknown().transform(wholeOf).optional(),
    app_no: optional(whole),
  })
  .transform((r) => ({ accessToken: r.access_token, expiresIn: r.expires_in, appNo: r.app_no }));

/** Section 2.4. */
export const transactionResult = z
  .object({ tx_log_no: whole, tx_app_no: optional(whole) })
  .transform((r) => ({ txLogNo: r.tx_log_no, txAppNo: r.tx_app_no }));
