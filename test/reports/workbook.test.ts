/** The cells of a workbook: their types, their exact values, and the totals of their columns. */
import { unzipSync } from 'fflate';
import { expect, it } from 'vitest';
import { workbookOf } from '../../src/reports/render/workbook.ts';
import type { Cell } from '../../src/resources/cells.ts';

type Read = string | number | null;

const unescaped = (xml: string) =>
  xml
    .replace(/_x([0-9A-F]{4})_/g, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

/** The rows of the only sheet; numbers are numbers, texts are texts. */
async function rowsOf(
  columns: string[],
  lines: Record<string, Cell>[],
  { sums = [], zone = 'UTC' }: { sums?: string[]; zone?: string } = {},
): Promise<Read[][]> {
  const files = unzipSync(await workbookOf([{ name: 'one', columns, lines, sums }], zone));
  const fileOf = (name: string) => Buffer.from(files[name] ?? []).toString();
  const strings = [...fileOf('xl/sharedStrings.xml').matchAll(/<t[^>]*>([^<]*)<\/t>/g)];
  const texts = strings.map(([, text = '']) => unescaped(text));
  const sheet = fileOf('xl/worksheets/sheet1.xml');
  return [...sheet.matchAll(/<row [^>]*>(.*?)<\/row>/gs)].map(([, row = '']) => {
    const cells = [
      ...row.matchAll(/<c r="([A-Z]+)\d+"([^>]*)>(?:<v>(.*?)<\/v>|<is><t>(.*?)<\/t><\/is>)?/g),
    ];
    const read = new Map(
      cells.map(([, at = '', attributes = '', value = '', inline]) => {
        if (inline !== undefined) return [at, inline];
        return [at, attributes.includes('t="s"') ? (texts[Number(value)] ?? '?') : Number(value)];
      }),
    );
    return columns.map((_, at) => read.get(String.fromCharCode(65 + at)) ?? null);
  });
}

const text = (value: string): Cell => ({ kind: 'text', value });
const amount = (value: string): Cell => ({ kind: 'amount', value });

it.each([
  '007',
  '-0',
  '1E5',
  '=1+1',
  ' 12',
  '12 ',
  '1/2',
  'TRUE',
  '2026-01-31',
  '12345678901234567890',
  'constructor',
  '__proto__',
  'toString',
  '_x0041_',
  'a\rb',
  'a\u0001b',
  '<&>',
])('Text %j is text in a workbook, exactly', async (value) => {
  const [, row] = await rowsOf(['reference'], [{ reference: text(value) }]);
  expect(row).toEqual([value]);
});

it('A text that is too long for a cell is cut, and ends with an ellipsis', async () => {
  const [, row] = await rowsOf(['reason'], [{ reason: text('x'.repeat(40_000)) }]);
  expect(row).toEqual([`${'x'.repeat(32_766)}…`]);
});

it('A column of amounts is numbers with a total, which is a number as well', async () => {
  const lines = [
    { item: text('give'), amount: amount('999999999999998') },
    { item: text('transfer'), amount: amount('-3') },
  ];
  expect(await rowsOf(['item', 'amount'], lines, { sums: ['amount'] })).toEqual([
    ['item', 'amount'],
    ['give', 999_999_999_999_998],
    ['transfer', -3],
    ['total', 999_999_999_999_995],
  ]);
});

it.each([
  ['an amount', ['1234567890123456', '-1'], '1234567890123455'],
  ['the total', ['999999999999999', '1'], '1000000000000000'],
])(
  'Where %s has 16 digits, the column is text as a whole, with its exact total',
  async (_what, [one = '', other = ''], total) => {
    const lines = [
      { item: text('a'), amount: amount(one), fees: amount('2') },
      { item: text('b'), amount: amount(other), fees: amount('3') },
    ];
    const sums = ['amount', 'fees'];
    const [head, ...rows] = await rowsOf(['item', 'amount', 'fees'], lines, { sums });
    expect(head).toEqual(['item', 'amount (text, a number has more than 15 digits)', 'fees']);
    expect(rows).toEqual([
      ['a', one, 2],
      ['b', other, 3],
      ['total', total, 5],
    ]);
  },
);

it('Times that the zone shows twice are told apart by their offsets, and are times still', async () => {
  const at = (value: string) => ({ at: { kind: 'instant', value } as const });
  const lines = ['00:30', '01:30', '02:30'].map((time) => at(`2026-10-25T${time}:00.000Z`));
  const section = { name: 'one', columns: ['at'], lines, sums: [] };
  const files = unzipSync(await workbookOf([section], 'Europe/Berlin'));
  const styles = Buffer.from(files['xl/styles.xml'] ?? []).toString();
  const formats = [...styles.matchAll(/formatCode="(yyyy[^"]*)"/g)].map(([, code = '']) => code);
  expect(formats.map((code) => code.replaceAll('&quot;', '"')).toSorted()).toEqual([
    'yyyy-mm-dd hh:mm:ss',
    'yyyy-mm-dd hh:mm:ss "+01:00"',
    'yyyy-mm-dd hh:mm:ss "+02:00"',
  ]);
  const [, ...rows] = await rowsOf(['at'], lines, { zone: 'Europe/Berlin' });
  const [first, second, after] = rows.map(([cell]) => Number(cell));
  expect([second, Number(after) - Number(first)]).toEqual([first, expect.closeTo(1 / 24, 9)]);
});

it('An instant is a time of the zone of the report, which the head of its column names', async () => {
  const lines = [{ at: { kind: 'instant', value: '2026-01-31T15:30:00.999Z' } as const }];
  const [head, row] = await rowsOf(['at'], lines, { zone: 'Asia/Seoul' });
  expect(head).toEqual(['at (Asia/Seoul)']);
  const days = Date.UTC(2026, 1, 1, 0, 30) / 86_400_000 + 25_569;
  expect(row?.[0]).toBeCloseTo(days, 9);
});
