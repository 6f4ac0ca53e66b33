/** What an import would record and what balances prove of it, as text; progress on a terminal. */
import type { imported } from '../../resources/operations/import.ts';
import type { Shown } from '../../resources/resource.ts';

export type Import = Shown<typeof imported>;
export type Summary = NonNullable<Import['summary']>;

const SHOWN_MAX = 20;

export function summaryText(one: Import, summary: Summary): string {
  const { lines, skipped, to_record, known, refused, ignored_columns: ignored } = one;
  const { period, kinds, accounts, wallets, failed } = summary;
  const counted = Object.entries(kinds).map(([kind, n]) => `${n} ${kind}`);
  const rows = accounts
    .slice(0, SHOWN_MAX)
    .map((row) => `  ${row.account}: ${row.movements} movements, in ${row.in}, out ${row.out}`);
  return [
    `${lines} lines: ${to_record} to record, ${known} known, ${refused} refused`,
    ...(skipped > 0 ? [`Left out, since they were not executed: ${skipped}`] : []),
    ...(ignored.length > 0 ? [`Ignored columns: ${ignored.join(', ')}`] : []),
    ...(period ? [`From ${period.from} to ${period.to}: ${counted.join(', ')}`] : []),
    ...rows,
    ...(accounts.length > SHOWN_MAX ? ['  and others; --json lists a hundred'] : []),
    `Balance proof: ${wallets.touched} wallets: ${wallets.proved} proved, ` +
      `${wallets.failed} failed, ${wallets.unobserved} not observed`,
    ...failed.slice(0, SHOWN_MAX).map(failedText),
    ...(wallets.failed > SHOWN_MAX ? [`  and ${wallets.failed - SHOWN_MAX} more`] : []),
    ...(wallets.unobserved > 0
      ? ['Watch the wallets that are not observed (watches import) to have them proved as well.']
      : []),
  ].join('\n');
}

function failedText({ addr, verdict, ...proof }: Summary['failed'][number]): string {
  if (verdict === 'impossible')
    return (
      `  ${addr}: impossible: its opening becomes ${proof.opening} instead of ${proof.was}, and ` +
      `from line ${proof.line} (${proof.at}) on its balance is ${proof.balance}`
    );
  return (
    `  ${addr}: contradicted: since its first observation the file moves ${proof.moved} from ` +
    `line ${proof.line} on, and the observations show ${proof.drift} beyond the ledger`
  );
}

const ERASE = '\r\u001b[K';

export function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`${ERASE}${text}`);
}

export function clearProgress(): void {
  if (process.stderr.isTTY) process.stderr.write(ERASE);
}
