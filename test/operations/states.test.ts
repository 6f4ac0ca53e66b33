/** The states of an operation and its kinds, written down a second time. */
import { expect, it } from 'vitest';
import {
  FOLLOWS,
  KINDS,
  NFT_KINDS,
  outcomeOf,
  type State,
  statesBefore,
  TOKEN_KINDS,
} from '../../src/operations/operations.ts';

/** From, to, and the outcome. */
const TABLE: [State, State[], string][] = [
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

it('Each kind is a token write, an NFT write or other', () => {
  expect([...TOKEN_KINDS, ...NFT_KINDS, 'other'].toSorted()).toEqual([...KINDS].toSorted());
});
