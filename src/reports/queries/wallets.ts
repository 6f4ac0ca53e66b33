/**
 * The ledger against the service, wallet by wallet, with a name for every difference: what was
 * posted after the look, what is executed and not yet posted, which open writes the look shows,
 * which drift is open. What then remains is a break, unless a look could not tell yet.
 */
import { sumOf } from '../../kernel/amounts.ts';
import { subsetsWithSum } from '../../kernel/subset-sums.ts';
import type { InTransit, WalletStatement } from '../content.ts';
import type { Findings } from '../findings.ts';
import type { Question } from '../params.ts';
import { pagesOfWallets, type WalletRow } from './wallets-store.ts';

/** With more open writes on one wallet no subset of them is searched for. */
const OPEN_MAX = 12;

/** What one wallet came to. */
interface Sums {
  inTransit: bigint;
  up: bigint;
  down: bigint;
}

/** Judges every opened wallet; what remains goes to the findings. */
export async function tieWallets(
  q: Question,
  findings: Findings,
): Promise<{ statement: WalletStatement; inTransit: { total: number; listed: InTransit[] } }> {
  const sums: Sums = { inTransit: 0n, up: 0n, down: 0n };
  const transit = { total: 0, listed: [] as InTransit[] };
  let totals: WalletRow | undefined;
  for await (const page of pagesOfWallets(q)) {
    totals ??= page[0];
    for (const row of page) {
      if (row.addr === null) continue;
      const shown = judge(row, row.addr, findings, sums);
      if (shown === undefined) continue;
      transit.total += 1;
      if (transit.listed.length < q.limits.listMax) transit.listed.push(shown);
    }
  }
  return { statement: statementOf(totals, sums), inTransit: transit };
}

/** Answers the open writes that the look shows, if it shows any. */
function judge(
  row: WalletRow,
  addr: string,
  findings: Findings,
  sums: Sums,
): InTransit | undefined {
  const { residual, verdict, cause } = row;
  const effects = new Map(
    Object.entries(row.optional ?? {}).map(([id, amount]) => [id, BigInt(amount)]),
  );
  const shown = effects.size <= OPEN_MAX ? namesWithSum(effects, residual) : undefined;
  if (shown) {
    if (shown.length === 0) return undefined;
    sums.inTransit += residual;
    return { addr, amount: residual.toString(), operations: shown };
  }
  if (residual > 0n) sums.up += residual;
  else sums.down += residual;
  const kind =
    verdict === 'drifting' && cause === 'suspected'
      ? 'drift_suspected'
      : verdict === 'inconclusive' || effects.size > OPEN_MAX
        ? 'wallet_undetermined'
        : 'observed_not_explained';
  const evidence = {
    observation: row.observationId,
    verdict,
    cause,
    open_operations: [...effects.keys()].sort().slice(0, OPEN_MAX),
  };
  findings.add({
    kind,
    subject: `wallet:${addr}`,
    amount: residual,
    since: row.observedAt,
    assignee: null,
    evidence,
  });
  return undefined;
}

/** The names of a subset with this sum; for equal effects always the same one. */
function namesWithSum(effects: ReadonlyMap<string, bigint>, sum: bigint): string[] | undefined {
  const names = [...effects.keys()].sort();
  const vectors = names.map((name) => [effects.get(name) ?? 0n]);
  const [found] = subsetsWithSum(vectors, [sum], 1);
  return Array.isArray(found) ? found.flatMap((i) => names[i] ?? []) : undefined;
}

/** The lines of the statement; they sum to what was observed. */
function statementOf(totals: WalletRow | undefined, sums: Sums): WalletStatement {
  const { wallets = 0, ledger = 0n, late = 0n, due = 0n, observed = 0n } = totals ?? {};
  const { driftUp: drift_up = 0n, driftDown: drift_down = 0n } = totals ?? {};
  const lines = {
    ledger,
    posted_after_observation: -late,
    not_yet_posted: due,
    in_transit: sums.inTransit,
    drift_up,
    drift_down,
    unexplained_up: sums.up,
    unexplained_down: sums.down,
  };
  const text = Object.fromEntries(
    Object.entries({ ...lines, observed }).map(([name, amount]) => [name, amount.toString()]),
  ) as Omit<WalletStatement, 'wallets'>;
  if (sumOf(Object.values(lines)) !== observed) throw new Error('the statement does not tie');
  return { wallets, ...text };
}
