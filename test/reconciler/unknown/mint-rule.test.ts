import { describe, expect, it } from 'vitest';
import {
  matchOf,
  mintEvidence,
  mintHashOf,
  type ScannedToken,
} from '../../../src/reconciler/unknown/mint-rule.ts';
import { addr, HASH_A, token, write } from '../builders.ts';

const MADE = '2026-01-01 00:00:05';
const requested = { toAddr: addr(1), tokenUri: 'ipfs://one', metaData: '{"a":1}', extraData: null };
const unknown = write('unknown', { kind: 'mint_sequential', contractId: 5n, ...requested });

/** The token that the mint would make, with changes. */
const scanned = (given: Partial<ScannedToken> = {}): ScannedToken => ({
  ...token({ metadata: '{"a":1}' }),
  tokenId: 7n,
  createdText: MADE,
  ownedText: MADE,
  claimed: false,
  knownBefore: false,
  hashFree: true,
  ownerExplained: false,
  dataExplained: false,
  ...given,
});
const moved = { owner: addr(2), ownedText: '2026-01-02 00:00:00' };

describe('How a token matches an unknown mint', () => {
  it.each([
    ['Equal fields', {}, 'equal'],
    ['Metadata written otherwise', { metadata: '{ "a": 1 }' }, 'equal'],
    ['Other metadata', { metadata: '{"a":2}' }, 'no'],
    ['Another URI', { uri: 'ipfs://two' }, 'no'],
    ['Another owner from the start', { owner: addr(2) }, 'no'],
    ['Another owner since', moved, 'possible'],
    ['Another owner by a known operation', { ...moved, ownerExplained: true }, 'equal'],
    ['Other data', { extraData: '{}' }, 'possible'],
    ['Other data by a known operation', { extraData: '{}', dataExplained: true }, 'equal'],
    ['Failed by the chain', { status: 3 }, 'equal'],
  ] as const)('%s', (_title, given, match) => {
    expect(matchOf(unknown, scanned(given))).toBe(match);
  });
});

describe('The finding of a complete scan about an unknown mint', () => {
  const twin = write('undecided', { kind: 'mint_sequential', contractId: 5n, ...requested });
  const cousin = write('unknown', { ...twin, toAddr: addr(3) });
  it.each([
    ['No token: not executed', [], [], false, 'not_executed'],
    ['One equal token: executed', [scanned()], [], false, 'executed'],
    ['Only other tokens: not executed', [scanned({ uri: 'x' })], [], false, 'not_executed'],
    [
      'One of another operation: not executed',
      [scanned({ claimed: true })],
      [],
      false,
      'not_executed',
    ],
    ['One from before: not executed', [scanned({ knownBefore: true })], [], false, 'not_executed'],
    [
      'One equal beside a claimed one: executed',
      [scanned(), scanned({ tokenId: 8n, claimed: true })],
      [],
      false,
      'executed',
    ],
    ['Two equal ones: unclear', [scanned(), scanned({ tokenId: 8n })], [], false, 'unclear'],
    [
      'One equal and one possible: unclear',
      [scanned(), scanned({ tokenId: 8n, ...moved })],
      [],
      false,
      'unclear',
    ],
    ['One possible: unclear', [scanned(moved)], [], false, 'unclear'],
    ['One equal beside an equal unknown mint: unclear', [scanned()], [twin], false, 'unclear'],
    [
      'One equal beside an unknown mint for another receiver: executed',
      [scanned()],
      [cousin],
      false,
      'executed',
    ],
    ['None beside an equal unknown mint: not executed', [], [twin], false, 'not_executed'],
    ['None, but one of unknown origin was burned: unclear', [], [], true, 'unclear'],
  ] as const)('%s', (_title, tokens, rivals, burned, outcome) => {
    expect(mintEvidence(unknown, tokens, rivals, burned).outcome).toBe(outcome);
  });

  it.each([
    ["The hash of an unchanged token is the mint's", {}, HASH_A],
    ['Under the hash of another operation it is not known', { hashFree: false }, null],
    ['After a transfer it is not known', { ...moved, ownerExplained: true }, null],
    ['After a data change it is not known', { extraData: '{}', dataExplained: true }, null],
  ] as const)('%s', (_title, given, hash) => {
    expect(mintHashOf(unknown, scanned(given))).toBe(hash);
  });
});

it('What is unclear of a mint says why, and names the tokens', () => {
  const twin = write('undecided', { kind: 'mint_sequential', contractId: 5n, ...requested });
  const [one, other] = [scanned(), scanned({ tokenId: 8n })];
  expect([
    mintEvidence(unknown, [], [], true),
    mintEvidence(unknown, [one, other], [], false),
    mintEvidence(unknown, [scanned(moved)], [], false),
    mintEvidence(unknown, [one], [twin], false),
  ]).toEqual([
    { outcome: 'unclear', why: 'a token of unknown origin was burned', candidates: [] },
    { outcome: 'unclear', why: 'several tokens may be its result', candidates: [one, other] },
    { outcome: 'unclear', why: 'one token may be its result', candidates: [scanned(moved)] },
    {
      outcome: 'unclear',
      why: 'another unknown mint may have made the token',
      candidates: [one],
    },
  ]);
  expect(mintEvidence(unknown, [one], [], false)).toEqual({ outcome: 'executed', token: one });
});

it('Without times of the service an owner may have changed, and a hash is not known', () => {
  const untimed = { createdText: '', ownedText: '' };
  expect(matchOf(unknown, scanned({ ...untimed, owner: addr(2) }))).toBe('possible');
  expect(matchOf(write('unknown', { ...unknown, tokenUri: null }), scanned({ uri: '' }))).toBe(
    'equal',
  );
  expect(mintHashOf(unknown, scanned({ ownedText: 'later' }))).toBeNull();
  expect(mintHashOf(unknown, scanned({ lastTxHash: '' }))).toBeNull();
});
