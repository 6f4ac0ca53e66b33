/** One token of a test: writes on it and observations of it. */
import type { Json } from '../../../src/kernel/json.ts';
import type { Report, WriteFields } from '../../../src/operations/operations.ts';
import { reportOf } from '../../ledger/builders.ts';
import { freshAddr, type Rig } from '../rig.ts';

export const CONTRACT = 5n;
let tokens = 0n;
let hashes = 0;
export const freshHash = () => `0x${String(++hashes).padStart(64, '0')}`;

type ReportedWrite = Pick<Report, 'kind' | 'occurredAt'> &
  Required<Pick<WriteFields, 'fromAddr' | 'toAddr'>>;

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
    report({ kind, occurredAt, ...parties }: ReportedWrite) {
      const about = { kind, occurredAt, txHash: freshHash() };
      const report = reportOf({ ...about, fields: { ...fields, ...parties } });
      return rig.reported.report([report], { owner: 'other', keyId: 'key_2' });
    },
  };
}
