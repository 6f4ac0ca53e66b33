/** What an import would record, added up and as text; its progress on a terminal. */
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { FailedProof, WalletProofs } from './proof.ts';

export interface Problem {
  code: string;
  detail?: string;
}

interface Sums {
  movements: number;
  in: bigint;
  out: bigint;
}

export interface Tally {
  lines: number;
  known: number;
  readonly refused: number;
  /** Counts a refused line; false when so many were refused that it is not listed. */
  refuse(line: number, problem: Problem): boolean;
  record(kind: string, at: Instant): void;
  move(account: string, amount: bigint): void;
  output(): Totals;
}

interface Totals {
  lines: number;
  to_record: number;
  known: number;
  refused: number;
  /** Null when nothing is to be recorded. */
  period: { from: string; to: string } | null;
  kinds: Record<string, number>;
  /** Those that move most. */
  accounts: { account: string; movements: number; in: string; out: string }[];
  /** The first refused lines. */
  errors: ({ line: number } & Problem)[];
}

const LISTED_MAX = 1_000;
const SHOWN_MAX = 20;

export function makeTally(): Tally {
  const kinds: Record<string, number> = {};
  const sums = new Map<string, Sums>();
  const errors: Totals['errors'] = [];
  let [from, to, toRecord, refused] = [Number.POSITIVE_INFINITY, 0, 0, 0];
  return {
    lines: 0,
    known: 0,
    get refused() {
      return refused;
    },
    refuse(line, { code, detail }) {
      const isListed = refused++ < LISTED_MAX;
      if (isListed) errors.push({ line, code, ...(detail === undefined ? {} : { detail }) });
      return isListed;
    },
    record(kind, at) {
      toRecord++;
      kinds[kind] = (kinds[kind] ?? 0) + 1;
      [from, to] = [Math.min(from, at), Math.max(to, at)];
    },
    move(account, amount) {
      const sum = sums.get(account) ?? { movements: 0, in: 0n, out: 0n };
      sum.movements++;
      if (amount > 0n) sum.in += amount;
      else sum.out -= amount;
      sums.set(account, sum);
    },
    output() {
      const moved = ([, sum]: [string, Sums]) => sum.in + sum.out;
      const byName = (a: [string, Sums], b: [string, Sums]) => (a[0] < b[0] ? -1 : 1);
      const listed = [...sums].sort((a, b) =>
        moved(a) === moved(b) ? byName(a, b) : moved(a) > moved(b) ? -1 : 1,
      );
      return {
        lines: this.lines,
        to_record: toRecord,
        known: this.known,
        refused,
        kinds,
        errors,
        period: toRecord === 0 ? null : { from: isoText(from), to: isoText(to) },
        accounts: listed.slice(0, LISTED_MAX).map(([account, { movements, ...sum }]) => ({
          account,
          movements,
          in: sum.in.toString(),
          out: sum.out.toString(),
        })),
      };
    },
  };
}

export function tallyText(
  tally: Tally,
  { wallets, failed }: WalletProofs,
  ignored: ReadonlySet<string>,
): string {
  const { lines, to_record, known, refused, period, kinds, accounts } = tally.output();
  const counted = Object.entries(kinds).map(([kind, n]) => `${n} ${kind}`);
  const rows = accounts
    .slice(0, SHOWN_MAX)
    .map((row) => `  ${row.account}: ${row.movements} movements, in ${row.in}, out ${row.out}`);
  const unobserved = wallets.unobserved
    ? ['Watch the wallets that are not observed (watches import) to have them proved as well.']
    : [];
  return [
    `${lines} lines: ${to_record} to record, ${known} known, ${refused} refused`,
    ...(ignored.size > 0 ? [`Ignored columns: ${[...ignored].join(', ')}`] : []),
    ...(period ? [`From ${period.from} to ${period.to}: ${counted.join(', ')}`] : []),
    ...rows,
    ...(accounts.length > SHOWN_MAX ? ['  and others; --json lists a thousand'] : []),
    `Balance proof: ${wallets.touched} wallets: ${wallets.proved} proved, ` +
      `${wallets.failed} failed, ${wallets.unobserved} not observed`,
    ...failed.slice(0, SHOWN_MAX).map(failedText),
    ...(wallets.failed > SHOWN_MAX ? [`  and ${wallets.failed - SHOWN_MAX} more`] : []),
    ...unobserved,
  ].join('\n');
}

function failedText({ addr, verdict, ...proof }: FailedProof): string {
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
