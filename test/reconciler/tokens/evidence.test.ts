import { describe, expect, it } from 'vitest';
import type { Kind } from '../../../src/operations/operations.ts';
import {
  type HashChange,
  hashChange,
  type ObservedToken,
  tokenEvidence,
} from '../../../src/reconciler/tokens/evidence.ts';
import { addr, HASH_A, HASH_B, token, write } from '../builders.ts';

const image = { token: { lastTxHash: HASH_A, status: 1, owner: addr(2), extraData: '' } };
/** A pre-image without owner and extra data. */
const bare = { token: { lastTxHash: HASH_A, status: 1 } };
const failed = { token: { lastTxHash: HASH_A, status: 3 } };
const requested = { toAddr: addr(1), tokenUri: 'ipfs://one', extraData: '{}' };
const same = token();
const there = token({ lastTxHash: HASH_B });
const changed = token({ lastTxHash: HASH_B, extraData: '{}' });

type Row = readonly [
  title: string,
  preImage: typeof image | typeof bare | null,
  observed: ObservedToken | 'absent',
  change: HashChange,
  existed: boolean,
  outcome: 'executed' | 'not_executed' | undefined,
];

const MINTS: Row[] = [
  ['no token', null, 'absent', 'new', false, 'not_executed'],
  ['the token', null, there, 'new', false, 'executed'],
  ['a token of another URI', null, { ...there, uri: 'x' }, 'new', false, undefined],
  ['a token of another owner', null, { ...there, owner: addr(3) }, 'new', false, undefined],
  ['the token under a later known hash', null, there, 'other', false, 'executed'],
  ['an unchanged token from before', image, same, 'none', true, 'not_executed'],
  ['a changed token from before', image, there, 'new', true, undefined],
  ['the token on the number of a failed mint', failed, there, 'new', true, 'executed'],
];

const BURNS: Row[] = [
  ['no token, and one before', image, 'absent', 'new', true, 'executed'],
  ['no token, and none before', null, 'absent', 'new', false, undefined],
  ['the old hash', image, same, 'none', true, 'not_executed'],
  ['a new hash', image, there, 'new', true, undefined],
];

const TRANSFERS: Row[] = [
  ['no token', image, 'absent', 'new', true, undefined],
  ['the new owner under a new hash', image, there, 'new', true, 'executed'],
  ['the new owner under another known hash', image, there, 'other', true, 'executed'],
  ['the new owner, the old one not known', bare, there, 'new', true, undefined],
  ['the new owner, never observed before', null, there, 'new', true, undefined],
  ['the old hash', image, same, 'none', true, 'not_executed'],
];

const DATA_CHANGES: Row[] = [
  ['the data under a new hash', image, changed, 'new', true, 'executed'],
  ['the data, the old one not known', bare, changed, 'new', true, undefined],
  ['other data under a new hash', image, there, 'new', true, undefined],
  ['the data, never observed before', null, changed, 'new', false, undefined],
];

describe('The finding about an unknown write on a token', () => {
  const rows = (kind: Kind, table: Row[]) => table.map((row) => [kind, ...row] as const);
  it.each([
    ...rows('mint', MINTS),
    ...rows('burn', BURNS),
    ...rows('transfer_from', TRANSFERS),
    ...rows('set_extra_data', DATA_CHANGES),
  ])('Of a %s that shows %s', (kind, _title, preImage, observed, change, existed, outcome) => {
    const unknown = write('unknown', { kind, ...requested, preImage });
    const around = { change, existed, others: [], alone: true };
    expect(tokenEvidence(unknown, observed, around)?.outcome).toBe(outcome);
  });

  it.each([
    ['The hash of the pre-image is no change', HASH_A, [], 'none'],
    ['The hash of the pre-image in other letters is no change', HASH_A.toUpperCase(), [], 'none'],
    [
      'The hash of a later operation in other letters is its',
      HASH_B.toUpperCase(),
      [1_500],
      'other',
    ],
    ['A hash of no known operation is new', HASH_B, [], 'new'],
    ['The hash of an earlier known operation is no change', HASH_B, [500], 'none'],
    ['The hash of a later known operation is of another', HASH_B, [1_500], 'other'],
    ['An empty hash is new', null, [], 'new'],
  ] as const)('%s', (_title, hash, answers, change) => {
    const unknown = write('unknown', { sent: 1_000, preImage: image });
    const others = answers.map((answered) =>
      write('accepted', { sent: 0, answered, txHash: HASH_B }),
    );
    expect(hashChange(unknown, hash, others)).toBe(change);
  });
});
