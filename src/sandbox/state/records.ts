/**
 * The records of the world, as stored and as written to the store. Loading validates them, so
 * the data of another version is refused.
 */
import { z } from 'zod';
import { switchesSchema, whole } from './switches.ts';

const instant = z.number();

export type PaymentKind = 'give' | 'receive_from' | 'transfer';

export const contractSchema = z.strictObject({
  contract_id: whole,
  /** Whether it belongs to the app of this sandbox. */
  own: z.boolean(),
  creator_addr: z.string(),
  /** The search for the next free token id starts here. */
  next_token_id: whole,
});

/** A write that the chain has not settled yet. */
const workSchema = z.strictObject({
  kind: z.enum(['mint', 'mint_sequential', 'burn', 'set_extra_data', 'transfer_from']),
  /** The new owner or the new extra data. */
  value: z.string(),
  progress_at: instant,
  final_at: instant,
  fails: z.boolean(),
});

export const STATUS = { pending: 0, complete: 1, progress: 2, fail: 3 } as const;

export const tokenStatusSchema = z.literal(Object.values(STATUS));

export const tokenSchema = z.strictObject({
  contract_id: whole,
  token_id: whole,
  owner: z.string(),
  uri: z.string(),
  metadata: z.string(),
  extra: z.string(),
  creator: z.string(),
  created_at: instant,
  owned_at: instant,
  locked: z.boolean(),
  status: tokenStatusSchema,
  last_tx_hash: z.string(),
  /** False until the chain completed its mint. */
  exists: z.boolean(),
  work: workSchema.nullable(),
});

export const WALLET_STATUS = { normal: 1, suspended: 2, userRequest: 3, withdrawn: 9 } as const;

export const walletStatusSchema = z.literal(Object.values(WALLET_STATUS));

export const walletSchema = z.strictObject({
  addr: z.string(),
  balance: whole,
  status: walletStatusSchema,
});

export const operatorSchema = z.strictObject({ operation_no: whole, addr: z.string() });

export const memberSchema = z.strictObject({
  member_no: whole,
  nickname: z.string(),
  /** Null until the member reads the own wallet for the first time. */
  addr: z.string().nullable(),
});

/** An issued code or token, stored under the hash of its secret. */
export const grantSchema = z.strictObject({
  kind: z.enum(['code', 'access', 'refresh']),
  grant_type: z.string(),
  member_no: whole.nullable(),
  redirect_uri: z.string().nullable(),
  expires_at: instant,
  used: z.boolean(),
});

/** One applied write, against which a caller's records can be compared. */
export const effectSchema = z.strictObject({
  n: whole,
  at: instant,
  kind: z.string(),
  tx_app_no: whole.nullable(),
  tx_log_no: whole.nullable(),
  tx_hash: z.string().nullable(),
  operation_no: whole.nullable(),
  from_addr: z.string().nullable(),
  to_addr: z.string().nullable(),
  amount: whole.nullable(),
  fee_amount: whole.nullable(),
  reason_type: z.string().nullable(),
  contract_id: whole.nullable(),
  token_id: whole.nullable(),
});

export const counterSchema = z.strictObject({ value: whole });

/** A maintenance window: announced before `start`, down until `end`. */
const windowSchema = z.strictObject({
  start: instant,
  end: instant.nullable(),
  message: z.string().nullable(),
});

export const settingsSchema = z.strictObject({
  seed: z.int(),
  offset_ms: z.number(),
  window: windowSchema.nullable(),
  redirect_uris: z.array(z.string()),
  /** How many of the next chain writes fail. */
  fail_next: z.int().min(0),
  /** When background traffic acts next. */
  background_at: instant.nullable(),
  switches: switchesSchema,
});

export type Contract = z.output<typeof contractSchema>;
export type Work = z.output<typeof workSchema>;
export type Token = z.output<typeof tokenSchema>;
export type WalletStatus = z.output<typeof walletStatusSchema>;
export type Wallet = z.output<typeof walletSchema>;
export type Operator = z.output<typeof operatorSchema>;
export type Member = z.output<typeof memberSchema>;
export type Grant = z.output<typeof grantSchema>;
export type Effect = z.output<typeof effectSchema>;
export type Settings = z.output<typeof settingsSchema>;

/** A complete token without data; `fields` name what differs. */
export function newToken(
  { contract_id, creator_addr }: Contract,
  token_id: bigint,
  now: number,
  fields: Partial<Token>,
): Token {
  return {
    contract_id,
    token_id,
    owner: creator_addr,
    uri: '',
    metadata: '',
    extra: '',
    creator: creator_addr,
    created_at: now,
    owned_at: now,
    locked: false,
    status: STATUS.complete,
    last_tx_hash: '',
    exists: true,
    work: null,
    ...fields,
  };
}

/** The key of a token in the table of tokens. */
export function tokenKey(contractId: bigint, tokenId: bigint): string {
  return `${contractId}/${tokenId}`;
}
