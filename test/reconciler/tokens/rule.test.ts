import { describe, expect, it } from 'vitest';
import {
  changesOf,
  endingOf,
  hasEffect,
  isMoving,
  takerOf,
} from '../../../src/reconciler/tokens/rule.ts';
import { addr, at, HASH_A, HASH_B, token, write } from '../builders.ts';

describe('The events of a token', () => {
  it.each([
    ['A first observation without a known mint emits nothing', undefined, token(), false, []],
    [
      'A first observation after a mint emits token.minted',
      undefined,
      token(),
      true,
      ['token.minted'],
    ],
    ['An equal state emits nothing', token(), token(), true, []],
    ['Another hash alone emits nothing', token(), token({ lastTxHash: HASH_B }), false, []],
    [
      'Another spelling of the owner emits nothing',
      token(),
      token({ owner: addr(1).toUpperCase() }),
      false,
      [],
    ],
    ['Another status is an event', token({ status: 0 }), token(), false, ['token.status_changed']],
    ['Another owner is an event', token(), token({ owner: addr(2) }), false, ['token.transferred']],
    ['A lock is an event', token(), token({ locked: 1 }), false, ['token.locked']],
    ['The end of a lock is an event', token({ locked: 1 }), token(), false, ['token.unlocked']],
    [
      'Other data is an event',
      token(),
      token({ extraData: '{}' }),
      false,
      ['token.extra_data_changed'],
    ],
    [
      'Several changes are separate events',
      token({ status: 2 }),
      token({ owner: addr(2), locked: 1, extraData: '{}' }),
      false,
      ['token.status_changed', 'token.transferred', 'token.locked', 'token.extra_data_changed'],
    ],
  ] as const)('%s', (_title, before, now, minted, events) => {
    expect(changesOf(before, now, minted)).toEqual(events);
  });

  it.each([
    [0, true],
    [2, true],
    [1, false],
    [3, false],
  ])('Status %i is being processed by the chain: %s', (status, moving) => {
    expect(isMoving(token({ status }))).toBe(moving);
  });
});

describe('How a token ends an operation (accepted at 1,000 under hash A, read lag 1,000)', () => {
  const accepted = { sent: 900, answered: 1_000, txHash: HASH_A, toAddr: addr(2) };
  const late = { startedAt: at(3_000), readLagMs: 1_000, sameToken: true };
  const early = { ...late, startedAt: at(1_500) };
  const moved = token({ owner: addr(2), lastTxHash: HASH_B });
  it.each([
    ['Its hash complete settles it', 'transfer_from', token(), early, 'settled'],
    ['Its hash failed fails it', 'transfer_from', token({ status: 3 }), early, 'failed'],
    ['Its hash pending leaves it', 'transfer_from', token({ status: 0 }), late, undefined],
    ['Its hash in progress leaves it', 'mint', token({ status: 2 }), late, undefined],
    ['A later hash with its effect settles it', 'transfer_from', moved, late, 'settled'],
    [
      'Another hash right after the answer may be an older one',
      'transfer_from',
      moved,
      early,
      undefined,
    ],
    [
      'A later hash without its effect leaves it',
      'transfer_from',
      token({ lastTxHash: HASH_B }),
      late,
      undefined,
    ],
    [
      'A later hash that is not complete leaves it',
      'transfer_from',
      { ...moved, status: 2 },
      late,
      undefined,
    ],
    ['A mint is settled by a later hash', 'mint', moved, late, 'settled'],
    ['Absence settles a burn', 'burn', 'absent', late, 'settled'],
    ['Absence right after its answer does not settle a burn', 'burn', 'absent', early, undefined],
    ['Absence does not fail a mint', 'mint', 'absent', late, undefined],
    ['Absence does not end a transfer', 'transfer_from', 'absent', late, undefined],
    ['A burn whose chain failed is failed', 'burn', token({ status: 3 }), late, 'failed'],
    [
      'A token that outlived a burn under a later hash fails it',
      'burn',
      token({ lastTxHash: HASH_B }),
      late,
      'failed',
    ],
    [
      'A token made again under the number does not fail a burn',
      'burn',
      token({ lastTxHash: HASH_B }),
      { ...late, sameToken: false },
      undefined,
    ],
  ] as const)('%s', (_title, kind, seen, observed, to) => {
    expect(endingOf(write('accepted', { ...accepted, kind }), seen, observed)?.to).toBe(to);
  });

  it('One found executed without a hash settles by its effect', () => {
    const found = write('executed', { kind: 'transfer_from', toAddr: addr(2), effectiveAt: at(0) });
    expect(endingOf(found, moved, late)?.to).toBe('settled');
    expect(endingOf(found, token(), late)).toBeUndefined();
  });

  it.each([
    ['A token shows its mint', 'mint', {}, true],
    ['A token shows a transfer to its owner', 'transfer_from', { toAddr: addr(1) }, true],
    ['A token does not show a transfer to another', 'transfer_from', { toAddr: addr(2) }, false],
    ['A token shows the data that was asked for', 'set_extra_data', { extraData: '' }, true],
    ['A token does not show other data', 'set_extra_data', { extraData: '{}' }, false],
    ['A token that is there does not show a burn', 'burn', {}, false],
  ] as const)('%s', (_title, kind, given, shows) => {
    expect(hasEffect(write('accepted', { kind, ...given }), token())).toBe(shows);
  });
});

describe('Which of several burns removed an absent token', () => {
  const older = write('accepted', { kind: 'burn', sent: 0, answered: 100, txHash: HASH_A });
  const newer = write('accepted', { kind: 'burn', sent: 200, answered: 300, txHash: HASH_B });
  it.each([
    ['The one with the last observed hash', HASH_A, [newer, older], older],
    ['The newest if none has the last observed hash', 'other', [older, newer], newer],
    ['The only one', null, [older], older],
    ['None when there is none', null, [], undefined],
  ] as const)('%s', (_title, hash, burns, taker) => {
    expect(takerOf(burns, hash)).toBe(taker);
  });
});
