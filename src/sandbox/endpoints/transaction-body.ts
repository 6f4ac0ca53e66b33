/**
 * The JSON body of give, deduct and transfer: parsed once, refused with the code of section 7.2.
 */
import { ADDRESS_LENGTH } from '../../kernel/addresses.ts';
import { wholeOf } from '../../kernel/amounts.ts';
import { type Json, tryParseJson } from '../../kernel/json.ts';
import { accountRefusal } from './refusals.ts';

export interface PaymentRequest {
  addr(field: string): string;
  amount: bigint;
  /** Zero where the endpoint has no fee. */
  fee: bigint;
  reasonType: string;
}

/**
 * Reads a body. A body that is no JSON object, or lacks a field, is 997; a field of the wrong
 * form is 399; amounts have codes of their own.
 * @throws Refusal 997, 399, 298, 299, 294
 */
export function readPayment(text: string, addresses: string[], hasFee: boolean): PaymentRequest {
  const body = objectOf(tryParseJson(text));
  const needed = [...addresses, 'amount', ...(hasFee ? ['feeAmount'] : []), 'reasonType'];
  for (const field of needed) {
    if (body.get(field) === undefined || body.get(field) === null) throw accountRefusal(997);
  }
  for (const field of addresses) {
    const addr = body.get(field);
    if (typeof addr !== 'string' || addr.length !== ADDRESS_LENGTH) throw accountRefusal(399);
  }
  const reasonType = body.get('reasonType');
  if (typeof reasonType !== 'string' || reasonType === '') throw accountRefusal(399);

  const amount = numberOf(body.get('amount'));
  if (amount === undefined) throw accountRefusal(298);
  if (amount <= 0n) throw accountRefusal(299);
  const fee = hasFee ? feeOf(body.get('feeAmount'), amount) : 0n;
  return { addr: (field) => String(body.get(field)), amount, fee, reasonType };
}

function objectOf(value: Json | undefined): Map<string, Json> {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw accountRefusal(997);
  }
  return new Map(Object.entries(value));
}

/** Only a JSON number is a number here: decimal text is not an integer. */
function numberOf(value: Json | undefined): bigint | undefined {
  return typeof value === 'string' ? undefined : wholeOf(value);
}

/** @throws Refusal 294 for a fraction, 399 for what is no fee at all */
function feeOf(value: Json | undefined, amount: bigint): bigint {
  const fee = numberOf(value);
  if (fee !== undefined && fee >= 0n) return fee;
  const decimals = /^(\d+)\.(\d+)$/.exec(String(value));
  if (typeof value !== 'number' || !decimals) throw accountRefusal(399);
  const [, whole = '', part = ''] = decimals;
  throw accountRefusal(294, { recvAmount: lessFraction(amount, whole + part, part.length) });
}

/** `amount` − `digits` / 10^`places`, exactly, as decimal text. */
function lessFraction(amount: bigint, digits: string, places: number): string {
  const rest = amount * 10n ** BigInt(places) - BigInt(digits);
  const text = (rest < 0n ? -rest : rest).toString().padStart(places + 1, '0');
  return `${rest < 0n ? '-' : ''}${text.slice(0, -places)}.${text.slice(-places)}`;
}
