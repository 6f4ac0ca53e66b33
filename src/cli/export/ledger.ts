/**
 * `tallyhook verify` and `tallyhook export ledger`: the hash chain of the ledger, in the database
 * of this installation or in an exported file.
 */
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import {
  type Anchor,
  exportJournal,
  exportLedger,
  NotAnExport,
  type OnProgress,
  parseAnchor,
  type Verdict,
  verifyFile,
  verifyLedger,
} from '../../ledger/ledger.ts';
import { keptHeads } from '../../reports/reports.ts';
import { withDatabase } from '../installation.ts';
import { saveFile } from '../options.ts';

const PROGRESS_EVERY = 50_000n;

interface VerifyOptions {
  file?: string;
  anchor?: string[];
  json?: true;
}

/** Exits 0 if the ledger and the evidence are as they were recorded, else 1. */
export async function runVerify({ file, anchor = [], json }: VerifyOptions): Promise<number> {
  const anchors = anchor.map(toAnchor);
  const progress = progressOn('verified');
  const verdict = file
    ? await verifyFile(file, anchors, progress).catch(refuse(file))
    : await withDatabase(async ({ db }) =>
        verifyLedger(db, [...anchors, ...(await keptHeads(db))], progress),
      );
  if (json) printLine(jsonText(outputOf(verdict)));
  else printVerdict(verdict);
  return verdict.ok ? 0 : 1;
}

/** A file that is missing or no export. */
function refuse(file: string) {
  return (error: Error & { code?: string }): never => {
    if (error instanceof NotAnExport) throw new Failure('bad_setting', error.message);
    if (error.code) throw new Failure('bad_setting', `${file} cannot be read: ${error.code}`);
    throw error;
  };
}

function toAnchor(text: string): Anchor {
  const anchor = parseAnchor(text, '--anchor');
  if (anchor) return anchor;
  throw new Failure(
    'bad_setting',
    `--anchor ${text}: expected <head>:<count> as a report or an earlier verify printed it`,
  );
}

function outputOf({ count, head, transactions, evidence, ...rest }: Verdict) {
  const counts = { transactions: transactions.toString(), evidence: evidence.toString() };
  return { ...rest, head: `${head}:${count}`, ...counts };
}

function printVerdict(verdict: Verdict): void {
  const { ok, count, head, transactions, evidence, anchors, findings, total } = verdict;
  for (const { kind, text } of findings) printLine(`${kind.padEnd(13)}${text}`);
  if (total > findings.length) printLine(`… and ${total - findings.length} more`);
  const found = total === 1 ? '1 finding' : `${total} findings`;
  printLine(
    `${ok ? 'verified' : `NOT VERIFIED, ${found}`}: ${transactions} transactions and ` +
      `${evidence} rows of evidence in ${count} batches, compared with ${anchors} kept heads`,
  );
  printLine(`head ${head}:${count}`);
}

/** Prints to standard error, so that standard output stays data. */
function progressOn(verb: string): OnProgress {
  let next = PROGRESS_EVERY;
  return (_batches, transactions) => {
    if (transactions < next) return;
    process.stderr.write(`${transactions} transactions ${verb}\n`);
    next = transactions + PROGRESS_EVERY;
  };
}

const FORMATS = { jsonl: exportLedger, hledger: exportJournal };

/** Writes the whole ledger. */
export async function exportLedgerTo({
  out,
  format,
}: {
  out: string;
  format: keyof typeof FORMATS;
}): Promise<number> {
  const save = (lines: AsyncIterable<string>) => saveFile(out, lines);
  await withDatabase(({ db }, { reports }) =>
    FORMATS[format](db, save, progressOn('exported'), reports.reconciliation.time_zone),
  );
  return 0;
}
