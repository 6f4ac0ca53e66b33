/** A text in CSV comes back as it was, although no part of it runs as a formula. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { csvRows } from '../../src/imports/file/rows.ts';
import { csvCell, csvHead, csvRow, plainText } from '../../src/resources/cells.ts';

const text = fc.string({ unit: fc.constantFrom(...'=+-@\'"\t\r\n;| a1\uff1d') });

it('A text is the same after it was guarded and read', () => {
  fc.assert(
    fc.property(text, (value) => {
      const cell = csvCell({ kind: 'text', value });
      const read = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
      expect(plainText(read)).toBe(value);
    }),
    { numRuns: 2_000 },
  );
});

it.each(['=1+1', "'=1+1", '-0', '+49 30', '007', ' 12', "it's", "'"])(
  'The text %j of an export is the same in an import',
  async (value) => {
    const row = csvRow([
      { kind: 'text', value },
      { kind: 'amount', value: '-5' },
    ]);
    async function* file() {
      // As the decoder of imports gives it.
      yield `${csvHead(['reference', 'amount'], false)}${row}`.replaceAll('\r\n', '\n');
    }
    const rows = [];
    for await (const one of csvRows(file(), ',')) rows.push(one);
    expect(rows).toEqual([{ line: 2, values: { reference: value, amount: '-5' } }]);
  },
);
