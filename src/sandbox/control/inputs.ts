/** Schemas of the request bodies of the control surface. */
import { z } from 'zod';
import { ADDRESS_LENGTH } from '../../kernel/addresses.ts';
import { walletStatusSchema } from '../state/records.ts';
import { switchPatchSchema, whole } from '../state/switches.ts';

const text = z.string().max(10_000);
const duration = z.int().min(0).max(1e12);
const address = z.string().length(ADDRESS_LENGTH);

export const walletChangeSchema = z.strictObject({
  /** The new balance. */
  amt_token: whole.optional(),
  /** Added to the balance; may be negative. */
  delta: whole.optional(),
  status: walletStatusSchema.optional(),
});

export const tokenChangeSchema = z.strictObject({
  owner: address.optional(),
  extra: text.optional(),
  uri: text.optional(),
  metadata: text.optional(),
  locked: z.boolean().optional(),
  status: z.union([z.literal(0), z.literal(1), z.literal(2), z.literal(3)]).optional(),
  last_tx_hash: z.string().length(66).optional(),
});

export const failNextSchema = z.strictObject({ count: z.int().min(0).max(1e6).default(1) });

const lasting = { duration_ms: duration.optional(), message: text.optional() };
export const maintenanceSchema = z.discriminatedUnion('state', [
  z.strictObject({ state: z.literal('off') }),
  z.strictObject({ state: z.literal('on'), ...lasting }),
  z.strictObject({ state: z.literal('announced'), start_in_ms: duration, ...lasting }),
]);

export const clockSchema = z.union([
  z.strictObject({ advance_ms: duration }),
  z.strictObject({ now: z.iso.datetime({ offset: true }) }),
]);

export const resetSchema = z.strictObject({
  seed: z.int().min(0).max(0xffffffff).optional(),
  switches: switchPatchSchema.optional(),
});

export const memberSchema = z.strictObject({
  nickname: z.string().min(1).max(100),
  /** Without it, the member's first own read creates a wallet. */
  addr: address.optional(),
});

export const redirectSchema = z.strictObject({ uri: z.url().max(2000) });

export type WalletChange = z.output<typeof walletChangeSchema>;
export type TokenChange = z.output<typeof tokenChangeSchema>;
export type MaintenanceChange = z.output<typeof maintenanceSchema>;
export type ClockMove = z.output<typeof clockSchema>;
export type ResetInput = z.output<typeof resetSchema>;
export type MemberInput = z.output<typeof memberSchema>;
