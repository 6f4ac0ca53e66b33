/**
 * The steps of an import, each bounded and its own commit. A row without a result is checked, a new
 * one is recorded: the rows say what is left, so a killed daemon loses at most one step. The same
 * rule (`operations/reported`) judges a row in the check and in the recording.
 */
import type { Db, Tx } from '../db/connect.ts';
import { type Clock, type Instant, isoText } from '../kernel/clock.ts';
import { Failure, problemOf } from '../kernel/errors.ts';
import { type Json, parseJson } from '../kernel/json.ts';
import { entriesBefore, hasDueReports, openingAmounts, openingsOf } from '../ledger/ledger.ts';
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
  /** Called after rows were recorded. */
  onRecorded: () => void;
}

/** Whether there is more to do: now, or when the ledger has posted earlier reports. */
export type Step = 'more' | 'wait' | 'ended';

const ACCOUNTS = 100;
const FAILED_MAX = 100;

/** Behind which row the next ones are looked for, so that none is read again and again. */
export interface Place {
  after: number;
}

export async function checkStep(deps: StepDeps, one: Import, place: Place): Promise<Step> {
  if (one.checked < one.lines) {
    const isWhole = place.after === 0;
    const rows = await nextRows(deps, one.id, place, null);
    if (rows.length > 0) await store.saveChecked(deps.db, one.id, await checkRows(deps, one, rows));
    if (rows.length > 0 || !isWhole) return 'more';
  }
  // Reports of another import that are not posted yet would be missing in the proof.
  if (await hasDueReports(deps.db)) return 'wait';
  const current = await store.findImport(deps.db, one.id);
  if (current?.state !== 'checking') return 'ended';
  return (await proveAccounts(deps, current)) ? 'more' : endCheck(deps, current);
}

/** None at the end of the file; then the place is its begin. */
async function nextRows({ db }: StepDeps, id: string, place: Place, result: 'new' | null) {
  const rows = await store.nextRows(db, id, { result, after: place.after, limit: REPORTS_MAX });
  place.after = rows.at(-1)?.n ?? 0;
  return rows;
}

async function endCheck({ db, clock }: StepDeps, one: Import): Promise<Step> {
  const none = { touched: 0, proved: 0, unobserved: 0, failed: 0 };
  const { wallets = none, failed = [] } = one.summary ?? {};
  await store.saveSummary(db, one.id, { ...(await store.summarize(db, one.id)), wallets, failed });
  const to = one.refused > 0 ? 'refused' : 'ready';
  await store.moveImport(db, one.id, ['checking'], to, { now: clock.now() });
  return 'ended';
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
    occurredAt: report ? isoText(report.occurredAt) : null,
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
  const before = one.summary ?? {
    wallets: { touched: 0, proved: 0, unobserved: 0, failed: 0 },
    failed: [],
  };
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

export async function recordStep(deps: StepDeps, one: Import, place: Place): Promise<Step> {
  const { db, clock, reportedOperations, onRecorded } = deps;
  const isWhole = place.after === 0;
  const rows = await nextRows(deps, one.id, place, 'new');
  if (rows.length === 0) {
    if (!isWhole) return 'more';
    await store.moveImport(db, one.id, ['recording'], 'done', { now: clock.now() });
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
  onRecorded();
  return 'more';
}
