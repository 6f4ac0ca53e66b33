/** How rows of CSV and NDJSON, their columns and their times become lines of an import. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeTimeReader } from '../../../src/cli/import/local-time.ts';
import { readMapping } from '../../../src/cli/import/mapping.ts';
import { makeMovements, makeSeenLines } from '../../../src/cli/import/movements.ts';
import { csvRows, ndjsonRows, type Row } from '../../../src/cli/import/rows.ts';

async function* pieces(text: string, size: number) {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
}
async function all(rows: AsyncGenerator<Row>): Promise<Row[]> {
  const found: Row[] = [];
  for await (const row of rows) found.push(row);
  return found;
}

describe('Rows of CSV', () => {
  it.each([1, 3, 1_000])('They are the same in pieces of %i characters', async (size) => {
    const text = '\ufeffa, b\r\n1,"x ""y"", z"\r\n\r\n2,"two\nlines"\n3\n4,"open\n5,6';
    expect(await all(csvRows(pieces(text, size), ','))).toEqual([
      { line: 2, values: { a: '1', b: 'x "y", z' } },
      { line: 4, values: { a: '2', b: 'two\nlines' } },
      { line: 6, problem: { code: 'malformed_csv', detail: expect.stringContaining('1 cells') } },
      { line: 7, problem: { code: 'malformed_csv', detail: expect.stringContaining('quote') } },
    ]);
  });

  it.each([';', '\t', '|'])('Cells may be separated by %j', async (mark) => {
    const text = `a${mark}b\n1,5${mark}"x${mark}y"\n`;
    expect(await all(csvRows(pieces(text, 5), mark))).toEqual([
      { line: 2, values: { a: '1,5', b: `x${mark}y` } },
    ]);
  });

  it('A quote that is never closed is refused within bounded memory', async () => {
    const text = `a\n"x\n${'y\n'.repeat(200_000)}`;
    const [first] = await all(csvRows(pieces(text, 65_536), ','));
    expect(first).toMatchObject({ line: 2, problem: { code: 'malformed_csv' } });
  });
});

it('Rows of NDJSON keep numbers of any size, and refuse what is no object', async () => {
  const text = '{"a":9007199254740993}\n\n[1]\n{"a":\n';
  expect(await all(ndjsonRows(pieces(text, 4)))).toEqual([
    { line: 1, values: { a: 9_007_199_254_740_993n } },
    { line: 3, problem: { code: 'malformed_json', detail: 'the line is no JSON object' } },
    { line: 4, problem: { code: 'malformed_json', detail: 'the line is no JSON object' } },
  ]);
});

describe('A local time', () => {
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
    ['Asia/Seoul', '31.01.2026', { text: '31.01.2026' }],
    ['Asia/Seoul', '2026-02-30 09:00:00', { text: '2026-02-30 09:00:00' }],
  ])('In zone %s %s is %j', (zone, text, read) => {
    expect(makeTimeReader(zone)(text)).toMatchObject(read);
  });
});

describe('A mapping', () => {
  const row = (values: Record<string, string>) => ({ line: 2, values });

  it('Columns, constants, translations and the zone come from options and from a file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tallyhook-mapping-'));
    const path = join(folder, 'mapping.json');
    const values = { kind: { payout: 'give' } };
    await writeFile(
      path,
      JSON.stringify({ map: { kind: 'type' }, values, time_zone: 'Asia/Seoul' }),
    );
    const mapping = await readMapping({
      mapping: path,
      map: ['amount=value,occurred_at=at', 'tx_log_no=log'],
      set: ['operation_no=1,tx_app_no=7'],
    });
    await rm(folder, { recursive: true });
    const cells = { type: 'payout', value: '5', at: '2026-01-31 09:00:00', log: '12', note: 'x' };
    const line = mapping.toLine(row({ ...cells, operation_no: '' }));
    expect(line).toMatchObject({ line: 2, transaction: '7/12', kind: 'give' });
    expect(JSON.parse('text' in line ? line.text : '')).toEqual({
      kind: 'give',
      occurred_at: '2026-01-31T00:00:00.000Z',
      tx_log_no: '12',
      tx_app_no: '7',
      operation_no: '1',
      amount: '5',
    });
    expect([...mapping.ignored]).toEqual(['note']);
  });

  it('Lines with one hash in different letters are of one transaction', async () => {
    const mapping = await readMapping({});
    const lines = ['ab', 'AB'].map((two) =>
      mapping.toLine(row({ kind: 'burn', tx_hash: `0x${two.repeat(32)}` })),
    );
    const transaction = `0x${'ab'.repeat(32)}`;
    expect(lines).toMatchObject([{ transaction }, { transaction }]);
  });

  it.each([
    [{ map: ['sum=value'] }, 'sum is no field; fields are kind'],
    [{ set: ['kind'] }, '--set kind: write field=value'],
    [{ timeZone: 'Mars/Base' }, 'Mars/Base is no time zone'],
    [{ mapping: 'missing.json' }, 'missing.json cannot be read'],
  ])('%j is refused with an explanation', async (options, detail) => {
    await expect(readMapping(options)).rejects.toMatchObject({
      code: 'bad_setting',
      detail: expect.stringContaining(detail),
    });
  });
});

it('Movements are listed per wallet in the order of their times, not in that of their addition', () => {
  const movements = makeMovements();
  const huge = 2n ** 80n;
  for (let n = 0; n < 3_000; n++)
    movements.add(`0x${n % 3}`, { at: 5_000 - n, amount: n === 0 ? huge : BigInt(n), line: n });
  const wallets = [...movements.wallets()];
  expect(wallets.map(({ addr }) => addr)).toEqual(['0x0', '0x1', '0x2']);
  const times = wallets.map(({ movements: own }) => own.map(({ at }) => at));
  expect(times).toEqual(times.map((own) => own.toSorted((a, b) => a - b)));
  expect(wallets[0]?.movements.at(-1)).toEqual({ at: 5_000, amount: huge, line: 0 });
});

it('A transaction is seen again among many, with the same text or another', () => {
  const seen = makeSeenLines();
  const results = Array.from({ length: 10_000 }, (_, n) => seen.add(`7/${n}`, `text ${n}`));
  expect(new Set(results)).toEqual(new Set(['new']));
  expect([seen.add('7/5000', 'text 5000'), seen.add('7/5000', 'text 1')]).toEqual([
    'repeated',
    'different',
  ]);
});
