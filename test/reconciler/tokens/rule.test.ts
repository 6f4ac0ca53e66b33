import { describe, expect, it } from 'vitest';
import { changesOf, hasEffect, isMoving } from '../../../src/reconciler/tokens/rule.ts';
import { addr, HASH_B, token, write } from '../builders.ts';

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

describe('Whether a token shows the effect of an operation', () => {
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
