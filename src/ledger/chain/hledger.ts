/**
 * The ledger as a journal of hledger, so that a program that we did not write can check it. Each
 * posting asserts the balance of its account after it. Pure.
 *
 * A transaction has the date on which it was recorded, because balances run in that order, and the
 * effective date as its secondary date (`hledger --date2`). Days are those of UTC.
 */
import { assert } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';

const COMMODITY = '"service_token"';

type Line = { [key: string]: Json };

/** The first lines of a journal. The mark after 1000 says that amounts have no decimals. */
export function journalHead(): string {
  return (
    '; The ledger of Tallyhook. Check it with: hledger -f <this file> check\n' +
    `commodity 1000. ${COMMODITY}\n`
  );
}

/** One transaction. @param line of an exported ledger, parsed without loss */
export function journalEntry(line: Line): string {
  const { id, batch_id, kind, operation_id, reason_type, reference, entries } = line;
  assert(Array.isArray(entries), 'a transaction has entries');
  const { recorded_at, effective_at, effective_basis, tx_app_no, tx_log_no, reverses } = line;
  const tags = {
    ...{ transaction: id, batch: batch_id, effective: effective_at, basis: effective_basis },
    tx: tx_log_no === null ? null : `${tx_app_no}/${tx_log_no}`,
    ...{ reverses, reference },
  };
  const head = `${dayOf(recorded_at)}=${dayOf(effective_at)}`;
  const code = operation_id === null ? '' : ` (${oneLine(operation_id)})`;
  const about = [kind, reason_type].flatMap((part) => (part === null ? [] : [oneLine(part)]));
  return [
    `${head}${code} ${about.join(' ')}`,
    `    ; ${Object.entries(tags).flatMap(tagOf).join(', ')}`,
    ...(entries as Line[]).map(postingOf),
    '',
  ].join('\n');
}

function postingOf({ account, amount, balance_after }: Line): string {
  return `    ${account}  ${amount} ${COMMODITY} = ${balance_after} ${COMMODITY}`;
}

function dayOf(instant: Json | undefined): string {
  return String(instant).slice(0, 10);
}

function tagOf([name, value]: [string, Json | undefined]): string[] {
  return value == null ? [] : [`${name}:${oneLine(value)}`];
}

/** Without what ends a line, a description or a tag. */
function oneLine(value: Json | undefined): string {
  return String(value).replace(/[\p{C}\p{Z};|,()]+/gu, ' ');
}
