import { describe, expect, it } from 'vitest';
import {
  matchOf,
  mintEvidence,
  mintHashOf,
  type ScannedToken,
} from '../../../src/reconciler/unknown/mint-rule.ts';
import { addr, HASH_A, token, write } from '../builders.ts';

const MADE = '2026-01-01 00:00:05';
const asked = { toAddr: addr(1), tokenUri: 'ipfs://one', metaData: '{"a":1}', extraData: null };
const lost = write('unknown', { kind: 'mint_sequential', contractId: 5n, ...asked });

/** A token as the lost mint would have made it, changed as named. */
const scanned = (given: Partial<ScannedToken> = {}): ScannedToken => ({
  ...token({ metadata: '{"a":1}' }),
  ...{ tokenId: 7n, createdText: MADE, ownedText: MADE, claimed: false, knownBefore: false },
  ...{ hashFree: true, ownerExplained: false, dataExplained: false },
  ...given,
});
const moved = { owner: addr(2), ownedText: '2026-01-02 00:00:00' };

describe('How a token stands to a lost mint', () => {
  it.each([
    ['As asked', {}, 'equal'],
    ['Metadata written otherwise', { metadata: '{ "a": 1 }' }, 'equal'],
    ['Other metadata', { metadata: '{"a":2}' }, 'no'],
    ['Another URI', { uri: 'ipfs://two' }, 'no'],
    ['Another owner from the start', { owner: addr(2) }, 'no'],
    ['Another owner since', moved, 'possible'],
    ['Another owner by a write of ours', { ...moved, ownerExplained: true }, 'equal'],
    ['Other data', { extraData: '{}' }, 'possible'],
    ['Other data by a write of ours', { extraData: '{}', dataExplained: true }, 'equal'],
    ['Failed by the chain', { status: 3 }, 'equal'],
  ] as const)('%s', (_title, given, match) => {
    expect(matchOf(lost, scanned(given))).toBe(match);
  });
});

describe('What a complete sweep says of a lost mint', () => {
  const twin = write('undecided', { kind: 'mint_sequential', contractId: 5n, ...asked });
  const cousin = write('unknown', { ...twin, toAddr: addr(3) });
  it.each([
    ['No token: not executed', [], [], false, 'not_executed'],
    ['One as asked: executed', [scanned()], [], false, 'executed'],
    ['Only tokens of others: not executed', [scanned({ uri: 'x' })], [], false, 'not_executed'],
    [
      'One that another write made: not executed',
      [scanned({ claimed: true })],
      [],
      false,
      'not_executed',
    ],
    [
      'One that was there before: not executed',
      [scanned({ knownBefore: true })],
      [],
      false,
      'not_executed',
    ],
    [
      'One of its own beside a claimed one: executed',
      [scanned(), scanned({ tokenId: 8n, claimed: true })],
      [],
      false,
      'executed',
    ],
    ['Two as asked: people', [scanned(), scanned({ tokenId: 8n })], [], false, 'unclear'],
    [
      'One as asked and one that may be: people',
      [scanned(), scanned({ tokenId: 8n, ...moved })],
      [],
      false,
      'unclear',
    ],
    ['One that only may be: people', [scanned(moved)], [], false, 'unclear'],
    ['One as asked beside an equal lost mint: people', [scanned()], [twin], false, 'unclear'],
    [
      'One as asked beside a lost mint for somebody else: executed',
      [scanned()],
      [cousin],
      false,
      'executed',
    ],
    ['None beside an equal lost mint: not executed', [], [twin], false, 'not_executed'],
    ['None, but one of unknown origin was burned: people', [], [], true, 'unclear'],
  ] as const)('%s', (_title, tokens, rivals, burned, outcome) => {
    expect(mintEvidence(lost, tokens, rivals, burned).outcome).toBe(outcome);
  });

  it.each([
    ['The hash of an untouched token is its own', {}, HASH_A],
    ['One under the hash of another write has none', { hashFree: false }, null],
    ['One that moved has none', { ...moved, ownerExplained: true }, null],
    ['One whose data changed has none', { extraData: '{}', dataExplained: true }, null],
  ] as const)('%s', (_title, given, hash) => {
    expect(mintHashOf(lost, scanned(given))).toBe(hash);
  });
});
