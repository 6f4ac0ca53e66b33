/**
 * The limits of a key: kinds of write, operators, an amount per call and per day. A write whose
 * amount cannot be parsed exceeds every amount limit. Pure.
 */
import { z } from 'zod';
import { decimalText, parseWhole, sumOf } from '../kernel/amounts.ts';
import { Failure } from '../kernel/errors.ts';
import type { KeyLimits } from '../resources/admin/key.ts';
import { KINDS, type Kind, NFT_KINDS } from '../resources/operations/operation.ts';

const decimal = z
  .string()
  .refine(
    (text) => (parseWhole(text) ?? -1n) >= 0n,
    'must be a non-negative integer in decimal digits',
  );

/** The limits of a key as JSON, in `POST /api/keys` and in the database. */
export const keyLimitsSchema: z.ZodType<KeyLimits> = z.strictObject({
  kinds: z.array(z.enum(KINDS)).min(1).max(KINDS.length).optional(),
  operators: z.array(decimal).min(1).max(1_000).optional(),
  amount_per_call: decimal.optional(),
  amount_per_day: decimal.optional(),
});

/** The fields of a write that limits apply to; null: not parsed. */
export interface LimitedWrite {
  kind: Kind;
  operationNo: bigint | null;
  amount: bigint | null;
  feeAmount: bigint | null;
}

/** Parses stored limits. @throws Failure `internal` when they are invalid */
export function limitsOf(stored: unknown): KeyLimits | undefined {
  if (stored === null || stored === undefined) return undefined;
  const parsed = keyLimitsSchema.safeParse(stored);
  // Invalid limits must not become no limits.
  if (!parsed.success) throw new Failure('internal', 'the limits of a key cannot be parsed');
  return parsed.data;
}

export function dayLimitOf(limits: KeyLimits | undefined): bigint | undefined {
  return limits?.amount_per_day === undefined ? undefined : parseWhole(limits.amount_per_day);
}

/** @throws Failure `key_limit` with the name of the limit in `limit` */
export function checkLimits(limits: KeyLimits | undefined, write: LimitedWrite): void {
  if (!limits) return;
  const { kind, operationNo } = write;
  const { kinds, operators, amount_per_call: perCall, amount_per_day: perDay } = limits;
  if (kinds && !kinds.includes(kind)) throw exceeded('kinds', `the key does not allow ${kind}`);
  if (operators && (kind === 'give' || kind === 'other')) {
    if (operationNo === null || !operators.includes(decimalText(operationNo)))
      throw exceeded('operators', 'the key does not allow this operator');
  }
  if ((perCall === undefined && perDay === undefined) || NFT_KINDS.includes(kind)) return;
  const moved = movedBy(write);
  const named = perCall === undefined ? 'amount_per_day' : 'amount_per_call';
  if (moved === undefined) throw exceeded(named, 'the amount of this write cannot be parsed');
  for (const [limit, text] of [
    ['amount_per_call', perCall],
    ['amount_per_day', perDay],
  ] as const) {
    const max = text === undefined ? undefined : parseWhole(text);
    if (max !== undefined && moved > max) throw exceeded(limit, `the write exceeds ${max}`);
  }
}

/** Amount plus fee; undefined when either is unknown or negative. */
function movedBy({ kind, amount, feeAmount }: LimitedWrite): bigint | undefined {
  if (amount === null || amount < 0n || (feeAmount ?? 0n) < 0n) return undefined;
  // Only a give has no fee.
  if (feeAmount === null && kind !== 'give') return undefined;
  return sumOf([amount, feeAmount ?? 0n]);
}

function exceeded(limit: keyof KeyLimits, detail: string): Failure {
  return new Failure('key_limit', detail, { limit });
}
