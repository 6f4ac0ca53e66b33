/**
 * Wallet addresses and transaction hashes of the service (interface, section 1). The interface
 * documents only their length, so nothing else is checked, no prefix either. Their case is ignored
 * when they are compared, in SQL by `lower`; the first spelling is stored, shown and sent.
 */

export const ADDRESS_LENGTH = 42;
const TX_HASH_LENGTH = 66;

/** True for exactly 42 printable ASCII characters without spaces. */
export function isAddress(text: string): boolean {
  return text.length === ADDRESS_LENGTH && /^[\x21-\x7e]+$/.test(text);
}

/** True for exactly 66 printable ASCII characters without spaces. */
export function isTxHash(text: string): boolean {
  return text.length === TX_HASH_LENGTH && /^[\x21-\x7e]+$/.test(text);
}

/** The form in which an address is compared, also an account name that ends with one. */
export function addressKey(addr: string): string {
  return addr.toLowerCase();
}

/** Whether two addresses are one; null is only the same as null. */
export function sameAddress(a: string | null, b: string | null): boolean {
  return a === b || (a !== null && b !== null && addressKey(a) === addressKey(b));
}

/** The form in which a transaction hash is compared. */
export function txHashKey(hash: string): string {
  return hash.toLowerCase();
}

/** Whether both hashes are known and one. */
export function sameTxHash(a: string | null | undefined, b: string | null | undefined): boolean {
  return a != null && b != null && txHashKey(a) === txHashKey(b);
}
