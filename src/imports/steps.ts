/**
 * The steps of an import, each bounded and its own commit: a killed daemon loses at most one. The
 * same rule (`operations/reported`) judges a row in the check and in the recording. When its owner
 * has it recorded, the new rows are checked and proved once more, one import after the other: its
 * proof knows what others recorded before it.
 */
import type { Db, Tx } from '../db/connect.ts';
import { type Clock, type Instant, isoText, isoTextOrNull } from '../kernel/clock.ts';
import { Failure, problemOf } from '../kernel/errors.ts';
import { type Json, parseJson } from '../kernel/json.ts';
import { entriesBefore, hasDuePostings, openingAmounts, openingsOf } from '../ledger/ledger.ts';
import {
  accountKey,
  type Checked,
  REPORTS_MAX,
  type Report,
  type Reported,
  type ReportedOperations,
  transactionKey,
} from '../operations/operations.ts';
import { positionsOf, walletsByKey } from '../reconciler/reconciler.ts';
import type { RowResult } from '../resources/operations/import.ts';
import { type FailedProof, inOrder, type Known, proveWallet } from './proof.ts';
import type { CheckedRow, Import, ReportRow } from './store.ts';
import * as store from './store.ts';

export interface StepDeps {
  db: Db;
  clock: Clock;
  reportedOperations: ReportedOperations;
  /** @throws Failure `invalid_request` with the invalid fields */
  readReport: (document: Json, now: Instant) => Report;
}

/** Whether there is more to do: now, or when the ledger has posted what is due. */
export type Step = 'more' | 'wait' | 'ended';

const ACCOUNTS = 100;
const FAILED_MAX = 100;

export async function checkStep(deps: StepDeps, one: Import): Promise<Step> {
  const { db, clock } = deps;
  if (one.checkedAt === null) {
    if (one.place === 0 && (await store.removeMovements(db, one)) > 0) return 'more';
    const rows = await store.nextRows(db, one, REPORTS_MAX);
    if (rows.length > 0) await store.saveChecked(db, one, await checkRows(deps, one, rows));
    else await store.markChecked(db, one, clock.now());
    return 'more';
  }
  // Until it is posted, what the rows were judged by would be missing in the proof.
  if (await hasDuePostings(db, one.checkedAt)) return 'wait';
  return (await proveAccounts(deps, one)) ? 'more' : endCheck(deps, one);
}

async function endCheck({ db }: StepDeps, one: Import): Promise<Step> {
  const summary = { ...store.NO_PROOFS, ...one.summary, ...(await store.summarize(db, one.id)) };
  const reason = summary.wallets.failed === 0 ? null : one.reason;
  const isProved = summary.wallets.failed === 0 || reason !== null;
  const passed = one.turn !== null && isProved ? 'recording' : 'ready';
  const state = one.refused > 0 ? 'refused' : passed;
  await store.endCheck(db, one, {
    state,
    summary,
    reason: state === 'recording' ? reason : null,
  });
  return 'more';
}

interface ReadRow extends ReportRow {
  read: Report | Failure;
}

function readRows({ readReport, clock }: StepDeps, rows: readonly ReportRow[]): ReadRow[] {
  const now = clock.now();
  return rows.map((row) => {
    try {
      return { ...row, read: readReport(parseJson(row.report), now) };
    } catch (error) {
      if (error instanceof Failure) return { ...row, read: error };
      throw error;
    }
  });
}

function reportsOf(rows: readonly ReadRow[]): Report[] {
  return rows.flatMap(({ read }) => (read instanceof Failure ? [] : read));
}

/** Judges rows as recording will, which knows the rows before them by then. */
async function checkRows(
  deps: StepDeps,
  one: Import,
  rows: readonly ReportRow[],
): Promise<CheckedRow[]> {
  const { db, reportedOperations } = deps;
  const read = readRows(deps, rows);
  const reports = reportsOf(read);
  const before = rows[0]?.n ?? 0;
  const by = { owner: one.owner, keyId: one.keyId, importId: one.id };
  const earlier = async (named: readonly string[]) => {
    const identities = reports.map(transactionKey);
    const found = await store.earlierRows(db, one.id, { before, identities, named });
    return reportsOf(readRows(deps, found));
  };
  const named = reports.flatMap(({ operationId }) => operationId ?? []);
  let results = await reportedOperations.check(reports, by, await earlier(named));
  // What resembles an operation that an earlier row names is not about that one.
  const candidates = results.flatMap(candidatesOf);
  const more = candidates.length > 0 ? await earlier([...named, ...candidates]) : [];
  if (more.length > 0) results = await reportedOperations.check(reports, by, more);
  const next = results.values();
  return read.map((row) => {
    if (row.read instanceof Failure) return checkedRow(row, failed(row.read));
    return checkedRow(row, next.next().value ?? failed(new Failure('internal')));
  });
}

function candidatesOf(checked: Checked): string[] {
  if (checked.result !== 'refused' || checked.failure.code !== 'matches_open_operation') return [];
  const { candidates } = checked.failure.members as { candidates: { operation_id: string }[] };
  return candidates.map((candidate) => candidate.operation_id);
}

function failed(failure: Failure): Checked & { result: 'refused' } {
  return { result: 'refused', failure };
}

function checkedRow({ n, line, read }: ReadRow, checked: Checked): CheckedRow {
  const report = read instanceof Failure ? undefined : read;
  const isNew = checked.result === 'recorded';
  return {
    n,
    line,
    ...outcomeOf(checked, isNew ? 'new' : checked.result),
    identity: report ? transactionKey(report) : null,
    named: report?.operationId ?? null,
    kind: report?.kind ?? null,
    occurredAt: isoTextOrNull(report?.occurredAt),
    effects: isNew ? checked.effects : [],
  };
}

function outcomeOf(outcome: Checked | Reported, result: RowResult) {
  if (outcome.result === 'refused') return { result, ...refusalOf(outcome.failure) };
  const operationId = 'operation' in outcome ? outcome.operation.id || null : null;
  return { result, problem: null, operationId };
}

function refusalOf(failure: Failure) {
  const { code, detail = null } = problemOf(failure) as { code: string; detail?: string };
  const { operation_id: id, differs = [] } = failure.members as {
    operation_id?: string;
    differs?: string[];
  };
  // An operation without an id is of an earlier row.
  if (id !== '') return { problem: { code, detail }, operationId: id ?? null };
  const facts = `an earlier line names the same transaction and differs in ${differs.join(', ')}`;
  return { problem: { code, detail: `${facts}; keep one of them` }, operationId: null };
}

/** Proves the next wallets; false when all are. */
async function proveAccounts({ db }: StepDeps, one: Import): Promise<boolean> {
  const accounts = await store.nextAccounts(db, one.id, one.provedAccount, ACCOUNTS);
  const last = accounts.at(-1);
  if (last === undefined) return false;
  const movements = await store.movementsOf(db, one.id, accounts);
  const known = await knownOf(db, accounts);
  const before = one.summary ?? store.NO_PROOFS;
  const wallets = { ...before.wallets };
  const failures: FailedProof[] = [...(before.failed as FailedProof[])];
  for (const account of accounts) {
    const wallet = known.get(account);
    if (!wallet) continue;
    const proof = proveWallet(wallet, movements.get(account) ?? []);
    wallets.touched++;
    if (proof.verdict === 'proved' || proof.verdict === 'unobserved') wallets[proof.verdict]++;
    else {
      wallets.failed++;
      if (failures.length < FAILED_MAX) failures.push({ addr: addrOf(account), ...shown(proof) });
    }
  }
  await store.saveProofs(db, one, { account: last, wallets, failed: failures });
  return true;
}

function shown(proof: object): Omit<FailedProof, 'addr'> {
  const text = ([name, value]: [string, unknown]) => [
    name,
    name === 'at' ? isoText(Number(value)) : typeof value === 'bigint' ? `${value}` : value,
  ];
  return Object.fromEntries(Object.entries(proof).map(text));
}

function addrOf(account: string): string {
  return account.slice('wallet:'.length);
}

/** What the daemon knows of wallets, by account. */
async function knownOf(db: Db, accounts: readonly string[]): Promise<Map<string, Known>> {
  const keys = accounts.map(addrOf);
  const openings = await openingsOf(db, accounts);
  const amounts = await openingAmounts(db, accounts);
  const wallets = await walletsByKey(db, keys);
  const positions = await positionsOf(db, keys);
  // An opening stands at its observation, until older entries move it before them.
  const moved = [...openings.values()].flatMap(({ account, seenAt, effectiveAt }) =>
    effectiveAt < seenAt ? [{ account: accountKey(account), before: seenAt }] : [],
  );
  const earlier = await entriesBefore(db, moved);
  return new Map(
    accounts.map((account) => {
      const opening = openings.get(account);
      const key = addrOf(account);
      const known = {
        opening: opening ? (amounts.get(account) ?? 0n) : null,
        openedAt: opening?.seenAt ?? null,
        observedAt: wallets.get(key)?.observedAt ?? null,
        drift: positions.get(key)?.drift ?? 0n,
        earlier: inOrder(earlier.get(account) ?? []),
      };
      return [account, known];
    }),
  );
}

export async function recordStep(deps: StepDeps, one: Import): Promise<Step> {
  const { db, clock, reportedOperations } = deps;
  const rows = await store.nextRows(db, one, REPORTS_MAX);
  const last = rows.at(-1);
  if (last === undefined) {
    await store.endImport(db, one.id, ['recording'], 'done', clock.now());
    return 'ended';
  }
  const read = readRows(deps, rows);
  const unread = read.flatMap(({ n, read: failure }) =>
    failure instanceof Failure ? [{ n, ...outcomeOf(failed(failure), 'refused') }] : [],
  );
  if (unread.length > 0) await store.saveRecorded(db, one.id, unread);
  const places = read.filter((row) => !(row.read instanceof Failure));
  const by = {
    owner: one.owner,
    keyId: one.keyId,
    importId: one.id,
    unproved: one.reason ?? undefined,
  };
  const ended = new Failure('conflict', 'the import has ended');
  const save = async (tx: Tx, results: ReadonlyMap<number, Reported>) => {
    const done = [...results].map(([index, reported]) => {
      return { n: places[index]?.n ?? 0, ...outcomeOf(reported, reported.result) };
    });
    // Nothing is recorded once it is answered as cancelled.
    if (!(await store.saveRecorded(tx, one.id, done))) throw ended;
  };
  try {
    await reportedOperations.report(reportsOf(read), by, save);
  } catch (error) {
    if (error === ended) return 'ended';
    throw error;
  }
  await store.passRecorded(db, one, last.n);
  return 'more';
}
