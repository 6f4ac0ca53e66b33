/** One canonical form of each identity for all its spellings; in SQL the same form. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addressKey,
  isOwner,
  ownerKey,
  sameAddress,
  sameOwner,
  sameTxHash,
} from '../../src/kernel/addresses.ts';
import { useDatabase } from '../harness/database.ts';

const database = await useDatabase();

const ADDR = `0x${'aB'.repeat(20)}`;
const HASH = `0x${'aB'.repeat(32)}`;

describe('Two spellings', () => {
  it.each<[string, string | null, string | null, boolean]>([
    ['of an address in other letters are one', ADDR, ADDR.toLowerCase(), true],
    ['of an address that begins with 0X are one', ADDR, ADDR.toUpperCase(), true],
    ['of an address without a prefix are one', 'T'.repeat(42), 't'.repeat(42), true],
    ['of two addresses stay two', 'T'.repeat(42), 'R'.repeat(42), false],
    ['of addresses that are not known are one', null, null, true],
  ])('%s', (_title, a, b, same) => {
    expect([sameAddress(a, b), sameAddress(b, a)]).toEqual([same, same]);
  });

  it.each<[string, string | null, string | null, boolean]>([
    ['of a hash in other letters are one', HASH, HASH.toUpperCase(), true],
    ['of two hashes stay two', HASH, `0x${'ac'.repeat(32)}`, false],
    ['of hashes that are not known are not one', null, null, false],
  ])('%s', (_title, a, b, same) => {
    expect([sameTxHash(a, b), sameTxHash(b, a)]).toEqual([same, same]);
  });

  it.each([
    ['of an owner in other letters are one', 'Ann Lee', 'ANN lee', true],
    ['of an owner with other spaces are one', ' Ann\t Lee\u00a0', 'Ann Lee', true],
    ['of an owner with a composed letter are one', 'Zo\u00eb', 'Zoe\u0308', true],
    ['of an owner in wide letters are one', 'ann', '\uff21\uff4e\uff4e', true],
    ['of an owner with a sharp s are one', 'Stra\u00dfe', 'STRASSE', true],
    ['of an owner with a final sigma are one', 'Νίκος', 'ΝΊΚΟΣ', true],
    ['of an owner with a ligature are one', '\ufb01nance', 'Finance', true],
    ['of two owners stay two', 'Ann Lee', 'AnnLee', false],
  ])('%s', (_title, a, b, same) => {
    expect([sameOwner(a, b), sameOwner(b, a)]).toEqual([same, same]);
  });
});

describe('In SQL', () => {
  it('owners have the form that they have here', async () => {
    const letters = fc.constantFrom(
      'a',
      'É',
      'e\u0301',
      'ß',
      'ẞ',
      'Σ',
      'ς',
      'σ',
      'ı',
      'İ',
      'ﬁ',
      'Ａ',
      '\u212b',
      'ŉ',
      'ǆ',
      ' ',
      '\t',
      '\u00a0',
      '\u3000',
      '\u2028',
      '.',
      '-',
      '7',
      '漢',
      'я',
      'ñ',
      'ﬀ',
      '①',
      'ª',
    );
    await fc.assert(
      fc.asyncProperty(
        // Letters that are newer than the server may have no case there.
        fc.array(fc.oneof(letters, fc.string({ maxLength: 3 })), { maxLength: 12 }),
        async (parts) => {
          const owner = parts.join('');
          fc.pre(isOwner(owner));
          const [row] = await database.db.sql`select tallyhook.owner_key(${owner}) as key`;
          expect(row?.key).toBe(ownerKey(owner));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('addresses have the form that they have here', async () => {
    const printable = Array.from({ length: 94 }, (_, n) => String.fromCharCode(33 + n)).join('');
    const [row] = await database.db.sql`select lower(${printable}) as key`;
    expect(row?.key).toBe(addressKey(printable));
  });
});

describe('The name of an owner', () => {
  it.each([
    ['of letters', 'Ann Lee', true],
    ['of an e-mail address', 'ann@example.com', true],
    ['of one emoji', '🦊', true],
    ['without letters', ' \t', false],
    ['with a letter that nobody sees', 'an\u200bn', false],
    ['that runs backwards', 'ann\u202e', false],
    ['with a filler', 'ann\u3164', false],
    ['with NUL', 'ann\0', false],
  ])('%s is allowed: %j %s', (_title, name, allowed) => {
    expect(isOwner(name)).toBe(allowed);
  });
});
