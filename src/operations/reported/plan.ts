/**
 * Plans what a batch of reports changes. Each report is judged against the known operations and
 * against the reports before it in the batch. Pure.
 *
 * A transaction number or hash names one write: a report that repeats it is known, and one that
 * differs in a fact is refused. A report that resembles one of our writes without a number is
 * refused until the reporter names that operation or declares the report distinct; otherwise one
 * write could be counted twice.
 */

import { sameAddress, txHashKey } from '../../kernel/addresses.ts';
import { type Instant, isoText, isoTextOrNull } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import {
  type Kind,
  newOperation,
  type Operation,
  type State,
  sameApp,
  type WriteFields,
} from '../operation.ts';
import type { Move } from '../transitions.ts';

/** A write that was made elsewhere, as reported. */
export interface Report {
  kind: Exclude<Kind, 'other'>;
  /** Of a token write; filled in before this rule is applied. */
  txAppNo: bigint | null;
  txLogNo: bigint | null;
  /** Of an NFT write. */
  txHash: string | null;
  occurredAt: Instant;
  fields: Required<WriteFields>;
  reference: string | null;
  /** The operation that it is about. */
  operationId: string | null;
  /** True when the reporter declares it a different write from all similar operations. */
  distinct: boolean;
  /** The report as received. */
  body: string;
}

/** Who reports. */
export interface Reporter {
  owner: string;
  keyId: string;
  /** The import that they come from. */
  importId?: string | undefined;
  /** Why they are recorded without a balance proof, of an import that says so. */
  unproved?: string | undefined;
}

/** A report and its index in the batch. */
export interface NumberedReport {
  n: number;
  report: Report;
  by: Reporter;
}

/** Operations that reports of a batch match; planning adds those of the batch itself. */
export interface BatchMatches {
  /** By the key of the transaction. */
  sameNumber: Map<string, Operation[]>;
  /** By id. */
  named: Map<string, Operation>;
  /** By the index of the report. */
  alike: ReadonlyMap<number, readonly Operation[]>;
}

/** What a report adds to an executed operation without a number. */
export interface Numbering {
  id: string;
  txAppNo: bigint | null;
  txLogNo: bigint | null;
  txHash: string | null;
  tokenId: bigint | null;
  evidence: Json;
}

export interface ReportPlan {
  fresh: { n: number; operation: Operation; keyId: string; body: string }[];
  /** Operations that a report resolves or numbers, in their earlier state. */
  changed: { n: number; before: Operation }[];
  moves: Move[];
  numberings: Numbering[];
  /** Repeated reports, also of the same batch. */
  known: { n: number; operation: Operation }[];
  refused: { n: number; failure: Failure }[];
}

export function planReports(
  lines: readonly NumberedReport[],
  matches: BatchMatches,
  at: Instant,
  nextId: () => string,
): ReportPlan {
  const plan: ReportPlan = {
    fresh: [],
    changed: [],
    moves: [],
    numberings: [],
    known: [],
    refused: [],
  };
  const done = new Set<string>();
  for (const line of lines) {
    const { n, report, by } = line;
    const key = transactionKey(report);
    const judgement = judgeReport(report, {
      sameNumber: matches.sameNumber.get(key) ?? [],
      named: matches.named.get(report.operationId ?? ''),
      alike: (matches.alike.get(n) ?? []).filter(({ id }) => !done.has(id)),
    });
    if (judgement.verdict === 'refuse') plan.refused.push({ n, failure: judgement.failure });
    else if (judgement.verdict === 'known') plan.known.push({ n, operation: judgement.operation });
    else if (judgement.verdict === 'record') {
      const operation = operationOf(line, nextId(), at);
      plan.fresh.push({ n, operation, keyId: by.keyId, body: report.body });
      matches.sameNumber.set(key, [...(matches.sameNumber.get(key) ?? []), operation]);
    } else {
      const { operation: before, verdict } = judgement;
      const numbers = numbersOf(report, before);
      if (verdict === 'resolve') plan.moves.push(moveOf(before.id, line, numbers, at));
      else plan.numberings.push({ id: before.id, ...numbers, evidence: evidenceOf(by, at) });
      plan.changed.push({ n, before });
      const after = { ...before, ...numbers };
      matches.sameNumber.set(key, [...(matches.sameNumber.get(key) ?? []), after]);
      matches.named.set(before.id, after);
      done.add(before.id);
    }
  }
  return plan;
}

function evidenceOf({ owner, keyId, importId, unproved }: Reporter, at: Instant): Json {
  const report: Json = { by: owner, key_id: keyId, at: isoText(at) };
  if (importId !== undefined) report.import = importId;
  if (unproved !== undefined) report.unproved = unproved;
  return { report };
}

function numbersOf({ txAppNo, txLogNo, txHash, fields }: Report, before: Operation) {
  return { txAppNo, txLogNo, txHash, tokenId: fields.tokenId ?? before.tokenId };
}

function moveOf(
  id: string,
  { report, by }: NumberedReport,
  numbers: ReturnType<typeof numbersOf>,
  at: Instant,
): Move {
  return {
    id,
    to: 'executed',
    at,
    cause: 'report',
    evidence: evidenceOf(by, at),
    ...numbers,
    effectiveAt: report.occurredAt,
    effectiveBasis: 'reported',
  };
}

function operationOf({ report, by }: NumberedReport, id: string, at: Instant): Operation {
  const { kind, fields, reference, txAppNo, txLogNo, txHash, occurredAt } = report;
  return newOperation({
    id,
    kind,
    state: 'executed',
    source: 'report',
    owner: by.owner,
    recordedAt: at,
    ...fields,
    reference,
    txAppNo,
    txLogNo,
    txHash,
    evidence: evidenceOf(by, at),
    effectiveAt: occurredAt,
    effectiveBasis: 'reported',
  });
}

/** Operations that a report may be about. */
interface Matches {
  /** Operations with its number, of any app, or with its hash. */
  sameNumber: readonly Operation[];
  /** The operation that it names, if it exists. */
  named: Operation | undefined;
  /** Similar operations without a number, sent around that time. */
  alike: readonly Operation[];
}

type Judgement =
  | { verdict: 'record' }
  | { verdict: 'known'; operation: Operation }
  /** The report resolves an open or not executed operation. */
  | { verdict: 'resolve'; operation: Operation }
  /** The report adds the number to an executed operation. */
  | { verdict: 'number'; operation: Operation }
  | { verdict: 'refuse'; failure: Failure };

/** Tolerance between the reported time and the time in which a write can have taken effect. */
export const WINDOW_SLACK_MS = 3_600_000;
const CANDIDATES_MAX = 10;

type Numbered = Pick<Report, 'txAppNo' | 'txLogNo' | 'txHash'>;

/** Identifies the transaction at the service; a number does so within its app. */
export function transactionKey({ txLogNo, txHash }: Numbered): string {
  return txHash === null ? `${txLogNo}` : txHashKey(txHash);
}

function judgeReport(report: Report, { sameNumber, named, alike }: Matches): Judgement {
  const same = sameNumber.filter(({ txAppNo }) => sameApp(txAppNo, report.txAppNo));
  const [first] = same;
  if (first) return judgeRepeat(report, first, same);
  if (report.operationId !== null) return judgeNamed(report, named);
  if (!report.distinct && alike.length > 0) return refuse(matchesOpen(alike));
  return { verdict: 'record' };
}

function judgeRepeat(report: Report, first: Operation, same: readonly Operation[]): Judgement {
  const equal = same.find((operation) => differencesOf(report, operation).length === 0);
  const operation = equal ?? first;
  if (report.operationId !== null && report.operationId !== operation.id)
    return refuse(
      conflict(operation, `its number belongs to ${operation.id}; name that one or none`),
    );
  if (equal) return { verdict: 'known', operation };
  const differs = differencesOf(report, operation);
  const detail = `${operation.id} has this number and differs in ${differs.join(', ')}`;
  return refuse(conflict(operation, detail, { differs }));
}

function judgeNamed(report: Report, named: Operation | undefined): Judgement {
  if (!named) return refuse(new Failure('not_found', `there is no ${report.operationId}`));
  if (named.txLogNo !== null || named.txHash !== null)
    return refuse(conflict(named, `${named.id} has another number; leave operation_id out`));
  const differs = differencesOf(report, named);
  if (differs.length > 0)
    return refuse(conflict(named, `${named.id} differs in ${differs.join(', ')}`, { differs }));
  switch (named.state) {
    case 'unknown':
    case 'undecided':
    case 'not_executed':
      return { verdict: 'resolve', operation: named };
    case 'executed':
    case 'settled':
      return { verdict: 'number', operation: named };
    default:
      return refuse(conflict(named, `${named.id} is ${named.state}; ${ADVICE[named.state] ?? ''}`));
  }
}

const ADVICE: Partial<Record<State, string>> = {
  sending: 'report it again when its answer came or was lost',
  queued: 'it was not sent; cancel it, and report without operation_id',
  accepted: 'the service answered it',
  rejected: 'the service refused it; report without operation_id if there was another write',
  failed: 'the chain refused it; report without operation_id if there was another write',
  cancelled: 'it was never sent; report without operation_id',
};

function matchesOpen(alike: readonly Operation[]): Failure {
  const candidates = alike.slice(0, CANDIDATES_MAX).map(({ id, state, sentAt }) => ({
    operation_id: id,
    state,
    sent_at: isoTextOrNull(sentAt),
  }));
  const detail = 'set operation_id to the matching operation, or distinct: true for another write';
  return new Failure('matches_open_operation', detail, { candidates });
}

function conflict({ id }: Operation, detail: string, more: object = {}): Failure {
  return new Failure('conflict', detail, { operation_id: id, ...more });
}

function refuse(failure: Failure): Judgement {
  return { verdict: 'refuse', failure };
}

/** The JSON names of the facts in which a report and an operation differ. */
function differencesOf(report: Report, operation: Operation): string[] {
  const { fields } = report;
  const differs: string[] = report.kind === operation.kind ? [] : ['kind'];
  const check = (name: string, equal: boolean) => {
    if (!equal) differs.push(name);
  };
  check('from_addr', sameAddress(fields.fromAddr, operation.fromAddr));
  check('to_addr', sameAddress(fields.toAddr, operation.toAddr));
  check('operation_no', fields.operationNo === operation.operationNo);
  check('contract_id', fields.contractId === operation.contractId);
  check('token_id', agrees(fields.tokenId, operation.tokenId));
  check('amount', fields.amount === operation.amount);
  check('fee_amount', (fields.feeAmount ?? 0n) === (operation.feeAmount ?? 0n));
  check('reason_type', agrees(fields.reasonType, operation.reasonType));
  check('token_uri', agrees(fields.tokenUri, operation.tokenUri));
  check('meta_data', agrees(fields.metaData, operation.metaData));
  check('extra_data', agrees(fields.extraData, operation.extraData));
  if (operation.source === 'report') {
    check('occurred_at', report.occurredAt === operation.effectiveAt);
    check('reference', agrees(report.reference, operation.reference));
  }
  return differs;
}

/** A fact that only one side has is no difference. */
function agrees<T>(a: T | null, b: T | null): boolean {
  return a === null || b === null || a === b;
}
