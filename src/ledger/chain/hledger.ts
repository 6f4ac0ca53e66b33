/**
 * The ledger as a journal of hledger, so that a program that we did not write can check it. Each
 * posting asserts the balance of its account after it. Pure.
 *
 * A transaction has the date on which it was recorded, because balances run in that order, and the
 * effective date as its secondary date (`hledger --date2`).
 */
import { assert } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';

const COMMODITY = '"service_token"';
/** The mark after 1000 says that amounts have no decimals. */
export const COMMODITY_LINE = `commodity 1000. ${COMMODITY}\n`;

type Line = { [key: string]: Json };

/** The first lines of the journal of a ledger. */
export function journalHead(timeZone: string): string {
  return (
    '; The ledger of Tallyhook. Check: hledger -f <this file> check\n' +
    `${daysLine(timeZone)}${COMMODITY_LINE}`
  );
}

/** Whose days a journal has. */
export function daysLine(timeZone: string): string {
  return `; Days are those of the time zone ${timeZone}\n`;
}

/** @param postings of `journalPosting` */
export function journalTransaction(transaction: {
  /** `YYYY-MM-DD`, also with a secondary date. */
  date: string;
  operationId: Json | undefined;
  about: (Json | undefined)[];
  tags: Record<string, Json | undefined>;
  postings: readonly string[];
}): string {
  const { date, operationId, about, tags, postings } = transaction;
  const code = operationId == null ? '' : ` (${oneLine(operationId)})`;
  const words = about.flatMap((part) => (part == null ? [] : [oneLine(part)]));
  return [
    `${date}${code} ${words.join(' ')}`,
    `    ; ${Object.entries(tags).flatMap(tagOf).join(', ')}`,
    ...postings,
    '',
  ].join('\n');
}

/** @param assertion `=*` is for the balance of an account with the accounts below it */
export function journalPosting(
  account: string,
  amount: string,
  balance: string,
  assertion: '=' | '=*' = '=',
): string {
  return `    ${account}  ${amount} ${COMMODITY} ${assertion} ${balance} ${COMMODITY}`;
}

/** Without the commas, which end a tag. */
export function namesOf(decidedBy: Json): string {
  return String(decidedBy).replaceAll(', ', ' and ');
}

/**
 * One transaction.
 * @param line of an exported ledger, parsed without loss, with what became known of it later
 * @param days on which it was recorded and took effect, such as 2026-12-01
 */
export function journalEntry(line: Line, days: { recorded: string; effective: string }): string {
  const { id, batch_id, kind, operation_id, reason_type, reference, entries } = line;
  assert(Array.isArray(entries), 'a transaction has entries');
  const { effective_at, effective_basis, tx_app_no, tx_log_no, reverses } = line;
  const { drift_id, reason, decided_by } = line;
  const tags = {
    transaction: id,
    batch: batch_id,
    effective: effective_at,
    basis: effective_basis,
    tx: tx_log_no && (tx_app_no === null ? tx_log_no : `${tx_app_no}/${tx_log_no}`),
    reverses,
    reference,
    drift: drift_id,
    decided_by: decided_by && namesOf(decided_by),
    reason,
  };
  return journalTransaction({
    date: `${days.recorded}=${days.effective}`,
    operationId: operation_id,
    about: [kind, reason_type],
    tags,
    postings: (entries as Line[]).map(({ account, amount, balance_after: balance }) =>
      journalPosting(String(account), String(amount), String(balance)),
    ),
  });
}

function tagOf([name, value]: [string, Json | undefined]): string[] {
  return value == null ? [] : [`${name}:${oneLine(value)}`];
}

/** Without what ends a line, a description or a tag. */
function oneLine(value: Json | undefined): string {
  return String(value).replace(/[\p{C}\p{Z};|,()]+/gu, ' ');
}
