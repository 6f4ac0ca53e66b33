/**
 * Identities and the form in which each is compared: addresses, hashes of transactions, owners of
 * keys. The first spelling is stored, shown and sent.
 *
 * Of addresses and hashes the interface documents only the length (section 1), so nothing else is
 * checked, no prefix either. Their case is ignored, in SQL by `lower`. All spellings of a name are
 * one owner, in SQL by `tallyhook.owner_key`. A key has the first spelling of its owner, so that
 * elsewhere stored owners are compared as they are.
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

/** The form in which an owner is compared: without case, outer spaces and forms of Unicode. */
export function ownerKey(owner: string): string {
  const spaced = owner.normalize('NFKC').replace(/\s+/gu, ' ').trim();
  // By way of upper case, which some letters share that have several lower ones. The sigma at the
  // end of a word is another letter, and libraries differ in where a word ends.
  return spaced.toUpperCase().toLowerCase().replaceAll('\u03c2', '\u03c3').normalize('NFKC');
}

export function sameOwner(a: string, b: string): boolean {
  return ownerKey(a) === ownerKey(b);
}

/** False for an empty name, and for one with invisible characters, which may imitate one. */
export function isOwner(text: string): boolean {
  const key = ownerKey(text);
  return key !== '' && !/[\p{C}\p{Default_Ignorable_Code_Point}]/u.test(key);
}
