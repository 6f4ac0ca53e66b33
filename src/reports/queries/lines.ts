/** The lines behind the totals of a stored report, as its formats take them. */
import type { Tx } from '../../db/connect.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Report } from '../store.ts';
import type { ReportLine } from './lines-store.ts';
import * as store from './lines-store.ts';

/** Which lines a format takes: none, as many as a spreadsheet holds well, or all with openings. */
export type LinesNeeded = 'none' | 'some' | 'all';

export interface LineLimits {
  /** Lines of a spreadsheet. */
  linesMax: number;
  /** Lines and openings of a journal. */
  journalMax: number;
}

export interface ReportLines {
  /** In the order in which they took effect. */
  listed: ReportLine[];
  total: number;
  /** What accounts held before the period; only with all lines. */
  openings: { account: string; amount: bigint }[];
}

export const NO_LINES: ReportLines = { listed: [], total: 0, openings: [] };

const PAGE = 5_000;

export function linesOf({ content, periodFrom, periodTo }: Report): store.LinesOf {
  const lastTransaction = BigInt(content.cut_off.transactions);
  return { from: periodFrom, to: periodTo, lastTransaction };
}

/** @throws Failure `conflict` when there are too many for a format that needs all */
export async function readLines(
  tx: Tx,
  report: Report,
  needed: LinesNeeded,
  { linesMax, journalMax }: LineLimits,
): Promise<ReportLines> {
  if (needed === 'none') return NO_LINES;
  const of = linesOf(report);
  const total = await store.countLines(tx, of);
  const openings = needed === 'all' ? await store.listOpenings(tx, of, journalMax + 1) : [];
  if (needed === 'all' && total + openings.length > journalMax)
    throw new Failure(
      'conflict',
      `the period has ${total} transactions and ${openings.length} opening balances, of which ` +
        `this format takes ${journalMax}; choose a shorter period, or export the whole ledger: ` +
        'npx tallyhook export ledger --format hledger',
    );
  const listed: ReportLine[] = [];
  const bound = Math.min(total, needed === 'some' ? linesMax : journalMax);
  while (listed.length < bound) {
    const last = listed.at(-1);
    const after = last && { at: last.effectiveAt, transaction: last.transaction };
    const limit = Math.min(PAGE, bound - listed.length);
    const page = await store.listLines(tx, of, {}, { after, limit });
    if (page.length === 0) break;
    listed.push(...page);
  }
  return { listed, total, openings };
}
