/** How the bytes of a file become rows, and its rows reports. */
import { describe, expect, it } from 'vitest';
import { decoded } from '../../src/imports/file/decode.ts';
import { type ImportOptions, makeMapping } from '../../src/imports/file/mapping.ts';
import { csvRows, ndjsonRows, type Row } from '../../src/imports/file/rows.ts';
import { makeTimeReader } from '../../src/imports/file/times.ts';
import { csvHead, csvRow } from '../../src/resources/cells.ts';
import type { Kind } from '../../src/resources/fields.ts';
import { operationExport } from '../../src/resources/operations/operation.ts';

async function* pieces(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
async function all<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const row of rows) found.push(row);
  return found;
}
const textOf = async (bytes: Uint8Array, encoding?: string, size = 3) =>
  (await all(decoded(pieces(bytes, size), encoding))).join('');
const csvOf = (text: string, delimiter?: string, size = 1_000) =>
  all(csvRows(decoded(pieces(Buffer.from(text), size)), delimiter));
const refusal = (detail: string) => ({
  code: 'invalid_request',
  detail: expect.stringContaining(detail),
});

describe('The bytes of a file', () => {
  const marked = (mark: number[], text: Buffer) => Buffer.concat([Buffer.from(mark), text]);
  const utf16be = Buffer.from('가,b\n', 'utf16le').swap16();
  it.each([
    ['UTF-8 with its mark', marked([0xef, 0xbb, 0xbf], Buffer.from('가,b\n')), undefined],
    ['UTF-16 with its mark', marked([0xff, 0xfe], Buffer.from('가,b\n', 'utf16le')), undefined],
    ['the other UTF-16 with its mark', marked([0xfe, 0xff], utf16be), undefined],
    ['UTF-16 that is named', Buffer.from('가,b\n', 'utf16le'), 'utf-16le'],
    ['EUC-KR that is named', Buffer.from([0xb0, 0xa1, 0x2c, 0x62, 0x0a]), 'euc-kr'],
  ])('%s is read, in pieces of any size', async (_, bytes, encoding) => {
    for (const size of [1, 2, 3, 100]) expect(await textOf(bytes, encoding, size)).toBe('가,b\n');
  });

  it.each([
    ['\r\n', '\r', '\n'],
    ['\r', '\r', '\r'],
  ])('Line ends of every kind are one: %j %j %j', async (first, second, third) => {
    const text = `a${first}b${second}c${third}`;
    for (const size of [1, 2, 100]) {
      expect(await textOf(Buffer.from(text), undefined, size)).toBe('a\nb\nc\n');
    }
  });

  it.each([
    [Buffer.from([0x61, 0x0a, 0x62, 0x0d, 0x0a, 0xb0, 0xa1, 0x0a]), 'line 3 is not UTF-8'],
    [Buffer.from('a,b\n', 'utf16le'), 'line 1 has a NUL'],
    [Buffer.from([0x61, 0x0a, 0xe3]), 'line 2 is not UTF-8'],
    [Buffer.from('PK\x03\x04\x14\x00'), 'is a workbook or a ZIP; save it as CSV'],
  ])('Bytes %j that are no text are refused with their line', async (bytes, detail) => {
    for (const size of [1, 100])
      await expect(textOf(bytes, undefined, size)).rejects.toMatchObject(refusal(detail));
  });

  it('An encoding that nobody knows is refused', async () => {
    await expect(textOf(Buffer.from('a'), 'klingon')).rejects.toMatchObject(refusal('klingon'));
  });

  it('A file of a few bytes is text', async () => {
    expect(await textOf(Buffer.from('a'))).toBe('a');
    expect(await textOf(Buffer.from('PK\n'))).toBe('PK\n');
    expect(await textOf(Buffer.from(''))).toBe('');
  });
});

describe('Rows of CSV', () => {
  it.each([1, 3, 1_000])('They are the same in pieces of %i bytes', async (size) => {
    const text = '\ufeffa, b\r\n1,"x ""y"", z"\r\n\r\n2,"two\r\nlines"\r3\n5, 6 \n';
    expect(await csvOf(text, undefined, size)).toEqual([
      { line: 2, values: { a: '1', b: 'x "y", z' } },
      { line: 4, values: { a: '2', b: 'two\nlines' } },
      { line: 6, problem: { code: 'malformed_csv', detail: expect.stringContaining('1 cells') } },
      { line: 7, values: { a: '5', b: '6' } },
    ]);
  });

  it.each([';', '\t', '|', ','])(
    'The header shows that cells are separated by %j',
    async (mark) => {
      const text = `"a;,|x"${mark}b${mark}c\n1.5${mark}"x${mark}y"${mark}\n`;
      expect(await csvOf(text)).toEqual([
        { line: 2, values: { 'a;,|x': '1.5', b: `x${mark}y`, c: '' } },
      ]);
    },
  );

  it('Rows and cells without a value at the end are left out', async () => {
    expect(await csvOf('a,b,,\n1,2,,\n,,,\n3,4\n,,\n\n')).toEqual([
      { line: 2, values: { a: '1', b: '2' } },
      { line: 4, values: { a: '3', b: '4' } },
    ]);
  });

  it.each([
    ['A quote inside a cell', 'a,b\n1,x"y"\n2,3\n', 'line 2: a quote stands inside a cell'],
    ['A text behind a quote', 'a,b\n1,2\n2,"x"y\n', 'line 3: a quote stands inside a cell'],
    ['An open quote', 'a,b\n1,2\n4,"open\n5,6\n', 'line 3: a quote is not closed'],
    ['A row without an end', `a\n"x\n${'y\n'.repeat(200_000)}`, 'line 2: the row is longer'],
    ['A repeated column', 'a,b,a\n1,2,3\n', 'columns that stand twice: a'],
  ])('%s is refused', async (_, text, detail) => {
    await expect(csvOf(text)).rejects.toMatchObject(refusal(detail));
  });
});

it('Rows of NDJSON keep numbers of any size, and refuse what is no object', async () => {
  const text = '{"a":9007199254740993}\r\r[1]\r{"a":\r';
  expect(await all<Row>(ndjsonRows(decoded(pieces(Buffer.from(text), 4))))).toEqual([
    { line: 1, values: { a: 9_007_199_254_740_993n } },
    { line: 3, problem: { code: 'malformed_json', detail: 'the line is no JSON object' } },
    { line: 4, problem: { code: 'malformed_json', detail: 'the line is no JSON object' } },
  ]);
});

describe('A time', () => {
  it.each([
    ['Asia/Seoul', '2026-01-31 09:00:00', { text: '2026-01-31T00:00:00.000Z' }],
    ['Europe/Berlin', '2026-07-01T12:00', { text: '2026-07-01T10:00:00.000Z' }],
    ['America/St_Johns', '2026-01-31 00:00:00.5', { text: '2026-01-31T03:30:00.500Z' }],
    ['Europe/Berlin', '2026-03-29 02:30:00', { code: 'time_not_in_zone' }],
    ['Europe/Berlin', '2026-10-25 02:30:00', { code: 'time_ambiguous' }],
    ['Australia/Lord_Howe', '2026-04-05 01:45:00', { code: 'time_ambiguous' }],
    [undefined, '2026-01-31 09:00:00', { code: 'time_without_zone' }],
    [undefined, '2026-01-31 09:00:00+09:00', { text: '2026-01-31T09:00:00+09:00' }],
    ['Asia/Seoul', '2026-01-31 09:00:00 UTC', { text: '2026-01-31T09:00:00Z' }],
    ['Asia/Seoul', '2026-01-31T09:00:00+0530', { text: '2026-01-31T09:00:00+05:30' }],
    ['Asia/Seoul', '2026/1/31 9:00', { text: '2026-01-31T00:00:00.000Z' }],
    ['Asia/Seoul', '31.01.2026', { text: '31.01.2026' }],
    ['Asia/Seoul', '31.01.2026 09:00', { text: '31.01.2026 09:00' }],
    ['Asia/Seoul', '2026-02-30 09:00:00', { text: '2026-02-30 09:00:00' }],
  ])('In zone %s %s is %j', (zone, text, read) => {
    expect(makeTimeReader({ zone })(text)).toMatchObject(read);
  });

  it.each([
    [{ order: 'dmy' }, '31.01.2026 09:00:00', '2026-01-31T09:00:00.000Z'],
    [{ order: 'dmy' }, '1/2/2026, 9:00', '2026-02-01T09:00:00.000Z'],
    [{ order: 'mdy' }, '1/2/2026 1:02:33 PM', '2026-01-02T13:02:33.000Z'],
    [{ order: 'mdy' }, '1/2/2026 12:00 AM', '2026-01-02T00:00:00.000Z'],
    [{ order: 'mdy' }, '31/1/2026 12:00', '31/1/2026 12:00'],
    [{ unix: 's' }, '1767225600', '2026-01-01T00:00:00.000Z'],
    [{ unix: 's' }, '1767225600.25', '2026-01-01T00:00:00.250Z'],
    [{ unix: 'ms' }, '1767225600001', '2026-01-01T00:00:00.001Z'],
    [{ unix: 's' }, '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z'],
  ] as const)('With %j %s is %s', (options, text, read) => {
    expect(makeTimeReader({ zone: 'UTC', ...options })(text)).toEqual({ text: read });
  });
});

describe('A mapping', () => {
  const reportOf = (options: ImportOptions, values: Record<string, string>) => {
    const line = makeMapping(options).toLine({ line: 2, values });
    return line && ('report' in line ? JSON.parse(line.report) : line.problem);
  };

  it('Columns, constants, translations and the zone make a report', () => {
    const mapping = makeMapping({
      format: 'csv',
      map: { kind: 'type', amount: 'value', occurred_at: 'at', tx_log_no: 'log' },
      set: { operation_no: '1', tx_app_no: '7' },
      values: { kind: { payout: 'give' } },
      time_zone: 'Asia/Seoul',
    });
    const cells = { type: 'payout', value: '5', at: '2026-01-31 09:00:00', log: '12', note: 'x' };
    mapping.checkColumns(Object.keys(cells));
    const line = mapping.toLine({ line: 2, values: { ...cells, operation_no: '' } });
    expect(line).toMatchObject({ line: 2 });
    expect(JSON.parse(line && 'report' in line ? line.report : '')).toEqual({
      kind: 'give',
      occurred_at: '2026-01-31T00:00:00.000Z',
      tx_log_no: '12',
      tx_app_no: '7',
      operation_no: '1',
      amount: '5',
    });
    expect([...mapping.ignored]).toEqual(['note']);
  });

  it.each([
    [{ thousands: ',' }, '1,234,567', '1234567'],
    [{ thousands: ',' }, '12,34', '12,34'],
    [{ thousands: ',', decimal_sign: '.' }, '1,234.00', '1234'],
    [{ thousands: '.', decimal_sign: ',' }, '1.234,00', '1234'],
    [{ thousands: ' ' }, '1\u202f234', '1234'],
    [{ thousands: "'" }, "1'234", '1234'],
    [{ decimal_sign: '.' }, '1.50', '1.50'],
    [{}, '1,234', '1,234'],
  ] as const)('With %j the amount %s is %s', (options, amount, read) => {
    expect(reportOf(options, { amount })).toEqual({ amount: read });
  });

  it('Texts that are names of members of every object stay as they are', () => {
    const values = { kind: { payout: 'give' } };
    const cells = { kind: 'constructor', distinct: 'toString' };
    expect(reportOf({ values }, cells)).toEqual(cells);
    const map = { reference: 'valueOf' };
    expect(reportOf({ map }, { kind: 'give' })).toEqual({ kind: 'give' });
  });

  it('A report that no row of an app needs is refused, and so bounds the memory', () => {
    const problem = { code: 'body_too_large', detail: expect.stringContaining('65536') };
    expect(reportOf({}, { reason_type: 'x'.repeat(70_000) })).toEqual(problem);
  });

  it.each([
    [{ map: { sum: 'value' } }, 'sum is no field; fields are kind'],
    [{ time_zone: 'Mars/Base' }, 'Mars/Base is no time zone'],
  ])('%j is refused with an explanation', (options, detail) => {
    expect(() => makeMapping(options)).toThrow(detail);
  });

  it.each([
    [{}, ['kind', 'amount'], 'missing columns: occurred_at'],
    [{ map: { amount: 'value' } }, ['kind', 'occurred_at'], 'missing columns: value (of amount)'],
    [{ map: { kind: 'type' } }, ['occurred_at'], 'missing columns: type (of kind)'],
  ])('With %j the columns %j are refused by their names', (options, columns, detail) => {
    expect(() => makeMapping(options).checkColumns(columns)).toThrow(detail);
  });

  it('An export of ours needs no option: what was executed comes back as it was', async () => {
    const own = {
      operation_id: 'op_of_another_database',
      kind: 'give',
      outcome: 'executed',
      state: 'settled',
      tx_log_no: '12',
      tx_app_no: '7',
      to_addr: `0x${'1'.repeat(40)}`,
      operation_no: '1',
      amount: '5',
      reason_type: '=1+1; -2',
      reference: "'-0",
      effective_at: '2026-01-31T00:00:00.000Z',
      recorded_at: '2026-02-01T00:00:00.000Z',
    } as Record<string, string>;
    const { columns, fields } = operationExport;
    const kinds = fields as Record<string, { kind: Kind }>;
    const rows = [own, { ...own, outcome: 'not_executed' }].map((row) =>
      csvRow(columns.map((name) => ({ kind: kinds[name]?.kind ?? 'text', value: row[name] }))),
    );
    const text = csvHead(columns, true) + rows.join('');
    const mapping = makeMapping({ format: 'csv' });
    const read = await all(
      csvRows(decoded(pieces(Buffer.from(text), 7)), undefined, mapping.checkColumns),
    );
    const [executed, other] = read.map(mapping.toLine);
    expect(other).toBeUndefined();
    expect(JSON.parse(executed && 'report' in executed ? executed.report : '')).toEqual({
      kind: 'give',
      occurred_at: '2026-01-31T00:00:00.000Z',
      tx_log_no: '12',
      tx_app_no: '7',
      to_addr: own.to_addr,
      operation_no: '1',
      amount: '5',
      reason_type: '=1+1; -2',
      reference: "'-0",
    });
  });
});
