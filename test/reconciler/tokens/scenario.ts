/** One token of a test: writes on it and observations of it. */
import type { Instant } from '../../../src/kernel/clock.ts';
import type { Json } from '../../../src/kernel/json.ts';
import { freshAddr, type Rig } from '../rig.ts';

export const CONTRACT = 5n;
let tokens = 0n;
let hashes = 0;
export const freshHash = () => `0x${String(++hashes).padStart(64, '0')}`;

interface ReportedWrite {
  kind: 'mint' | 'transfer_from' | 'burn';
  fromAddr: string | null;
  toAddr: string | null;
  occurredAt: Instant;
}

function reportOf({
  kind,
  occurredAt,
  ...fields
}: ReportedWrite & { contractId: bigint; tokenId: bigint }) {
  const none = { operationNo: null, amount: null, feeAmount: null, reasonType: null };
  const text = { tokenUri: null, metaData: null, extraData: null };
  return {
    kind,
    occurredAt,
    fields: { ...none, ...text, ...fields },
    txAppNo: null,
    txLogNo: null,
    txHash: freshHash(),
    reference: null,
    operationId: null,
    distinct: true,
    body: '{}',
  };
}

export function tokenScenario(rig: Rig) {
  const tokenId = ++tokens;
  const [owner, other] = [freshAddr(), freshAddr()];
  const ref = { kind: 'token', contractId: CONTRACT, tokenId } as const;
  const first = freshHash();
  let record = {
    owner,
    creator: freshAddr(),
    uri: 'ipfs://one',
    metaData: '',
    extraData: '',
    status: 1,
    locked: false,
    lastTxHash: first,
    createdAtText: '2026-01-01 00:00:00',
    ownedAtText: '2026-01-01 00:00:00',
  };
  const preImage = () => ({ token: { ...record } }) as Json;
  const fields = { contractId: CONTRACT, tokenId };
  return {
    ref,
    owner,
    other,
    first,
    preImage,
    subject: `token:${CONTRACT}:${tokenId}`,
    /** Observes the token with these changes since the last observation. */
    async observe(change: Partial<typeof record> = {}, afterMs = 2_000) {
      record = { ...record, ...change };
      rig.clock.advance(afterMs);
      await rig.put(ref, 'seen', { contractId: CONTRACT, tokenId, ...record });
      await rig.process();
    },
    async observeAbsent(afterMs = 2_000) {
      rig.clock.advance(afterMs);
      await rig.put(ref, 'absent', null);
      await rig.process();
    },
    mint: (preImage: Json = null) =>
      rig.send('mint', { ...fields, toAddr: owner, tokenUri: 'ipfs://one' }, preImage),
    burn: (preImage: Json = null) => rig.send('burn', fields, preImage),
    transfer: (preImage: Json = null) =>
      rig.send('transfer_from', { ...fields, fromAddr: owner, toAddr: other }, preImage),
    setData: (extraData: string, preImage: Json = null) =>
      rig.send('set_extra_data', { ...fields, extraData }, preImage),
    dueInMs: () => rig.dueInMs(ref),
    /** Reports a write that did not pass through us. */
    report: (write: ReportedWrite) =>
      rig.reported.report([reportOf({ ...fields, ...write })], { owner: 'other', keyId: 'key_2' }),
  };
}
