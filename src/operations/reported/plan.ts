/**
 * From a batch of reports to what is to be done, each judged in its turn beside what is known and
 * what its neighbours before it will have done. Pure.
 */
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Failure } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import { type Operation, TOKEN_KINDS } from '../operation.ts';
import type { Move } from '../transition-store.ts';
import { judgeReport, nameOf, type Report } from './rule.ts';
import type { Numbering } from './store.ts';

/** A report and its place among those that came together. */
export interface NumberedReport {
  n: number;
  report: Report;
}

/** What is known beside a batch; the plan adds to it what the batch itself will have done. */
export interface BatchMatches {
  /** By the name of the write at the service. */
  sameNumber: Map<string, Operation[]>;
  /** By id. */
  named: Map<string, Operation>;
  /** By the place of the report. */
  alike: ReadonlyMap<number, readonly Operation[]>;
}

/** Who reports, and when. */
export interface Reporter {
  owner: string;
  keyId: string;
  at: Instant;
}

export interface ReportPlan {
  fresh: { n: number; operation: Operation; body: string }[];
  /** Operations of ours that a report resolves or numbers, as they were before. */
  changed: { n: number; before: Operation }[];
  moves: Move[];
  numberings: Numbering[];
  /** Repeats, also of reports in the same batch. */
  known: { n: number; operation: Operation }[];
  refused: { n: number; failure: Failure }[];
}

/** Plans a batch. @param nextId a new id for an operation */
export function planReports(
  lines: readonly NumberedReport[],
  beside: BatchMatches,
  by: Reporter,
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
  for (const { n, report } of lines) {
    const name = nameOf(report);
    const judgement = judgeReport(report, {
      sameNumber: beside.sameNumber.get(name) ?? [],
      named: beside.named.get(report.operationId ?? ''),
      alike: (beside.alike.get(n) ?? []).filter(({ id }) => !done.has(id)),
    });
    if (judgement.verdict === 'refuse') plan.refused.push({ n, failure: judgement.failure });
    else if (judgement.verdict === 'known') plan.known.push({ n, operation: judgement.operation });
    else if (judgement.verdict === 'record') {
      const operation = operationOf(report, by, nextId());
      plan.fresh.push({ n, operation, body: report.body });
      beside.sameNumber.set(name, [operation]);
    } else {
      const { operation: before, verdict } = judgement;
      const numbers = numbersOf(report, before);
      const evidence = evidenceOf(by);
      if (verdict === 'resolve') plan.moves.push(moveOf(before.id, report, numbers, by));
      else plan.numberings.push({ id: before.id, ...numbers, evidence });
      plan.changed.push({ n, before });
      const after = { ...before, ...numbers };
      beside.sameNumber.set(name, [after]);
      beside.named.set(before.id, after);
      done.add(before.id);
    }
  }
  return plan;
}

function evidenceOf({ owner, keyId, at }: Reporter): Json {
  return { report: { by: owner, key_id: keyId, at: isoText(at) } };
}

function numbersOf({ txAppNo, txLogNo, txHash, fields }: Report, before: Operation) {
  return { txAppNo, txLogNo, txHash, tokenId: fields.tokenId ?? before.tokenId };
}

function moveOf(
  id: string,
  { occurredAt }: Report,
  numbers: ReturnType<typeof numbersOf>,
  by: Reporter,
): Move {
  return {
    id,
    to: 'executed',
    at: by.at,
    cause: 'report',
    evidence: evidenceOf(by),
    ...numbers,
    effectiveAt: occurredAt,
    effectiveBasis: 'reported',
  };
}

/** The operation that a report becomes; whether an observation must confirm it is decided later. */
function operationOf(report: Report, by: Reporter, id: string): Operation {
  return {
    ...report.fields,
    id,
    kind: report.kind,
    state: 'executed',
    outcome: 'executed',
    source: 'report',
    owner: by.owner,
    idempotencyKey: null,
    reference: report.reference,
    txAppNo: report.txAppNo,
    txLogNo: report.txLogNo,
    txHash: report.txHash,
    errorClass: null,
    errorStatus: null,
    errorCode: null,
    errorMessage: null,
    preImage: null,
    evidence: evidenceOf(by),
    recordedAt: by.at,
    sentAt: null,
    sendDeadlineAt: null,
    answeredAt: null,
    effectiveAt: report.occurredAt,
    effectiveBasis: 'reported',
    settledAt: null,
    expiresAt: null,
    ambiguous: false,
    inLedger: TOKEN_KINDS.includes(report.kind),
  };
}
