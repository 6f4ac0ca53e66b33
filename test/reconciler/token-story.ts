/** The life of one token in a test: what is done to it, and what looks see of it. */
import type { Json } from '../../src/kernel/json.ts';
import { freshAddr, type House } from './house.ts';

export const CONTRACT = 5n;
let tokens = 0n;
let hashes = 0;
export const freshHash = () => `0x${String(++hashes).padStart(64, '0')}`;

/** One token of its own, with what is done to it and seen of it. */
export function storyIn(house: House) {
  const tokenId = ++tokens;
  const [owner, other] = [freshAddr(), freshAddr()];
  const ref = { kind: 'token', contractId: CONTRACT, tokenId } as const;
  const first = freshHash();
  let record = {
    ...{ owner, creator: freshAddr(), uri: 'ipfs://one', metaData: '', extraData: '' },
    ...{ status: 1, locked: false, lastTxHash: first },
    ...{ createdAtText: '2026-01-01 00:00:00', ownedAtText: '2026-01-01 00:00:00' },
  };
  const image = () => ({ token: { ...record } }) as Json;
  const fields = { contractId: CONTRACT, tokenId };
  return {
    ...{ ref, owner, other, first, image },
    subject: `token:${CONTRACT}:${tokenId}`,
    /** A look that sees it, changed as named from how it was seen last. */
    async sees(change: Partial<typeof record> = {}, afterMs = 2_000) {
      record = { ...record, ...change };
      house.clock.advance(afterMs);
      await house.put(ref, 'seen', { contractId: CONTRACT, tokenId, ...record });
      await house.judge();
    },
    async misses(afterMs = 2_000) {
      house.clock.advance(afterMs);
      await house.put(ref, 'absent', null);
      await house.judge();
    },
    mint: (preImage: Json = null) =>
      house.send('mint', { ...fields, toAddr: owner, tokenUri: 'ipfs://one' }, preImage),
    burn: (preImage: Json = null) => house.send('burn', fields, preImage),
    transfer: (preImage: Json = null) =>
      house.send('transfer_from', { ...fields, fromAddr: owner, toAddr: other }, preImage),
    setData: (extraData: string, preImage: Json = null) =>
      house.send('set_extra_data', { ...fields, extraData }, preImage),
    dueInMs: () => house.dueInMs(ref),
  };
}
