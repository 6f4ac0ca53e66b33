/**
 * Verifies the ledger of a database and the evidence in its hash chain, and exports them for a
 * verification elsewhere: some batches at a time, so memory does not grow with them. An export
 * reads one snapshot; a verification, which runs every day, reads many short ones, so that it keeps
 * no old rows of other tables alive.
 */
import { daysOf } from '../../db/clock/calendar.ts';
import type { Db, Tx } from '../../db/connect.ts';
import { DAY_MS } from '../../kernel/clock.ts';
import { type Json, parseJson } from '../../kernel/json.ts';
import { listDayEndsOff } from '../day-ends.ts';
import { journalEntry, journalHead } from './hledger.ts';
import { listAccountsOff, listBookings, listLateNumbers, readLinks, setReadOnly } from './lines.ts';
import type { ChainRow, Link } from './link.ts';
import { type Anchor, type Verdict, Walk } from './walk.ts';

/** A day: some hundred million transactions. */
const DEADLINE_MS = DAY_MS;

export type OnProgress = (batches: bigint, transactions: bigint) => void;

/**
 * @param onProgress is called after each batch
 * @param signal aborts between two pages
 * @throws the reason of the signal
 */
export async function verifyLedger(
  db: Db,
  anchors: readonly Anchor[],
  onProgress: OnProgress = () => {},
  signal?: AbortSignal,
): Promise<Verdict> {
  const walk = new Walk(anchors);
  for await (const link of readLinks((work) => inSnapshot(db, work))) {
    signal?.throwIfAborted();
    walk.add(link);
    if (link.chain) onProgress(link.chain.batchId, link.chain.lastTransaction);
  }
  const [accounts, dayEnds] = await inSnapshot(db, async (tx) => [
    await listAccountsOff(tx),
    await listDayEndsOff(tx),
  ]);
  for (const { row, text } of accounts) walk.report('account_off', row, text);
  for (const { row, text } of dayEnds) walk.report('day_end_off', row, text);
  return walk.end();
}

/**
 * Gives the ledger as lines of JSON to `save`: for each batch its chain row, then the lines whose
 * digests are in it; at last a line with the counts and the head.
 */
export function exportLedger(
  db: Db,
  save: (lines: AsyncIterable<string>) => Promise<void>,
  onProgress: OnProgress = () => {},
): Promise<void> {
  return inSnapshot(db, (tx) => save(exportedLines(tx, onProgress)));
}

/**
 * Gives the ledger as a journal of hledger to `save`; the last line has the count and the head.
 * @param timeZone whose days it has
 */
export function exportJournal(
  db: Db,
  save: (lines: AsyncIterable<string>) => Promise<void>,
  onProgress: OnProgress,
  timeZone: string,
): Promise<void> {
  return inSnapshot(db, (tx) => save(journalOf(tx, onProgress, timeZone)));
}

async function* journalOf(
  tx: Tx,
  onProgress: OnProgress,
  timeZone: string,
): AsyncGenerator<string> {
  let count = 0;
  let head = 'none';
  yield journalHead(timeZone);
  for await (const { chain, transactions } of readLinks((work) => work(tx))) {
    if (!chain) break;
    const lines = transactions.map(({ line }) => parseJson(line) as { [key: string]: Json });
    const unnumbered = lines.flatMap(({ tx_log_no: no, operation_id: id }) =>
      no === null && typeof id === 'string' ? [id] : [],
    );
    const numbers = await listLateNumbers(tx, unnumbered);
    const requests = lines.flatMap(({ posting_request_id: id }) =>
      typeof id === 'string' ? [id] : [],
    );
    const bookings = await listBookings(tx, requests);
    const times = lines.flatMap(({ recorded_at: recorded, effective_at: effective }) =>
      [recorded, effective].map((text) => Date.parse(String(text))),
    );
    const days = await daysOf(tx, times, timeZone);
    for (const [i, line] of lines.entries()) {
      const late = numbers.get(String(line.operation_id));
      const booking = bookings.get(String(line.posting_request_id));
      const [recorded = '', effective = ''] = days.slice(2 * i, 2 * i + 2);
      yield `\n${journalEntry({ ...line, ...late, ...booking }, { recorded, effective })}`;
    }
    count += transactions.length;
    head = headOf(chain);
    onProgress(chain.batchId, chain.lastTransaction);
  }
  yield `\n; ${count} transactions, head ${head}\n`;
}

async function* exportedLines(tx: Tx, onProgress: OnProgress): AsyncGenerator<string> {
  const end = { row: 'end', batches: 0, transactions: 0, movements: 0, evidence: 0, head: '' };
  yield `${JSON.stringify({ row: 'export', format: 2 })}\n`;
  for await (const link of readLinks((work) => work(tx))) {
    const { chain, batch, transactions, movements, evidence } = link;
    if (!chain) break;
    yield `${chainLine(chain, link)}\n`;
    for (const { line } of [...batch, ...transactions, ...movements, ...evidence])
      yield `${line}\n`;
    end.batches += 1;
    end.transactions += transactions.length;
    end.movements += movements.length;
    end.evidence += evidence.length;
    end.head = headOf(chain);
    onProgress(chain.batchId, chain.lastTransaction);
  }
  yield `${JSON.stringify(end)}\n`;
}

function headOf({ head, batchId }: ChainRow): string {
  return `${head.toString('hex')}:${batchId}`;
}

function chainLine(chain: ChainRow, { chained }: Link): string {
  return JSON.stringify({
    row: 'chain',
    batch_id: Number(chain.batchId),
    last_transaction: Number(chain.lastTransaction),
    batch: chain.batch.toString('hex'),
    transactions: chain.transactions.toString('hex'),
    movements: chain.movements.toString('hex'),
    evidence: chain.evidence.toString('hex'),
    evidence_rows: chained.map(({ source, rowIds }) => [source, rowIds]),
    head: chain.head.toString('hex'),
  });
}

function inSnapshot<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  return db.begin(
    async (tx) => {
      await setReadOnly(tx);
      return work(tx);
    },
    { snapshot: true, deadlineMs: DEADLINE_MS },
  );
}
