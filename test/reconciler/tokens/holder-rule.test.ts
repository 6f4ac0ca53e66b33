/** When the holder of a token waits to be recorded, and since when it differs. */
import { describe, expect, it } from 'vitest';
import { mustWait, withDifference } from '../../../src/reconciler/tokens/holder.ts';
import type { Token } from '../../../src/reconciler/tokens/token.ts';
import { addr, at, token as tokenState, write } from '../builders.ts';

const [A, B] = [addr(1), addr(2)];

/** A token that was recorded as held by A and is observed with B, at 10 s. */
const moved = (change: Partial<Token> = {}): Token => ({
  ...tokenState({ owner: B }),
  contractId: 5n,
  tokenId: 1n,
  createdText: '',
  ownedText: '',
  observedAt: at(10_000),
  presence: 'present',
  absentSince: null,
  recordedOwner: A,
  differsSince: null,
  differsAfter: null,
  ...change,
});
const gone = moved({ presence: 'absent' });
const first = moved({ recordedOwner: null });
const observed = { startedAt: at(10_000), readLagMs: 1_000 };

describe('A change of the holder', () => {
  it.each([
    ['is recorded at once without a write of ours', moved(), [], false],
    [
      'is recorded while only its data is changed',
      moved(),
      [write('sending', { kind: 'set_extra_data' })],
      false,
    ],
    [
      'is recorded after a write that was refused',
      moved(),
      [write('rejected', { kind: 'transfer_from' })],
      false,
    ],
    [
      'is recorded after a write that has settled',
      moved(),
      [write('settled', { kind: 'transfer_from', settledAt: at(9_000) })],
      false,
    ],
    [
      'is recorded before a queued write is sent',
      moved(),
      [write('queued', { kind: 'transfer_from' })],
      false,
    ],
    [
      'waits while a transfer is being sent',
      moved(),
      [write('sending', { kind: 'transfer_from' })],
      true,
    ],
    [
      'waits while the outcome of a burn is unknown',
      gone,
      [write('unknown', { kind: 'burn' })],
      true,
    ],
    [
      'waits while people are to decide about a mint',
      first,
      [write('undecided', { kind: 'mint' })],
      true,
    ],
    [
      'waits for an accepted transfer within the read lag',
      moved(),
      [write('accepted', { kind: 'transfer_from', answered: 9_500 })],
      true,
    ],
    [
      'does not wait for an accepted transfer that a completed token does not show after the read lag',
      moved(),
      [write('accepted', { kind: 'transfer_from', answered: 8_000 })],
      false,
    ],
    ['waits until an absence is confirmed', moved({ absentSince: at(9_000) }), [], true],
    ['waits while the chain processes the token', moved({ status: 2 }), [], true],
    [
      'waits when the chain failed the first hash of a token',
      moved({ status: 3, recordedOwner: null }),
      [],
      true,
    ],
    ['is recorded when the chain failed a later hash', moved({ status: 3 }), [], false],
    ['to nobody is recorded after any last status', { ...gone, status: 0 }, [], false],
  ] as const)('%s', (_, token, operations, waits) => {
    expect(mustWait(token, operations, observed)).toBe(waits);
  });
});

describe('A holder that differs from the recorded one', () => {
  const timesOf = (token: Token, before?: Token) => {
    const { differsSince, differsAfter } = withDifference(token, before, { unchangedSince: at(9) });
    return [differsSince, differsAfter];
  };
  it.each([
    [
      'is none while it is the same',
      timesOf(moved({ owner: A.toUpperCase() }), moved({ owner: A })),
      [null, null],
    ],
    [
      'begins with the observation that shows it',
      timesOf(moved(), moved({ owner: A, observedAt: at(5) })),
      [at(9), at(5)],
    ],
    ['has no observation before it when it is the first', timesOf(first), [at(9), null]],
    [
      'began earlier if the observation before showed it',
      timesOf(moved(), moved({ differsSince: at(7), differsAfter: at(5) })),
      [at(7), at(5)],
    ],
    [
      'begins anew with another holder, after the last recorded one',
      timesOf(gone, moved({ differsSince: at(7), differsAfter: at(5) })),
      [at(9), at(5)],
    ],
  ] as const)('%s', (_, found, expected) => {
    expect(found).toEqual(expected);
  });
});
