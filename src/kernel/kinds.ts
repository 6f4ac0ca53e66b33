/** The kinds of write that the service has. */

const NFT = ['mint', 'mint_sequential', 'burn', 'set_extra_data', 'transfer_from'] as const;
const TOKEN = ['give', 'receive_from', 'transfer'] as const;

/** `other` is a write on a path that the interface does not document. */
export const KINDS = [...NFT, ...TOKEN, 'other'] as const;
export type Kind = (typeof KINDS)[number];

/** Writes of NFTs, which the chain confirms. */
export const NFT_KINDS: readonly Kind[] = NFT;
/** Writes of service tokens, which change balances. */
export const TOKEN_KINDS: readonly Kind[] = TOKEN;
