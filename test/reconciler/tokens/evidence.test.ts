import { describe, expect, it } from 'vitest';
import { hashChange, tokenEvidence } from '../../../src/reconciler/tokens/evidence.ts';
import { addr, HASH_A, HASH_B, token, write } from '../builders.ts';

describe('What a token says about a lost write', () => {
  const preImage = { token: { lastTxHash: HASH_A, status: 1, owner: addr(2), extraData: '' } };
  const bareImage = { token: { lastTxHash: HASH_A, status: 1 } };
  const failedImage = { token: { lastTxHash: HASH_A, status: 3 } };
  const asked = { toAddr: addr(1), tokenUri: 'ipfs://one', extraData: '{}' };
  const there = token({ lastTxHash: HASH_B });
  const changed = token({ lastTxHash: HASH_B, extraData: '{}' });
  it.each([
    ['No token: a mint was not executed', 'mint', null, 'absent', 'new', false, 'not_executed'],
    [
      'No token where one was: a burn was executed',
      'burn',
      preImage,
      'absent',
      'new',
      true,
      'executed',
    ],
    [
      'No token where none was ever seen: a burn is open',
      'burn',
      null,
      'absent',
      'new',
      false,
      undefined,
    ],
    ['No token: a transfer is open', 'transfer_from', preImage, 'absent', 'new', true, undefined],
    ['A token as asked: a mint was executed', 'mint', null, there, 'new', false, 'executed'],
    [
      'A token of another URI: a mint is open',
      'mint',
      null,
      { ...there, uri: 'x' },
      'new',
      false,
      undefined,
    ],
    [
      'A token of another owner: a mint is open',
      'mint',
      null,
      { ...there, owner: addr(3) },
      'new',
      false,
      undefined,
    ],
    [
      'A token as asked under a later hash of ours: a mint was executed',
      'mint',
      null,
      there,
      'other',
      false,
      'executed',
    ],
    [
      'A token that was there before: a mint was not executed',
      'mint',
      preImage,
      token(),
      'none',
      true,
      'not_executed',
    ],
    [
      'A token that was there and changed: a mint is open',
      'mint',
      preImage,
      there,
      'new',
      true,
      undefined,
    ],
    [
      'A number that a failed mint had left: a mint was executed',
      'mint',
      failedImage,
      there,
      'new',
      true,
      'executed',
    ],
    [
      'The new owner under a new hash: a transfer was executed',
      'transfer_from',
      preImage,
      there,
      'new',
      true,
      'executed',
    ],
    [
      'The new owner under our other hash: a transfer was executed',
      'transfer_from',
      preImage,
      there,
      'other',
      true,
      'executed',
    ],
    [
      'The new owner of a token whose owner was not known before: a transfer is open',
      'transfer_from',
      bareImage,
      there,
      'new',
      true,
      undefined,
    ],
    [
      'The new owner of a token that was never seen before: a transfer is open',
      'transfer_from',
      null,
      there,
      'new',
      true,
      undefined,
    ],
    [
      'The old hash: a transfer was not executed',
      'transfer_from',
      preImage,
      token(),
      'none',
      true,
      'not_executed',
    ],
    [
      'The old hash: a burn was not executed',
      'burn',
      preImage,
      token(),
      'none',
      true,
      'not_executed',
    ],
    ['A new hash: a burn is open', 'burn', preImage, there, 'new', true, undefined],
    [
      'The data under a new hash: a data change was executed',
      'set_extra_data',
      preImage,
      changed,
      'new',
      true,
      'executed',
    ],
    [
      'The data of a token whose data was not known before: a data change is open',
      'set_extra_data',
      bareImage,
      changed,
      'new',
      true,
      undefined,
    ],
    [
      'Other data under a new hash: a data change is open',
      'set_extra_data',
      preImage,
      there,
      'new',
      true,
      undefined,
    ],
    [
      'The data of a token never seen before: a data change is open',
      'set_extra_data',
      null,
      changed,
      'new',
      false,
      undefined,
    ],
  ] as const)('%s', (_title, kind, preImage, seen, change, existed, outcome) => {
    const lost = write('unknown', { kind, ...asked, preImage });
    const around = { change, existed, others: [], alone: true };
    expect(tokenEvidence(lost, seen, around)?.outcome).toBe(outcome);
  });

  it.each([
    ['The hash from before is no change', HASH_A, [], 'none'],
    ['A hash that nobody claims is new', HASH_B, [], 'new'],
    ['The hash of a write of ours from before is no change', HASH_B, [500], 'none'],
    ['The hash of a write of ours from after is of another', HASH_B, [1_500], 'other'],
    ['An empty hash is new', null, [], 'new'],
  ] as const)('%s', (_title, hash, answers, change) => {
    const lost = write('unknown', { sent: 1_000, preImage: preImage });
    const others = answers.map((answered) =>
      write('accepted', { sent: 0, answered, txHash: HASH_B }),
    );
    expect(hashChange(lost, hash, others)).toBe(change);
  });
});
