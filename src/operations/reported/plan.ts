/**
 * Plans what a batch of reports changes. Each report is judged against the known operations and
 * against the reports before it in the batch. Pure.
 */
import { type Instant, isoText } from '../../kernel/clock.ts';
import type { Failure } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import { newOperation, type Operation } from '../operation.ts';
import type { Move } from '../transitions.ts';
import { judgeReport, type Report, transactionKey } from './rule.ts';

/** A report and its index in the request. */
export interface NumberedReport {
  n: number;
  report: Report;
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

/** Who reports, and when. */
export interface Reporter {
  owner: string;
  keyId: string;
  /** Why they are recorded without a balance proof, of an import that says so. */
  unproved?: string | undefined;
  at: Instant;
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
  fresh: { n: number; operation: Operation; body: string }[];
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
    const key = transactionKey(report);
    const judgement = judgeReport(report, {
      sameNumber: matches.sameNumber.get(key) ?? [],
      named: matches.named.get(report.operationId ?? ''),
      alike: (matches.alike.get(n) ?? []).filter(({ id }) => !done.has(id)),
    });
    if (judgement.verdict === 'refuse') plan.refused.push({ n, failure: judgement.failure });
    else if (judgement.verdict === 'known') plan.known.push({ n, operation: judgement.operation });
    else if (judgement.verdict === 'record') {
      const operation = operationOf(report, by, nextId());
      plan.fresh.push({ n, operation, body: report.body });
      matches.sameNumber.set(key, [...(matches.sameNumber.get(key) ?? []), operation]);
    } else {
      const { operation: before, verdict } = judgement;
      const numbers = numbersOf(report, before);
      const evidence = evidenceOf(by);
      if (verdict === 'resolve') plan.moves.push(moveOf(before.id, report, numbers, by));
      else plan.numberings.push({ id: before.id, ...numbers, evidence });
      plan.changed.push({ n, before });
      const after = { ...before, ...numbers };
      matches.sameNumber.set(key, [...(matches.sameNumber.get(key) ?? []), after]);
      matches.named.set(before.id, after);
      done.add(before.id);
    }
  }
  return plan;
}

function evidenceOf({ owner, keyId, unproved, at }: Reporter): Json {
  const report = { by: owner, key_id: keyId, at: isoText(at) };
  return { report: unproved === undefined ? report : { ...report, unproved } };
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

function operationOf(report: Report, by: Reporter, id: string): Operation {
  const { owner, at } = by;
  const { kind, fields, reference, txAppNo, txLogNo, txHash, occurredAt } = report;
  return newOperation({
    id,
    kind,
    state: 'executed',
    source: 'report',
    owner,
    recordedAt: at,
    ...fields,
    reference,
    txAppNo,
    txLogNo,
    txHash,
    evidence: evidenceOf(by),
    effectiveAt: occurredAt,
    effectiveBasis: 'reported',
  });
}
