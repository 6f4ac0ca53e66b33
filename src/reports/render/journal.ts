/**
 * A report as a journal of hledger: the opening balances, the transactions of the period in the
 * order in which they took effect, each with the balances after it, and at the end the closing
 * balances that the report states. So `hledger check` proves the roll-forward of the report.
 */
import { isoText } from '../../kernel/clock.ts';
import {
  COMMODITY_LINE,
  daysLine,
  journalPosting,
  journalTransaction,
  namesOf,
} from '../../ledger/ledger.ts';
import type { Report } from '../../resources/reports/content.ts';
import { numberOf, type ReportLine } from '../../resources/reports/report.ts';
import { leftOutText, NOT_LISTED } from '../../resources/reports/sections.ts';
import type { ReportLines } from '../queries/lines.ts';

export function renderJournal(report: Report, { listed, openings, days }: ReportLines): string {
  const { content, periodFrom, periodTo, id, hash } = report;
  const ownLeftOut = leftOutText(content.own_accounts);
  const balances = new Map<string, bigint>();
  const post = ({ account, amount }: { account: string; amount: bigint }) => {
    const balance = (balances.get(account) ?? 0n) + amount;
    balances.set(account, balance);
    return journalPosting(account, `${amount}`, `${balance}`);
  };
  return [
    `; Reconciliation ${isoText(periodFrom)} to ${isoText(periodTo)}: ${content.headline}\n`,
    `; Report ${id}, SHA-256 of its content ${hash}\n`,
    '; Check it with: hledger -f <this file> check\n',
    daysLine(content.time_zone),
    `${COMMODITY_LINE}\n`,
    balancesOf(report, 'opening', days.first, openings.map(post)),
    ...listed.map((line, i) => transactionOf(line, days.of[i] ?? '', line.entries.map(post))),
    balancesOf(report, 'closing', days.last, []),
    `; ${listed.length} transactions\n`,
    ...(ownLeftOut === null ? [] : [`; own accounts ${NOT_LISTED}: ${ownLeftOut}\n`]),
  ].join('');
}

/** Postings and, after them, the balances of the report: per kind of account, and of own ones. */
function balancesOf(
  { id, content }: Report,
  column: 'opening' | 'closing',
  date: string,
  postings: readonly string[],
): string {
  return `${journalTransaction({
    date,
    operationId: null,
    about: [`${column} balances`],
    tags: { report: id },
    postings: [
      ...postings,
      ...content.roll_forward.map((row) => journalPosting(row.name, '0', row[column], '=*')),
      ...content.own_accounts.listed.map((row) => journalPosting(row.name, '0', row[column])),
    ],
  })}\n`;
}

function transactionOf(line: ReportLine, date: string, postings: readonly string[]): string {
  const { kind, reasonType, operationId, reverses, reference } = line;
  return `${journalTransaction({
    date,
    operationId,
    about: [kind, reasonType],
    postings,
    tags: {
      transaction: line.transactionId,
      effective: isoText(line.effectiveAt),
      basis: line.effectiveBasis,
      recorded: isoText(line.recordedAt),
      tx: numberOf(line.txAppNo, line.txLogNo),
      reverses,
      reference,
      drift: line.driftId,
      decided_by: line.decidedBy && namesOf(line.decidedBy),
      reason: line.reason,
    },
  })}\n`;
}
