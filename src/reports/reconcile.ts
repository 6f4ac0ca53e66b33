/**
 * Computes a reconciliation from one snapshot: operations against ledger, the ledger against
 * itself, ledger against observations, operations against tokens. Only sums and bounded lists are
 * held in memory.
 */
import type { Tx } from '../db/connect.ts';
import { sumOf } from '../kernel/amounts.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import { findDayEnd } from '../ledger/ledger.ts';
import { type Reconciliation, reconciliation, rollForward } from '../resources/reports/content.ts';
import type { Row } from '../resources/resource.ts';
import { shower } from '../resources/show.ts';
import { type Findings, makeFindings } from './findings.ts';
import { type Limits, type ReportParams, reportParams } from './params.ts';
import { findClosedUntil } from './periods/store.ts';
import * as drifts from './queries/drifts.ts';
import * as ledger from './queries/ledger.ts';
import * as operations from './queries/operations.ts';
import * as tokens from './queries/tokens.ts';
import * as wallets from './queries/wallets.ts';

type Content = Row<typeof reconciliation>;

const show = shower(reconciliation);
const showRollForward = shower(rollForward);

/** @param tx a transaction with a snapshot, which every query reads */
export async function reconcile(
  tx: Tx,
  input: {
    from: Instant;
    to: Instant;
    now: Instant;
    limits: Limits;
    organisation: string | null;
    timeZone: string;
  },
): Promise<Reconciliation> {
  const { from, to, now, limits } = input;
  const days = {
    from: await findDayEnd(tx, isoText(from)),
    to: await findDayEnd(tx, isoText(to)),
    newest: await findDayEnd(tx),
  };
  const cutOff = await ledger.readCutOff(tx, days.newest);
  const asOf = Math.min(to, now);
  const judgedAt = Math.max(asOf, cutOff.knownAt ?? 0);
  const closed = await findClosedUntil(tx, from);
  const params = reportParams(tx, { from, to, asOf, judgedAt, closed, days, limits });
  const findings = makeFindings(asOf, limits.listMax);
  const { afterPeriod, ...ledgerParts } = await reconcileLedger(params, findings, {
    cutOff,
    timeZone: input.timeZone,
  });
  await reconcileOperations(params, findings);
  const { statement, inTransit } = await wallets.reconcileWallets(params, findings, afterPeriod);
  const tokenParts = await reconcileTokens(params, findings);
  findings.addRows(await drifts.listDriftsOpen(params));
  findings.addRows(await wallets.listVanishedWallets(params));
  findings.addRows(await wallets.listQuarantinedObservations(params));
  findings.addRows(await wallets.listUncovered(params));
  const { breaks, openItems } = findings.lists();
  return show({
    format: 1,
    headline: headlineOf(breaks.total),
    verdict: breaks.total === 0 ? 'balanced' : 'breaks',
    organisation: input.organisation,
    timeZone: input.timeZone,
    period: { from, to },
    provisional: now < to,
    asOf,
    cutOff,
    breaks,
    openItems,
    ...ledgerParts,
    priorPeriod: await priorPeriodOf(params, closed),
    wallets: { statement, ...(await driftsOf(params)), inTransit },
    tokens: tokenParts,
    coverage: coverageOf(await wallets.countScope(params)),
  });
}

function headlineOf(breaks: number): string {
  if (breaks === 0) return 'balanced';
  return breaks === 1 ? '1 break' : `${breaks} breaks`;
}

async function reconcileLedger(
  params: ReportParams,
  findings: Findings,
  { cutOff, timeZone }: { cutOff: ledger.CutOff; timeZone: string },
) {
  const { batch, transactions } = cutOff;
  const since = cutOff.knownAt;
  const find = (
    kind: 'numbering_gap' | 'trial_balance_off',
    amount: bigint | null,
    evidence = {},
  ) => findings.add({ kind, subject: 'ledger', amount, since, assignee: null, evidence });
  if (!cutOff.gapless) {
    const counted = { last_batch: batch.toString(), transactions: transactions.toString() };
    find('numbering_gap', null, counted);
  }
  findings.addRows(await ledger.listIncompleteBatches(params));
  const rows = await ledger.listSums(params);
  const kinds = rows.filter(({ part }) => part === 'kind');
  const debit = sumOf(kinds.map((row) => row.debit));
  const credit = sumOf(kinds.map((row) => row.credit));
  const off = sumOf(kinds.map((row) => row.whole));
  if (off !== 0n || debit !== credit) find('trial_balance_off', off || debit - credit);
  findings.addRows(rows.flatMap(accountOff));
  for (const row of kinds) checkRollForward(row, findings, since);
  const own = rows.filter(({ part }) => part === 'own');
  return {
    afterPeriod: sumOf(kinds.map((row) => row.afterPeriod)),
    ...(await movementsOf(params, timeZone)),
    trialBalance: {
      accounts: kinds.reduce((sum, { accounts }) => sum + accounts, 0),
      debit,
      credit,
    },
    rollForward: kinds.filter(({ accounts }) => accounts > 0),
    ownAccounts: { total: own[0]?.total ?? 0, listed: own },
  };
}

async function movementsOf(params: ReportParams, timeZone: string) {
  const begin = await ledger.findBeginBefore(params, timeZone);
  const rows = await ledger.listMovements(params, isoText(begin));
  const [first] = rows;
  return {
    movements: {
      total: first?.total ?? 0,
      before: { from: begin, to: Date.parse(params.from), fees: first?.allBeforeFees ?? 0n },
      listed: rows.map(({ beforeOperations, beforeAmount, beforeFees, ...row }) => ({
        ...row,
        before: { operations: beforeOperations, amount: beforeAmount, fees: beforeFees },
      })),
    },
    fees: first?.allFees ?? 0n,
  };
}

async function priorPeriodOf(
  params: ReportParams,
  closed: { periodTo: Instant; knownAt: Instant } | undefined,
): Promise<Content['priorPeriod']> {
  const lines = await ledger.listPriorLines(params);
  return {
    closedUntil: closed?.periodTo ?? null,
    knownAt: closed?.knownAt ?? null,
    total: lines[0]?.total ?? 0,
    listed: lines,
  };
}

function checkRollForward(row: ledger.SumsRow, findings: Findings, since: Instant | null): void {
  const off = row.opening + row.incoming - row.outgoing - row.fees - row.closing;
  if (off === 0n) return;
  const evidence = showRollForward(row);
  const subject = row.name;
  findings.add({ kind: 'roll_forward_off', subject, amount: off, since, assignee: null, evidence });
}

function accountOff({ part, name, debit, since, evidence, total }: ledger.SumsRow) {
  if (part !== 'off') return [];
  const kind = 'account_off' as const;
  return [{ kind, subject: name, amount: debit, since, assignee: null, evidence, total }];
}

async function reconcileOperations(params: ReportParams, findings: Findings): Promise<void> {
  const differing = await operations.listPostingsThatDiffer(params);
  findings.addRows(differing);
  findings.addRows(await operations.listReversalsThatDiffer(params));
  const surplus = differing.some(
    ({ kind }) => kind === 'posted_too_often' || kind === 'posting_without_operation',
  );
  findings.addRows(await operations.listMissingPostings(params, surplus));
  findings.addRows(await operations.listUnposted(params));
  findings.addRows(await operations.listOpenOutcomes(params));
  findings.addRows(await operations.listUnmapped(params));
}

async function reconcileTokens(params: ReportParams, findings: Findings) {
  findings.addRows(await tokens.listTokenWrites(params));
  findings.addRows(await tokens.listTokensThatDiffer(params));
  const supply = await tokens.listSupply(params);
  return {
    supply: { total: supply[0]?.total ?? 0, listed: supply },
    writes: await tokens.countTokenWrites(params),
  };
}

async function driftsOf(params: ReportParams) {
  const { upCount, up, downCount, down } = await drifts.sumDrifts(params);
  return {
    drift: { up: { count: upCount, amount: up }, down: { count: downCount, amount: down } },
    driftAges: await drifts.listDriftAges(params),
    driftsClosed: await drifts.countDriftsClosed(params),
    driftResolutionMedianS: await drifts.medianResolution(params),
  };
}

function coverageOf(rows: readonly wallets.ScopeRow[]) {
  const countOf = (standing: wallets.ScopeRow['standing']) =>
    rows.filter((row) => row.standing === standing).reduce((sum, { count }) => sum + count, 0);
  const causesOf = (standing: wallets.ScopeRow['standing']) =>
    rows.flatMap(({ standing: of, cause, count }) =>
      of === standing ? [{ cause: cause ?? 'not recorded', count }] : [],
    );
  const checked = rows.flatMap(({ oldest }) => oldest ?? []);
  return {
    inScope: rows.reduce((sum, { count }) => sum + count, 0),
    checked: countOf('checked'),
    stale: countOf('stale'),
    neverObserved: countOf('never_observed'),
    inconclusive: causesOf('inconclusive'),
    unopened: causesOf('unopened'),
    oldestCheckAt: checked.length === 0 ? null : Math.min(...checked),
  };
}
