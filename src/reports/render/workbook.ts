/**
 * Sections of a report as a workbook for people: numbers, texts and times are cells of their own
 * types, by the definitions of their fields, and the columns that can be summed have a total.
 */
import writeWorkbook, { type SheetData } from 'write-excel-file/node';
import { type Cell, cellText, isNumber } from '../../resources/cells.ts';
import { localTime } from '../../resources/local-time.ts';
import type { Section } from '../../resources/reports/sections.ts';

/** So many digits of a number survive in a spreadsheet. */
const DIGITS_MAX = 15;
const TEXT_HEAD = `text, a number has more than ${DIGITS_MAX} digits`;

/** What a reader has to know of the figures. */
export const ABOUT_FIGURES =
  'Totals are the figures of this report, not formulas. A spreadsheet rounds numbers of more ' +
  `than ${DIGITS_MAX} digits: a column that has one is text as a whole, with its exact total.`;

/** A sheet for each section. @param zone in which instants are shown */
export function workbookOf(sections: readonly Section[], zone: string): Promise<Buffer> {
  const sheets = sections.map((section) => sheetOf(section, zone));
  return writeWorkbook(sheets, { features: [INLINE] }).toBuffer();
}

type SheetCell = SheetData[number][number];

function sheetOf({ name, columns, lines, sums }: Section, zone: string) {
  const total = totalOf(lines, sums);
  const made = columns.map((column) => {
    const cells = lines.map((line) => line[column]);
    return columnOf(column, total ? [...cells, total[column]] : cells, zone);
  });
  const heads = made.map(
    ({ head: value }) => ({ value, type: String, fontWeight: 'bold' }) as const,
  );
  const rows = lines.map((_, at) => made.map(({ cells }) => cells[at] ?? null));
  const last = total ? [made.map(({ cells }) => totalled(cells.at(-1) ?? null))] : [];
  const data: SheetData = [heads, ...rows, ...last];
  return { sheet: name, data, columns: made.map(({ width }) => ({ width })), stickyRowsCount: 1 };
}

/** The exact sums of the columns; undefined where nothing is to be summed. */
function totalOf(lines: Section['lines'], sums: readonly string[]) {
  const used = sums.filter((column) => lines.some((line) => line[column]));
  if (used.length === 0) return undefined;
  const total: Record<string, Cell> = { item: { kind: 'text', value: 'total' } };
  for (const column of used) {
    const cells = lines.flatMap((line) => line[column] ?? []);
    const sum = cells.reduce((before, { value }) => before + BigInt(String(value)), 0n);
    total[column] = { kind: 'amount', value: String(sum) };
  }
  return total;
}

function totalled(cell: SheetCell): SheetCell {
  return cell && typeof cell === 'object' && 'value' in cell
    ? { ...cell, fontWeight: 'bold', topBorderStyle: 'thin' }
    : cell;
}

/** A column of one type: a number that is too long makes text of every number in it. */
function columnOf(name: string, cells: readonly (Cell | undefined)[], zone: string) {
  const isLong = cells.some(
    (cell) => cell && isNumber(cell) && cellText(cell.value).replace('-', '').length > DIGITS_MAX,
  );
  const isTime = cells.every((cell) => !cell || cell.kind === 'instant');
  const head = isTime ? `${name} (${zone})` : isLong ? `${name} (${TEXT_HEAD})` : name;
  const lengths = cells.map((cell) => (cell ? cellText(cell.value).length + 2 : 0));
  const width = Math.min(
    60,
    lengths.reduce((one, other) => Math.max(one, other), 12),
  );
  return { head, width, cells: cells.map((cell) => cellOf(cell, zone, isLong)) };
}

function cellOf(cell: Cell | undefined, zone: string, isLong: boolean): SheetCell {
  if (!cell) return null;
  const text = cellText(cell.value);
  if (cell.kind === 'instant') {
    // A spreadsheet has times without a zone: those of the report's. The format of the cell tells
    // those apart that the zone shows twice.
    const local = localTime(text, zone);
    const value = new Date(`${local.text.replace(' ', 'T')}Z`);
    const format = local.offset === null ? TIME : `${TIME} "${local.offset}"`;
    return { value, type: Date, format };
  }
  if (!isNumber(cell)) return textCell(textOf(text));
  return isLong
    ? { value: text, type: String, align: 'right' }
    : { value: Number(text), type: Number, format: '#,##0' };
}

const TIME = 'yyyy-mm-dd hh:mm:ss';
const TEXT_MAX = 32_767;
/** What XML cannot hold, or what would read as an escape of it. */
const ESCAPED = /(?![\t\n])\p{Cc}|\p{Cs}|[\ufffd-\uffff]|_(?=x[0-9A-Fa-f]{4}_)/gu;

/** As a workbook has text: what XML cannot hold is escaped, what is too long for a cell is cut. */
function textOf(text: string): string {
  const safe = text.replace(ESCAPED, escapeOf);
  return safe.length > TEXT_MAX ? `${safe.slice(0, TEXT_MAX - 1)}…` : safe;
}

function escapeOf(character: string): string {
  return `_x${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`;
}

/**
 * The library finds texts in an object, where `constructor` and the like are members already. Such
 * a text goes in as a formula, which no other cell is, and becomes a text of its own cell.
 */
function textCell(value: string): SheetCell {
  return value in {} ? { value: `"${value}"`, type: 'Formula' } : { value, type: String };
}

const INLINE = {
  files: {
    transform: {
      'xl/worksheets/sheet{id}.xml': {
        transform: (xml: string) =>
          xml.replace(/><f>"(\w+)"<\/f>/g, ' t="inlineStr"><is><t>$1</t></is>'),
      },
    },
  },
};
