/** The states of an operation and its kinds, written down a second time. */
import { expect, it } from 'vitest';
import {
  FOLLOWS,
  isFinal,
  KINDS,
  NFT_KINDS,
  outcomeOf,
  type State,
  statesBefore,
  TOKEN_KINDS,
} from '../../src/operations/operations.ts';

/** From, to, and the outcome. */
const TABLE: [State, State[], string][] = [
  ['recorded', ['sending', 'queued', 'rejected'], 'open'],
  ['queued', ['sending', 'cancelled', 'rejected', 'unknown'], 'open'],
  ['sending', ['accepted', 'rejected', 'unknown', 'queued'], 'open'],
  ['unknown', ['executed', 'not_executed', 'undecided', 'accepted', 'rejected'], 'open'],
  ['undecided', ['executed', 'not_executed', 'accepted', 'rejected'], 'open'],
  ['executed', ['settled', 'failed', 'not_executed', 'accepted', 'rejected'], 'executed'],
  ['not_executed', ['executed', 'accepted', 'rejected'], 'not_executed'],
  ['accepted', ['settled', 'failed', 'not_executed'], 'executed'],
  ['rejected', ['accepted'], 'not_executed'],
  ['cancelled', [], 'not_executed'],
  ['settled', ['not_executed'], 'executed'],
  ['failed', [], 'not_executed'],
];
const STATES = TABLE.map(([state]) => state);

it.each(TABLE)('The state %s may become %j, and its outcome is %s', (state, next, outcome) => {
  expect([...FOLLOWS[state]].toSorted()).toEqual(next.toSorted());
  expect(outcomeOf(state)).toBe(outcome);
});

it('The table has every state, and the states before one are those that may become it', () => {
  expect(Object.keys(FOLLOWS).toSorted()).toEqual(STATES.toSorted());
  for (const to of STATES)
    expect(statesBefore(to)).toEqual(STATES.filter((from) => FOLLOWS[from].includes(to)));
});

const OPERATION = { kind: 'give', effectiveBasis: 'answer', errorCode: null } as const;

it.each([
  [{ state: 'settled' }, true],
  [{ state: 'settled', effectiveBasis: 'observed' }, false],
  [{ state: 'settled', effectiveBasis: null }, false],
  [{ state: 'failed', effectiveBasis: 'observed' }, true],
  [{ state: 'cancelled' }, true],
  [{ state: 'rejected', errorCode: '400' }, true],
  [{ state: 'rejected', errorCode: 'expired' }, true],
  [{ state: 'rejected', errorCode: 'unconfirmed' }, false],
  [{ state: 'accepted' }, false],
  [{ state: 'accepted', kind: 'other' }, true],
  ...STATES.filter((state) => !/settled|failed|cancelled|rejected|accepted/.test(state)).map(
    (state) => [{ state }, false] as const,
  ),
] as const)('Whether an operation with %j can never change: %s', (fields, final) => {
  expect(isFinal({ ...OPERATION, ...fields })).toBe(final);
});

it('Each kind is a token write, an NFT write or other', () => {
  expect([...TOKEN_KINDS, ...NFT_KINDS, 'other'].toSorted()).toEqual([...KINDS].toSorted());
});
