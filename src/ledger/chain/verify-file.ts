/**
 * Verifies an exported ledger. Runs alone, with walk.ts and link.ts beside it, nothing installed:
 * `node verify-file.ts ledger.jsonl [head:count]`. It exits with 0 only if the export is whole and
 * unchanged.
 */
import { createReadStream } from 'node:fs';
import { type ChainedRows, type ChainRow, EVIDENCE_KEYS, type Link } from './link.ts';
import { type Anchor, parseAnchor, type Verdict, Walk } from './walk.ts';

/** Characters of a line; that of a batch of 100,000 transactions has 6.4 million. */
const LINE_MAX = 16_777_216;

/** A file that is not an export. */
export class NotAnExport extends Error {}

/** @throws NotAnExport, and errors of the file system */
export async function verifyFile(
  path: string,
  anchors: readonly Anchor[],
  onProgress: (batches: bigint, transactions: bigint) => void = () => {},
): Promise<Verdict> {
  const walk = new Walk(anchors);
  let link: Link | undefined;
  let end: { batches?: unknown; head?: unknown } | undefined;
  let number = 0;
  const changes = new Set<string>();
  const close = () => {
    if (!link) return;
    walk.add(link);
    if (link.chain) onProgress(link.chain.batchId, link.chain.lastTransaction);
  };
  for await (const line of linesOf(path, changes)) {
    number += 1;
    const row = parseLine(line, number);
    if (number === 1 && (row.row !== 'export' || row.format !== 2))
      throw new NotAnExport(`${path} is not an export of the ledger in format 2`);
    if (end) throw new NotAnExport(`line ${number} stands after the end of the export`);
    if (row.row === 'chain') {
      close();
      const rows = { batch: [], transactions: [], movements: [], evidence: [] };
      link = { chain: chainOf(row), chained: chainedOf(row), ...rows };
    } else if (row.row === 'end') end = row;
    else if (link) addTo(link, row, line, number);
    else if (number > 1) throw new NotAnExport(`line ${number} stands before the first chain row`);
  }
  close();
  checkEnd(walk, end, link);
  if (changes.size > 0) {
    const how = [...changes].join(' and ');
    const text = `${how}: another program saved it; its rows are compared without that`;
    walk.report('line_ends', 'the file', text);
  }
  return walk.end();
}

function addTo(link: Link, row: Row, line: string, number: number): void {
  const key = EVIDENCE_KEYS.get(row.row);
  const rows = { batch: link.batch, transaction: link.transactions, movement: link.movements };
  if (key)
    link.evidence.push({
      source: String(row.row),
      line,
      key: key.map((name) => String(row[name])).join('/'),
    });
  else if (row.row === 'batch' || row.row === 'transaction' || row.row === 'movement')
    rows[row.row].push({ id: BigInt(row.id as number), line });
  else throw new NotAnExport(`line ${number} is of no known kind`);
}

/** A carriage return at the end of a part may belong to the line feed of the next one. */
const LINE_END = /\r\n|\n|\r(?=[^\n])/;
const BYTE_ORDER_MARK = '\ufeff';

/**
 * Rows hold neither line feed nor carriage return; readline also ends lines at U+2028, which a row
 * may hold.
 * @param changes gets what a program that saved the file again made of its first and last byte and
 * of the ends of its lines
 */
async function* linesOf(path: string, changes: Set<string>): AsyncGenerator<string> {
  let rest = '';
  let isFirst = true;
  for await (const part of createReadStream(path, 'utf8')) {
    let text = `${rest}${part}`;
    if (isFirst && text.startsWith(BYTE_ORDER_MARK)) {
      changes.add('begins with a byte order mark');
      text = text.slice(1);
    }
    isFirst = false;
    if (text.includes('\0'))
      throw new NotAnExport(`${path} is not UTF-8: another program saved it`);
    if (text.includes('\r')) changes.add('ends lines with carriage returns');
    const lines = text.split(LINE_END);
    rest = lines.pop() ?? '';
    if (rest.length > LINE_MAX) throw new NotAnExport(`${path} has a line that is too long`);
    yield* lines;
  }
  const last = rest.replace(/\r$/, '');
  if (last === rest && rest !== '') changes.add('lacks the end of its last line');
  if (last !== '') yield last;
}

type Row = Record<string, unknown>;

function parseLine(line: string, number: number): Row {
  try {
    const row: unknown = JSON.parse(line);
    if (row && typeof row === 'object') return row as Row;
  } catch {
    // Below.
  }
  throw new NotAnExport(`line ${number} is not a JSON object`);
}

function chainOf(row: Row): ChainRow {
  const bytes = (name: string) => Buffer.from(String(row[name]), 'hex');
  return {
    batchId: BigInt(row.batch_id as number),
    lastTransaction: BigInt(row.last_transaction as number),
    batch: bytes('batch'),
    transactions: bytes('transactions'),
    movements: bytes('movements'),
    evidence: bytes('evidence'),
    head: bytes('head'),
  };
}

function chainedOf({ evidence_rows: named }: Row): ChainedRows[] {
  return (named as [string, string[]][]).map(([source, rowIds]) => ({ source, rowIds }));
}

function checkEnd(walk: Walk, end: Row | undefined, last: Link | undefined): void {
  const { batchId = 0n, head } = last?.chain ?? {};
  if (end?.head === (head ? `${head.toString('hex')}:${batchId}` : '')) return;
  const row = `batch ${batchId + 1n}`;
  walk.report('cut', row, 'is missing: the end of the export was cut off');
}

/** As a program; returns its exit code. */
async function main([path, kept]: string[]): Promise<number> {
  const anchor = kept === undefined ? undefined : parseAnchor(kept, 'the head that was kept');
  if (!path || (kept !== undefined && !anchor)) {
    process.stderr.write('usage: node verify-file.ts ledger.jsonl [head:count]\n');
    return 2;
  }
  const { ok, head, count, findings } = await verifyFile(path, anchor ? [anchor] : []);
  for (const { kind, text } of findings) process.stdout.write(`${kind}: ${text}\n`);
  process.stdout.write(`${ok ? 'verified' : 'NOT VERIFIED'}: ${head}:${count}\n`);
  return ok ? 0 : 1;
}

if (process.argv[1] === import.meta.filename) process.exitCode = await main(process.argv.slice(2));
