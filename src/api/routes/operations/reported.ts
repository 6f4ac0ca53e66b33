/**
 * `POST /api/operations`: reported operations, as one document, an array, or a stream of lines that
 * is answered line by line. Reports are recorded in batches; repeating one changes nothing.
 */
import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Instant } from '../../../kernel/clock.ts';
import { Failure, must, problemOf } from '../../../kernel/errors.ts';
import {
  canonicalJson,
  type Json,
  jsonText,
  membersOf,
  tryParseJson,
} from '../../../kernel/json.ts';
import type { Caller } from '../../../keys/keys.ts';
import {
  NO_FIELDS,
  operationRow,
  REPORTS_MAX,
  type Report,
  type Reported,
} from '../../../operations/operations.ts';
import { givenOf } from '../../../resources/fields.ts';
import { operation, writeFields } from '../../../resources/operations/operation.ts';
import type { Row } from '../../../resources/resource.ts';
import { reportResult, reportResults } from '../../../resources/results.ts';
import { shower } from '../../../resources/show.ts';
import type { ApiDeps } from '../../deps.ts';
import { bodyOf, readText } from '../../http/body.ts';
import { answerLines, batchesOf, bodyType, NDJSON, type TextLine } from '../../http/line-stream.ts';
import { errorsOf, invalidRequest, problemsOf } from '../../http/problems.ts';
import { type AuditWork, json, type Router, reply } from '../../http/router.ts';
import {
  addressInput,
  decimalInput,
  idInput,
  instantInput,
  positiveDecimalInput,
  schemaOf,
  textInput,
  txHashInput,
} from '../../http/schemas.ts';

const showOperation = shower(operation);
const showResult = shower(reportResult);

/** Bounds in bytes and reports. */
const ARRAY_MAX = 10_000;
const LINE_MAX = 65_536;
const LINES_MAX = 100_000;
const STREAMS_MAX = 2;

type Deps = Pick<ApiDeps, 'reportedOperations' | 'clock' | 'log' | 'stopping' | 'bodyBytesMax'>;
type RecordDeps = Pick<Deps, 'reportedOperations' | 'clock'>;

export function addReportedOperations(router: Router, deps: Deps): void {
  let streams = 0;
  router.raw({
    method: 'post',
    path: '/api/operations',
    tag: 'operations',
    scope: 'manage',
    summary: 'Report operations that were made elsewhere',
    description:
      `One report, an array of at most ${ARRAY_MAX}, or a stream (${NDJSON}) of at most ` +
      `${LINES_MAX} lines of at most ${LINE_MAX} bytes. A repeated report is answered as known. ` +
      'The reports of an array or stream are checked one by one. A stream is answered by one ' +
      'ReportResult per line and a last line with a summary.',
    request: z.object({ query: z.strictObject({}) }),
    content: {
      'application/json': { schema: z.union([reportInput, z.array(reportInput)]) },
      [NDJSON]: { schema: z.string() },
    },
    responses: {
      200: {
        description: 'The operation if it was known or is now resolved; for many, each result',
        content: {
          'application/json': { schema: z.union([schemaOf(reportResults), schemaOf(operation)]) },
          [NDJSON]: { schema: z.string() },
        },
      },
      201: json('The recorded operation', schemaOf(operation)),
      ...problemsOf('post', true, { 429: 'Too many streams are open; see Retry-After' }),
    },
    async handle(_, c, caller, audit) {
      if (!caller) throw new Failure('unauthorized');
      const type = bodyType(c);
      if (type === NDJSON) {
        const body = bodyOf(c.req);
        if (streams >= STREAMS_MAX)
          throw new Failure('too_many_requests', `at most ${STREAMS_MAX} streams of reports`);
        streams++;
        const ended = () => {
          streams--;
        };
        return answerStream(c, deps, { body, by: caller, audit, ended });
      }
      if (type !== 'application/json')
        throw new Failure('unsupported_media_type', `send application/json or ${NDJSON}`);
      return answerDocument(c, deps, caller, audit);
    },
  });
}

/** Records one report or an array of reports. */
async function answerDocument(
  c: Context,
  deps: Deps,
  caller: Caller,
  audit: AuditWork,
): Promise<Response> {
  const document = tryParseJson(await readText(c.req, deps.bodyBytesMax));
  if (document === undefined) throw new Failure('malformed_json');
  if (!Array.isArray(document)) {
    const only = await audit(membersOf(document), async () => {
      const [result] = await record(deps, [document], caller);
      if (result?.result === 'recorded' || result?.result === 'known') return result;
      throw result?.failure ?? new Failure('internal');
    });
    const isNew = only.result === 'recorded' && only.isNew;
    return reply(c, jsonText(showOperation(operationRow(only.operation))), isNew ? 201 : 200);
  }
  if (document.length > ARRAY_MAX)
    throw new Failure('body_too_large', `at most ${ARRAY_MAX} reports; send more as ${NDJSON}`);
  const answer = await audit({ reports: document.length }, () =>
    recordArray(deps, document, caller),
  );
  return reply(c, jsonText(answer));
}

async function recordArray(deps: Deps, document: readonly Json[], caller: Caller) {
  const tally = { recorded: 0, known: 0, refused: 0 };
  const data: ReturnType<typeof showResult>[] = [];
  for (let start = 0; start < document.length; start += REPORTS_MAX) {
    const results = await record(deps, document.slice(start, start + REPORTS_MAX), caller);
    for (const [n, reported] of results.entries()) {
      tally[reported.result]++;
      data.push(showResult(resultOf(start + n + 1, reported)));
    }
  }
  return { data, ...tally };
}

/** A parsed document, or the reason why it could not be parsed. */
type Parsed = Json | Failure;

/** Records a batch; each report is checked on its own. Results are in the order of the input. */
async function record(
  { reportedOperations, clock }: RecordDeps,
  documents: readonly Parsed[],
  by: Caller,
): Promise<Reported[]> {
  const now = clock.now();
  const read = documents.map((document): Report | Failure => {
    try {
      return document instanceof Failure ? document : readReport(document, now);
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
  });
  const reports = read.flatMap((report) => (report instanceof Failure ? [] : report));
  const results = (await reportedOperations.report(reports, by)).values();
  return read.map((report) => {
    if (report instanceof Failure) return { result: 'refused', failure: report };
    return must(results.next().value, 'result of a report');
  });
}

function resultOf(line: number, reported: Reported): Row<typeof reportResult> {
  const { result } = reported;
  const base = { line, result, operationId: null, state: null, problem: null };
  if (result === 'refused') {
    const { failure } = reported;
    const id = failure.members.operation_id;
    const operationId = typeof id === 'string' ? id : null;
    return { ...base, operationId, problem: problemOf(failure) };
  }
  const { id: operationId, state } = reported.operation;
  return { ...base, operationId, state };
}

interface Stream {
  body: ReadableStream<Uint8Array> | null;
  by: Caller;
  audit: AuditWork;
  ended: () => void;
}

/** Records lines in batches and answers each; the results held are bounded by LINES_MAX. */
function answerStream(c: Context, deps: Deps, { body, by, audit, ended }: Stream): Response {
  const bounds = { lineBytesMax: LINE_MAX, linesMax: LINES_MAX, size: REPORTS_MAX };
  const tally = { recorded: 0, known: 0, refused: 0 };
  return answerLines(c, deps, {
    ended,
    summary: () => ({ lines: tally.recorded + tally.known + tally.refused, ...tally }),
    async work({ write, stop }) {
      if (!body) return;
      const run = async () => {
        for await (const lines of batchesOf(body, bounds, stop)) {
          const results = await record(deps, lines.map(parseLine), by);
          write(
            results.map((reported, n) => {
              tally[reported.result]++;
              return showResult(resultOf(lines[n]?.line ?? 0, reported));
            }),
          );
        }
      };
      await audit({ reports: 'a stream' }, run);
    },
  });
}

function parseLine(line: TextLine): Parsed {
  if ('tooLong' in line)
    return new Failure('body_too_large', `the line is longer than ${LINE_MAX} bytes`);
  const document = tryParseJson(line.text);
  return document === undefined ? new Failure('malformed_json', 'the line is not JSON') : document;
}

const common = {
  occurred_at: instantInput.openapi({
    description: 'When the service executed it, as far as known',
  }),
  reference: textInput(255).optional(),
  operation_id: idInput('op')
    .optional()
    .openapi({ description: 'The recorded operation that the report is about' }),
  distinct: z.boolean().optional().openapi({
    description: 'True if it is a different write from every open operation that matches it',
  }),
};
const numbered = {
  ...common,
  tx_log_no: decimalInput,
  tx_app_no: decimalInput.optional().openapi({ description: 'Default: the app of this client' }),
  reason_type: textInput(1_000).optional(),
};
const hashed = {
  ...common,
  tx_hash: txHashInput,
  contract_id: decimalInput,
  token_id: decimalInput,
};
const amount = positiveDecimalInput;
const minted = {
  ...hashed,
  to_addr: addressInput,
  token_uri: textInput(8_000).optional(),
  meta_data: textInput(8_000).optional(),
  extra_data: textInput(8_000).optional(),
};
const kind = <K extends Report['kind']>(name: K) => z.literal(name);

const reportInput = z
  .discriminatedUnion('kind', [
    z.strictObject({
      kind: kind('give'),
      to_addr: addressInput,
      operation_no: decimalInput,
      amount,
      ...numbered,
    }),
    z.strictObject({
      kind: kind('receive_from'),
      from_addr: addressInput,
      amount,
      fee_amount: decimalInput.optional(),
      ...numbered,
    }),
    z.strictObject({
      kind: kind('transfer'),
      from_addr: addressInput,
      to_addr: addressInput,
      amount,
      fee_amount: decimalInput.optional(),
      ...numbered,
    }),
    z.strictObject({ kind: kind('mint'), ...minted }),
    z.strictObject({ kind: kind('mint_sequential'), ...minted }),
    z.strictObject({ kind: kind('burn'), ...hashed }),
    z.strictObject({ kind: kind('set_extra_data'), ...hashed, extra_data: textInput(8_000) }),
    z.strictObject({
      kind: kind('transfer_from'),
      from_addr: addressInput,
      to_addr: addressInput,
      ...hashed,
    }),
  ])
  .openapi('ReportedOperation');

/** What identifies it at the service, of all kinds. */
type Members = { tx_app_no?: bigint | undefined; tx_log_no?: bigint; tx_hash?: string };

/** How far occurred_at may lie ahead of the time of the database. */
const AHEAD_MAX_MS = 300_000;

/** @throws Failure `invalid_request` with the invalid fields */
export function readReport(document: Json, now: Instant): Report {
  const read = reportInput.safeParse(document);
  if (!read.success) throw invalidRequest(errorsOf(read.error));
  const { data } = read;
  if (data.occurred_at > now + AHEAD_MAX_MS)
    throw new Failure(
      'invalid_request',
      'occurred_at: is in the future; use RFC 3339 with a time zone',
    );
  const members: Members = data;
  return {
    kind: data.kind,
    txAppNo: members.tx_app_no ?? null,
    txLogNo: members.tx_log_no ?? null,
    txHash: members.tx_hash ?? null,
    occurredAt: data.occurred_at,
    fields: { ...NO_FIELDS, ...givenOf(writeFields, data) },
    reference: data.reference ?? null,
    operationId: data.operation_id ?? null,
    distinct: data.distinct ?? false,
    body: canonicalJson(document),
  };
}
