/** The rule of the balance proof, as a table. */
import { describe, expect, it } from 'vitest';
import { type Known, proveWallet } from '../../src/imports/proof.ts';

const OPENED = 100;
const known = (change: Partial<Known> = {}): Known => ({
  opening: 50n,
  openedAt: OPENED,
  observedAt: 200,
  drift: 0n,
  earlier: [],
  ...change,
});
const move = (line: number, at: number, amount: bigint) => ({ line, at, amount });

describe('The balance proof of a wallet', () => {
  it.each([
    [
      'What a wallet got before its opening is no longer part of it',
      known(),
      [move(2, 10, 20n)],
      30n,
    ],
    ['What it paid was in its opening', known(), [move(2, 10, -20n)], 70n],
    [
      'At one instant the order is not known, so the increase may come first',
      known({ opening: 0n }),
      [move(2, 10, 20n), move(3, 10, -20n)],
      0n,
    ],
    [
      'What came after the opening adds up to the drift',
      known({ drift: 5n }),
      [move(2, 10, 20n), move(3, 150, 5n)],
      30n,
    ],
    ['What nobody has observed yet contradicts nothing', known(), [move(2, 250, 5n)], 50n],
  ])('%s', (_, wallet, movements, opening) => {
    expect(proveWallet(wallet, movements)).toEqual({ verdict: 'proved', opening });
  });

  it('A negative opening is impossible, from the first line on', () => {
    const movements = [move(7, 10, 30n), move(3, 20, 30n)];
    expect(proveWallet(known(), movements)).toEqual({
      verdict: 'impossible',
      opening: -10n,
      was: 50n,
      line: 7,
      at: 10,
      balance: -10n,
    });
  });

  it('A balance that is negative for a while is impossible from its line on', () => {
    const movements = [move(2, 10, -60n), move(3, 20, -60n), move(4, 30, 130n)];
    expect(proveWallet(known(), movements)).toMatchObject({
      verdict: 'impossible',
      opening: 40n,
      line: 2,
      at: 10,
      balance: -20n,
    });
  });

  it('Entries that the ledger has already count as well', () => {
    const earlier = [{ at: 5, amount: 100n }];
    const movements = [move(2, 10, -120n), move(3, 20, 170n)];
    expect(proveWallet(known({ opening: 0n, earlier }), movements)).toMatchObject({
      verdict: 'impossible',
      opening: -50n,
      line: 2,
    });
    expect(
      proveWallet(known({ opening: 100n, earlier }), [move(2, 10, -120n), move(3, 20, 170n)]),
    ).toMatchObject({ verdict: 'proved', opening: 50n });
  });

  it('What came after the opening and was not observed is contradicted', () => {
    const movements = [move(2, 10, 20n), move(4, 150, 5n), move(5, 160, 1n)];
    expect(proveWallet(known({ drift: 5n }), movements)).toEqual({
      verdict: 'contradicted',
      opening: 30n,
      moved: 6n,
      drift: 5n,
      line: 4,
    });
  });

  it('Without an opening only its least size is known', () => {
    const wallet = known({ opening: null, openedAt: null });
    expect(proveWallet(wallet, [move(2, 10, -20n), move(3, 20, 30n)])).toEqual({
      verdict: 'unobserved',
      least: 20n,
    });
  });
});
