/**
 * What a key may do at most: kinds of write, operators, an amount per call and per day. Pure. In
 * doubt it refuses: a write whose amount cannot be read passes no limit on amounts.
 */
import { z } from 'zod';
import { decimalText, parseWhole, sumOf } from '../kernel/amounts.ts';
import { Failure } from '../kernel/errors.ts';

/** The kinds of write, as the journal names them. */
export const LIMITED_KINDS = [
  'mint',
  'mint_sequential',
  'burn',
  'set_extra_data',
  'transfer_from',
  'give',
  'receive_from',
  'transfer',
  'other',
] as const;
export type LimitedKind = (typeof LIMITED_KINDS)[number];

/** Kinds that move no service tokens: a limit on amounts does not concern them. */
const WITHOUT_AMOUNT: readonly string[] = [
  'mint',
  'mint_sequential',
  'burn',
  'set_extra_data',
  'transfer_from',
];

const decimal = z
  .string()
  .refine((text) => (parseWhole(text) ?? -1n) >= 0n, 'must be a whole amount in decimal digits');

/** The limits of a key as JSON: what `POST /api/keys` takes and what is stored. */
export const keyLimitsSchema = z.strictObject({
  /** Only these kinds of write. */
  kinds: z.array(z.enum(LIMITED_KINDS)).min(1).max(LIMITED_KINDS.length).optional(),
  /** Gives only from these operator numbers. */
  operators: z.array(decimal).min(1).max(1_000).optional(),
  /** The most that one write may move, its fee included. */
  amount_per_call: decimal.optional(),
  /** The most that the key may move within any 24 hours. */
  amount_per_day: decimal.optional(),
});
export type KeyLimits = z.output<typeof keyLimitsSchema>;

/** What of a write the limits look at; null is what could not be read. */
export interface LimitedWrite {
  kind: string;
  operationNo: bigint | null;
  amount: bigint | null;
  feeAmount: bigint | null;
}

/** The limits in a stored value. @throws Failure `internal` for one that we never wrote */
export function limitsOf(stored: unknown): KeyLimits | undefined {
  if (stored === null || stored === undefined) return undefined;
  const read = keyLimitsSchema.safeParse(stored);
  // A limit that cannot be read must not turn into none.
  if (!read.success) throw new Failure('internal', 'the limits of a key cannot be read');
  return read.data;
}

/** The most that a key may move in any 24 hours; undefined: no such limit. */
export function dayLimitOf(limits: KeyLimits | undefined): bigint | undefined {
  return limits?.amount_per_day === undefined ? undefined : parseWhole(limits.amount_per_day);
}

/** @throws Failure `key_limit` naming the limit in `limit` */
export function insistOnLimits(limits: KeyLimits | undefined, write: LimitedWrite): void {
  if (!limits) return;
  const { kind, operationNo } = write;
  const { kinds, operators, amount_per_call: perCall, amount_per_day: perDay } = limits;
  if (kinds && !kinds.some((allowed) => allowed === kind))
    throw exceeded('kinds', `the key may not ask for ${kind}`);
  if (operators && (kind === 'give' || kind === 'other')) {
    if (operationNo === null || !operators.includes(decimalText(operationNo)))
      throw exceeded('operators', 'the key may not use this operator');
  }
  if ((perCall === undefined && perDay === undefined) || WITHOUT_AMOUNT.includes(kind)) return;
  const moved = movedBy(write);
  const named = perCall === undefined ? 'amount_per_day' : 'amount_per_call';
  if (moved === undefined) throw exceeded(named, 'the amount of this write cannot be read');
  for (const [limit, text] of [
    ['amount_per_call', perCall],
    ['amount_per_day', perDay],
  ] as const) {
    const most = text === undefined ? undefined : parseWhole(text);
    if (most !== undefined && moved > most) throw exceeded(limit, `more than ${most} in one write`);
  }
}

/** Amount and fee together; a negative one would hide another. */
function movedBy({ kind, amount, feeAmount }: LimitedWrite): bigint | undefined {
  if (amount === null || amount < 0n || (feeAmount ?? 0n) < 0n) return undefined;
  // Only a give has no fee of its own.
  if (feeAmount === null && kind !== 'give') return undefined;
  return sumOf([amount, feeAmount ?? 0n]);
}

function exceeded(limit: keyof KeyLimits, detail: string): Failure {
  return new Failure('key_limit', detail, { limit });
}
