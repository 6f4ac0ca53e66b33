/**
 * Compares ledger and observed balance of every opened wallet. Every difference is attributed to
 * postings after the observation, unposted operations, included open operations or open drifts; the
 * rest is a finding.
 */
import { sumOf } from '../../kernel/amounts.ts';
import { subsetsWithSum } from '../../operations/operations.ts';
import type { InTransit, WalletStatement } from '../content.ts';
import type { Findings } from '../findings.ts';
import type { ReportParams } from '../params.ts';
import { pagesOfWallets, type WalletRow } from './wallets-store.ts';

/** Open operations per wallet whose subsets are tried. */
const OPEN_MAX = 12;

/** Differences over all wallets. */
interface Sums {
  inTransit: bigint;
  up: bigint;
  down: bigint;
}

/** @param afterPeriod of the ledger of these wallets, what took effect after the period */
export async function reconcileWallets(
  params: ReportParams,
  findings: Findings,
  afterPeriod: bigint,
): Promise<{ statement: WalletStatement; inTransit: { total: number; listed: InTransit[] } }> {
  const sums: Sums = { inTransit: 0n, up: 0n, down: 0n };
  const transit = { total: 0, listed: [] as InTransit[] };
  let totals: WalletRow | undefined;
  for await (const page of pagesOfWallets(params)) {
    totals ??= page[0];
    for (const row of page) {
      if (row.addr === null) continue;
      const found = reconcileWallet(row, row.addr, findings, sums);
      if (found === undefined) continue;
      transit.total += 1;
      if (transit.listed.length < params.limits.listMax) transit.listed.push(found);
    }
  }
  return { statement: statementOf(totals, sums, afterPeriod), inTransit: transit };
}

/** The open operations that the observation includes, if any. */
function reconcileWallet(
  row: WalletRow,
  addr: string,
  findings: Findings,
  sums: Sums,
): InTransit | undefined {
  const { residual, verdict, cause } = row;
  const effects = new Map((row.candidates ?? []).map(({ id, effect }) => [id, BigInt(effect)]));
  const included = includedIn(row, effects);
  if (included) {
    if (residual === 0n && included.length === 0) return undefined;
    sums.inTransit += residual;
    return { addr, amount: residual.toString(), operations: included };
  }
  if (residual > 0n) sums.up += residual;
  else sums.down += residual;
  // The drift is listed as a finding of its own.
  if (row.inexactDrift) return undefined;
  const kind =
    verdict === 'drifting' && cause === 'suspected'
      ? 'drift_suspected'
      : verdict === 'inconclusive' || row.possible > OPEN_MAX
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

/** The ids of a subset that explains the residual; with too many operations, of the first ones. */
function includedIn(
  { residual, possible, up, down }: WalletRow,
  effects: ReadonlyMap<string, bigint>,
): string[] | undefined {
  if (possible <= OPEN_MAX) return idsWithSum(effects, residual);
  return down <= residual && residual <= up ? [...effects.keys()].sort() : undefined;
}

/** The operation ids of a subset with this sum; the same one for equal effects. */
function idsWithSum(effects: ReadonlyMap<string, bigint>, sum: bigint): string[] | undefined {
  const ids = [...effects.keys()].sort();
  const vectors = ids.map((id) => [effects.get(id) ?? 0n]);
  const [found] = subsetsWithSum(vectors, [sum], 1);
  return Array.isArray(found) ? found.flatMap((i) => ids[i] ?? []) : undefined;
}

/** @throws Error if the lines do not sum to the observed balance */
function statementOf(
  totals: WalletRow | undefined,
  sums: Sums,
  afterPeriod: bigint,
): WalletStatement {
  const { wallets = 0, ledger = 0n } = totals ?? {};
  const { late = 0n, due = 0n, observed = 0n } = totals ?? {};
  const { driftUp: drift_up = 0n, driftDown: drift_down = 0n } = totals ?? {};
  const lines = {
    ledger: ledger - afterPeriod,
    after_period: afterPeriod,
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
  if (sumOf(Object.values(lines)) !== observed)
    throw new Error('the wallet statement does not sum to the observed balance');
  return { wallets, ...text };
}
