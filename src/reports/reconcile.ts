/**
 * The reconciliation itself: everything read in one snapshot, tied together four ways. Operations
 * and ledger, the ledger and itself, the ledger and what was observed, operations and tokens. What
 * counts as a break and what as an open item is said in findings.ts. It only reads, and keeps sums
 * and bounded lists in memory, whatever the size of the books.
 */
import type { Tx } from '../db/connect.ts';
import { decimalText, sumOf } from '../kernel/amounts.ts';
import { type Instant, isoText } from '../kernel/clock.ts';
import type { ReconciliationContent, RollForward } from './content.ts';
import { type Findings, makeFindings } from './findings.ts';
import { type Limits, type Question, questionOf } from './params.ts';
import * as ledger from './queries/ledger-store.ts';
import * as operations from './queries/operations-store.ts';
import * as tokens from './queries/tokens-store.ts';
import { tieWallets } from './queries/wallets.ts';
import * as wallets from './queries/wallets-store.ts';

/**
 * Answers the content of one report.
 * @param tx a snapshot: every query must see the same instant
 * @param given the period, `to` excluded, and the present
 */
export async function reconcile(
  tx: Tx,
  given: { from: Instant; to: Instant; now: Instant; limits: Limits },
): Promise<ReconciliationContent> {
  const { from, to, now, limits } = given;
  const cutOff = await ledger.readCutOff({ tx });
  const asOf = Math.max(Math.min(to, now), cutOff.knownAt ?? 0);
  const q = questionOf(tx, { from, to, asOf, limits });
  const findings = makeFindings(asOf, limits.listMax);
  const books = await tieLedger(q, findings, cutOff);
  await tieOperations(q, findings);
  const { statement, inTransit } = await tieWallets(q, findings);
  const tied = await tieTokens(q, findings);
  findings.take(await wallets.listDriftsOpen(q));
  findings.take(await wallets.listUncovered(q));
  const { breaks, openItems } = findings.lists();
  const { gapless: _, knownAt: known_at, ...counts } = cutOff;
  return {
    format: 1,
    headline: headlineOf(breaks.total),
    verdict: breaks.total === 0 ? 'balanced' : 'breaks',
    period: { from: q.from, to: q.to },
    as_of: q.asOf,
    cut_off: {
      known_at: known_at === null ? null : isoText(known_at),
      batch: counts.batch.toString(),
      transactions: counts.transactions.toString(),
      entries: counts.entries.toString(),
      chain_head: null,
    },
    breaks,
    open_items: openItems,
    ...books,
    wallets: {
      statement,
      drift: driftOf(await wallets.sumDrifts(q)),
      drifts_closed: await wallets.countDriftsClosed(q),
      in_transit: inTransit,
    },
    tokens: tied,
    coverage: coverageOf(await wallets.countScope(q)),
  };
}

function headlineOf(breaks: number): string {
  if (breaks === 0) return 'balanced';
  return breaks === 1 ? '1 break' : `${breaks} breaks`;
}

async function tieLedger(q: Question, findings: Findings, cutOff: ledger.CutOff) {
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
  findings.take(await ledger.listIncompleteBatches(q));
  const rows = await ledger.listSums(q);
  const kinds = rows.filter(({ part }) => part === 'kind');
  const debit = sumOf(kinds.map((row) => row.debit));
  const credit = sumOf(kinds.map((row) => row.credit));
  if (debit !== credit) find('trial_balance_off', debit - credit);
  findings.take(rows.flatMap(accountOff));
  for (const row of kinds) checkRollForward(row, findings, since);
  const house = rows.filter(({ part }) => part === 'house');
  const movements = await ledger.listMovements(q);
  return {
    movements: {
      total: movements[0]?.total ?? 0,
      listed: movements.map(({ kind, reasonType: reason_type, operations, amount, fees }) => ({
        kind,
        reason_type,
        operations,
        amount: decimalText(amount),
        fees: decimalText(fees),
      })),
    },
    fees: decimalText(movements[0]?.allFees ?? 0n),
    trial_balance: {
      accounts: kinds.reduce((sum, { accounts }) => sum + accounts, 0),
      debit: decimalText(debit),
      credit: decimalText(credit),
    },
    roll_forward: kinds.map(rollForwardOf),
    house_accounts: {
      total: house[0]?.total ?? 0,
      listed: house.map((row) => ({ ...rollForwardOf(row), observed: row.observed })),
    },
  };
}

function rollForwardOf(row: ledger.SumsRow): RollForward {
  const {
    name,
    accounts,
    opening,
    priorPeriod: prior_period,
    incoming,
    outgoing,
    fees,
    closing,
  } = row;
  return {
    name,
    accounts,
    opening: decimalText(opening),
    prior_period: decimalText(prior_period),
    incoming: decimalText(incoming),
    outgoing: decimalText(outgoing),
    fees: decimalText(fees),
    closing: decimalText(closing),
  };
}

function checkRollForward(row: ledger.SumsRow, findings: Findings, since: Instant | null): void {
  const off = row.opening + row.incoming - row.outgoing - row.fees - row.closing;
  if (off === 0n) return;
  const evidence = rollForwardOf(row);
  const subject = row.name;
  findings.add({ kind: 'roll_forward_off', subject, amount: off, since, assignee: null, evidence });
}

function accountOff({ part, name, debit, since, evidence, total }: ledger.SumsRow) {
  if (part !== 'off') return [];
  const kind = 'account_off' as const;
  return [{ kind, subject: name, amount: debit, since, assignee: null, evidence, total }];
}

async function tieOperations(q: Question, findings: Findings): Promise<void> {
  const differing = await operations.listPostingsThatDiffer(q);
  findings.take(differing);
  findings.take(await operations.listReversalsThatDiffer(q));
  const surplus = differing.some(
    ({ kind }) => kind === 'posted_too_often' || kind === 'posting_without_operation',
  );
  findings.take(await operations.listMissingPostings(q, surplus));
  findings.take(await operations.listUnposted(q));
  findings.take(await operations.listOpenOutcomes(q));
  findings.take(await operations.listUnmapped(q));
}

async function tieTokens(q: Question, findings: Findings) {
  findings.take(await tokens.listTokenWrites(q));
  findings.take(await tokens.listTokensThatDiffer(q));
  const supply = await tokens.listSupply(q);
  return {
    supply: {
      total: supply[0]?.total ?? 0,
      listed: supply.map(({ total: _, contractId: contract_id, ...counts }) => ({
        contract_id: contract_id.toString(),
        ...counts,
      })),
    },
    writes: await tokens.countTokenWrites(q),
  };
}

function driftOf({ upCount: up_count, up, downCount: down_count, down }: wallets.DriftSums) {
  return {
    up: { count: up_count, amount: up.toString() },
    down: { count: down_count, amount: down.toString() },
  };
}

function coverageOf(rows: readonly wallets.ScopeRow[]) {
  const countOf = (standing: wallets.ScopeRow['standing']) =>
    rows.filter((row) => row.standing === standing).reduce((sum, { count }) => sum + count, 0);
  const causesOf = (standing: wallets.ScopeRow['standing']) =>
    rows.flatMap(({ standing: of, cause, count }) =>
      of === standing ? [{ cause: cause ?? 'not said', count }] : [],
    );
  const seen = rows.flatMap(({ oldest }) => oldest ?? []);
  return {
    in_scope: rows.reduce((sum, { count }) => sum + count, 0),
    checked: countOf('checked'),
    stale: countOf('stale'),
    never_seen: countOf('never_seen'),
    inconclusive: causesOf('inconclusive'),
    unopened: causesOf('unopened'),
    oldest_check_at: seen.length === 0 ? null : isoText(Math.min(...seen)),
  };
}
