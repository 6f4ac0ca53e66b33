import { describe, expect, it } from 'vitest';
import type { Operation, State } from '../../../src/operations/operations.ts';
import {
  causeOf,
  changesOf,
  hasEffect,
  isAtWork,
  isMoving,
  isRequired,
  shows,
  type TokenEvent,
  tokenStateOf,
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

describe('Whether a token shows the effect of an operation', () => {
  it.each([
    ['A token shows its mint', 'mint', {}, true],
    ['A token shows its mint in sequence', 'mint_sequential', {}, true],
    ['A token shows a transfer to its owner', 'transfer_from', { toAddr: addr(1) }, true],
    ['A token does not show a transfer to another', 'transfer_from', { toAddr: addr(2) }, false],
    ['A token shows the data that was asked for', 'set_extra_data', { extraData: '' }, true],
    ['A token does not show other data', 'set_extra_data', { extraData: '{}' }, false],
    ['A token that is there does not show a burn', 'burn', {}, false],
  ] as const)('%s', (_title, kind, given, shows) => {
    expect(hasEffect(write('accepted', { kind, ...given }), token())).toBe(shows);
  });
});

describe('The token in the record of an observation', () => {
  it('Its fields are read, and missing texts are empty', () => {
    const record = {
      owner: 'o',
      creator: 'c',
      uri: 'u',
      metaData: 'm',
      extraData: 'e',
      status: '2',
      locked: true,
      lastTxHash: 'h',
      createdAtText: 't1',
      ownedAtText: 't2',
    };
    expect(tokenStateOf(record)).toEqual({
      owner: 'o',
      creator: 'c',
      uri: 'u',
      metadata: 'm',
      extraData: 'e',
      status: 2,
      locked: 1,
      lastTxHash: 'h',
      createdText: 't1',
      ownedText: 't2',
    });
    expect(tokenStateOf({ status: 1, owner: 7 })).toEqual({
      owner: '',
      creator: '',
      uri: '',
      metadata: '',
      extraData: '',
      status: 1,
      locked: 0,
      lastTxHash: '',
      createdText: '',
      ownedText: '',
    });
    expect(() => tokenStateOf({})).toThrow('status of an observation');
  });
});

describe('What an observation that started at 3,000 includes (read lag 1,000)', () => {
  const observed = { startedAt: at(3_000), readLagMs: 1_000 };
  it.each([
    ['took effect before', { effectiveAt: at(1_999) }, true],
    ['took effect at the last instant', { effectiveAt: at(2_000) }, false],
    ['took effect later than its answer', { effectiveAt: at(2_500), answered: 1_000 }, false],
    ['was answered before', { answered: 1_500 }, true],
    ['was recorded before, and not answered', { sent: 1_500 }, true],
  ])('An executed write that %s: %s', (_when, given, required) => {
    expect(isRequired(write('executed', given), observed)).toBe(required);
  });

  it.each<[string, State, Partial<Operation>, boolean]>([
    ['is being sent', 'sending', {}, true],
    ['is unknown', 'unknown', {}, true],
    ['is undecided', 'undecided', {}, true],
    ['waits to be sent', 'queued', {}, false],
    ['was not executed', 'not_executed', {}, false],
    ['was accepted lately', 'accepted', { effectiveAt: at(2_500) }, true],
    ['was accepted before', 'accepted', { effectiveAt: at(1_000) }, false],
    ['settled lately', 'settled', { effectiveAt: at(2_500), settledAt: at(2_600) }, false],
    ['changes data', 'unknown', { kind: 'set_extra_data' }, false],
  ])('A write that %s is at work: %s', (_title, state, given, atWork) => {
    const transfer = write(state, { kind: 'transfer_from', ...given });
    expect(isAtWork(transfer, observed)).toBe(atWork);
  });
});

describe('Which write caused a change of a token', () => {
  const owner = { kind: 'transfer_from', toAddr: addr(1) } as const;
  const first = write('accepted', { ...owner, id: 'first' });
  const second = write('accepted', { ...owner, id: 'second' });
  const hashed = write('accepted', { ...owner, id: 'hashed', txHash: HASH_A });
  const elsewhere = write('accepted', { ...owner, id: 'elsewhere', toAddr: addr(2) });
  const burn = write('accepted', { kind: 'burn', id: 'burn' });
  const shown = write('accepted', { kind: 'set_extra_data', id: 'shown', txHash: HASH_A });
  const settled = write('settled', { ...owner, id: 'settled', settledAt: at(500) });
  const failed = write('not_executed', { ...owner, id: 'failed' });
  const mints = (['mint', 'mint_sequential'] as const).map((kind) =>
    write('accepted', { kind, id: kind }),
  );
  const data = write('accepted', { kind: 'set_extra_data', id: 'data', extraData: '' });
  it.each<[string, TokenEvent, Operation[], string | undefined]>([
    ['the one that is able to', 'token.transferred', [elsewhere, burn, first], 'first'],
    ['nobody who is not able to', 'token.transferred', [elsewhere, burn, data], undefined],
    ['one of several', 'token.transferred', [first, second], 'unknown'],
    ['of several the one with its hash', 'token.transferred', [first, hashed], 'hashed'],
    ['not another one with its hash', 'token.transferred', [shown, first], 'first'],
    ['nobody who was not executed', 'token.transferred', [failed], undefined],
    ['nobody who had settled before', 'token.transferred', [settled], undefined],
    ['the one with its hash, of a status', 'token.status_changed', [first, hashed], 'hashed'],
    ['nobody, of a status under another hash', 'token.status_changed', [first], undefined],
    ['the burn', 'token.burned', [first, burn], 'burn'],
    ['the mint', 'token.minted', [...mints.slice(0, 1), first], 'mint'],
    ['the mint in sequence', 'token.minted', [...mints.slice(1), first], 'mint_sequential'],
    ['the change of data', 'token.extra_data_changed', [first, data], 'data'],
    ['nobody, of a lock', 'token.locked', [first, burn, data, ...mints], undefined],
  ])('It is %s (%s)', (_who, type, operations, cause) => {
    expect(causeOf(type, token(), operations, at(501))).toBe(cause);
  });

  it('A write that settled when the token was observed before, or at any time, may be it', () => {
    expect(causeOf('token.transferred', token(), [settled], at(500))).toBe('settled');
    expect(causeOf('token.transferred', token(), [settled], undefined)).toBe('settled');
  });

  it('A hash that no write has is not that of a write without one', () => {
    const unhashed = token({ lastTxHash: null });
    expect(causeOf('token.status_changed', unhashed, [first], undefined)).toBeUndefined();
  });

  it('An absent token shows a burn and nothing else', () => {
    expect([burn, first].map((one) => shows('absent', one))).toEqual([true, false]);
    expect([burn, first].map((one) => shows(token(), one))).toEqual([false, true]);
  });
});
