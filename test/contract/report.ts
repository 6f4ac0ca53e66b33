/** What a run found, as a table for people or as data. */
import { printLine } from '../../src/kernel/terminal.ts';
import type { Verdict } from './statement.ts';

export type Row = { section: string; title: string } & Verdict;

const RESULTS = ['held', 'not held', 'not checked', 'untestable'] as const;

/** Prints every row and the totals. */
export function printReport(rows: Row[], json: boolean): void {
  const totals = totalsOf(rows);
  if (json) {
    printLine(JSON.stringify({ totals, statements: rows }, undefined, 2));
    return;
  }
  const width = Math.max(0, ...rows.map(({ title }) => [...title].length));
  for (const row of rows) {
    const why = row.result === 'held' ? '' : `: ${row.why}`;
    const result = row.result === 'not held' ? 'NOT HELD' : row.result;
    printLine(`${row.section.padEnd(4)} ${padded(row.title, width)}  ${result}${why}`);
  }
  printLine();
  printLine(RESULTS.map((result) => `${totals[result]} ${result}`).join(', '));
}

function padded(text: string, width: number): string {
  return text + ' '.repeat(width - [...text].length);
}

/** How many statements ended in each way. */
export function totalsOf(rows: Row[]): Record<Verdict['result'], number> {
  const count = (result: Verdict['result']) => rows.filter((row) => row.result === result).length;
  return {
    held: count('held'),
    'not held': count('not held'),
    'not checked': count('not checked'),
    untestable: count('untestable'),
  };
}
