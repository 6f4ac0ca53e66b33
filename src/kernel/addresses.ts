/**
 * Wallet addresses of the service: exactly 42 characters (interface, section 1). Nothing else is
 * shown, so nothing else is assumed; identity ignores case, the first spelling is kept and sent.
 */

export const ADDRESS_LENGTH = 42;
export const TX_HASH_LENGTH = 66;

/** True for a text of exactly 42 printable characters without spaces. */
export function isAddress(text: string): boolean {
  return text.length === ADDRESS_LENGTH && /^[\x21-\x7e]+$/.test(text);
}

/** True for a text of exactly 66 printable characters without spaces. */
export function isTxHash(text: string): boolean {
  return text.length === TX_HASH_LENGTH && /^[\x21-\x7e]+$/.test(text);
}

/** What two spellings of one address share: the key under which it is stored and compared. */
export function addressKey(addr: string): string {
  return addr.toLowerCase();
}
