/**
 * `POST /api/operations`: reported operations, as one document, an array, or a stream of lines that
 * is answered line by line. Reports are recorded in batches; repeating one changes nothing.
 */
import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure, problemOf } from '../../../kernel/errors.ts';
import { type Json, jsonText, tryParseJson } from '../../../kernel/json.ts';
import type { Caller } from '../../../keys/keys.ts';
import { REPORTS_MAX, type Report, type Reported } from '../../../operations/operations.ts';
import type { ApiDeps } from '../../deps.ts';
import { readText } from '../../http/body.ts';
import { answerLines, batchesOf, NDJSON } from '../../http/line-stream.ts';
import type { TextLine } from '../../http/ndjson.ts';
import { problem, problemsOf } from '../../http/problems.ts';
import { json, type Router, reply } from '../../http/router.ts';
import { operation, operationOutput } from './fields.ts';
import { readReport, reportInput } from './report-lines.ts';

/** Bounds in bytes and reports. */
const ARRAY_MAX = 10_000;
const LINE_MAX = 65_536;
const LINES_MAX = 100_000;
const STREAMS_MAX = 2;

const counts = { recorded: z.int(), known: z.int(), refused: z.int() };
const lineResult = z
  .object({
    line: z.int().openapi({ description: 'Number of the report, from 1' }),
    result: z.enum(['recorded', 'known', 'refused']),
    operation_id: z.string().nullable(),
    state: z.string().nullable(),
    problem: problem.nullable().openapi({ description: 'Why the report was refused' }),
  })
  .openapi('ReportResult');
const manyResults = z.object({ data: z.array(lineResult), ...counts }).openapi('ReportResults');

type Deps = Pick<
  ApiDeps,
  'reportedOperations' | 'clock' | 'log' | 'wake' | 'stopping' | 'bodyBytesMax'
>;
type RecordDeps = Pick<Deps, 'reportedOperations' | 'clock' | 'wake'>;

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
    request: z.object({}),
    content: {
      'application/json': { schema: z.union([reportInput, z.array(reportInput)]) },
      [NDJSON]: { schema: z.string() },
    },
    responses: {
      200: {
        description: 'The operation if it was known or is now resolved; for many, each result',
        content: {
          'application/json': { schema: z.union([manyResults, operation]) },
          [NDJSON]: { schema: z.string() },
        },
      },
      201: json('The recorded operation', operation),
      ...problemsOf('post', true, { 429: 'Too many streams are open; see Retry-After' }),
    },
    async handle(_, c, caller) {
      if (!caller) throw new Failure('unauthorized');
      const type = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase();
      if (type === NDJSON || type === 'application/ndjson') {
        if (streams >= STREAMS_MAX)
          throw new Failure('too_many_requests', `at most ${STREAMS_MAX} streams of reports`);
        streams++;
        return answerStream(c, deps, caller, () => {
          streams--;
        });
      }
      if (type !== 'application/json')
        throw new Failure('unsupported_media_type', `send application/json or ${NDJSON}`);
      return answerDocument(c, deps, caller);
    },
  });
}

/** Records one report or an array of reports. */
async function answerDocument(c: Context, deps: Deps, caller: Caller): Promise<Response> {
  const document = tryParseJson(await readText(c.req, deps.bodyBytesMax));
  if (document === undefined) throw new Failure('malformed_json');
  if (!Array.isArray(document)) {
    const [only] = await record(deps, [document], caller);
    if (only?.result !== 'recorded' && only?.result !== 'known')
      throw only?.failure ?? new Failure('internal');
    const isNew = only.result === 'recorded' && only.isNew;
    return reply(c, jsonText(operationOutput(only.operation)), isNew ? 201 : 200);
  }
  if (document.length > ARRAY_MAX)
    throw new Failure('body_too_large', `at most ${ARRAY_MAX} reports; send more as ${NDJSON}`);
  const tally = { recorded: 0, known: 0, refused: 0 };
  const data: object[] = [];
  for (let start = 0; start < document.length; start += REPORTS_MAX) {
    const results = await record(deps, document.slice(start, start + REPORTS_MAX), caller);
    for (const [n, reported] of results.entries()) {
      tally[reported.result]++;
      data.push(resultOutput(start + n + 1, reported));
    }
  }
  return reply(c, jsonText({ data, ...tally }));
}

/** A parsed document, or the reason why it could not be parsed. */
type Parsed = Json | Failure;

/** Records a batch; each report is checked on its own. Results are in the order of the input. */
async function record(
  { reportedOperations, clock, wake }: RecordDeps,
  documents: readonly Parsed[],
  caller: Caller,
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
  const results = (await reportedOperations.report(reports, caller)).values();
  wake('ledger', 'observer', 'sequencer', 'webhooks');
  return read.map((report) => {
    if (report instanceof Failure) return { result: 'refused', failure: report };
    return results.next().value as Reported;
  });
}

function resultOutput(line: number, reported: Reported) {
  const { result } = reported;
  if (result === 'refused') {
    const { failure } = reported;
    const id = failure.members.operation_id;
    const operationId = typeof id === 'string' ? id : null;
    return { line, result, operation_id: operationId, state: null, problem: problemOf(failure) };
  }
  const { id, state } = reported.operation;
  return { line, result, operation_id: id, state, problem: null };
}

/** Records lines in batches and answers each; the results held are bounded by LINES_MAX. */
function answerStream(c: Context, deps: Deps, caller: Caller, ended: () => void): Response {
  const { body } = c.req.raw;
  const bounds = { lineBytesMax: LINE_MAX, linesMax: LINES_MAX, size: REPORTS_MAX };
  const tally = { recorded: 0, known: 0, refused: 0 };
  return answerLines(c, deps, {
    ended,
    summary: () => ({ lines: tally.recorded + tally.known + tally.refused, ...tally }),
    async work({ write, stop }) {
      if (!body) return;
      for await (const lines of batchesOf(body, bounds, stop)) {
        const results = await record(deps, lines.map(parseLine), caller);
        write(
          results.map((reported, n) => {
            tally[reported.result]++;
            return resultOutput(lines[n]?.line ?? 0, reported);
          }),
        );
      }
    },
  });
}

function parseLine(line: TextLine): Parsed {
  if ('tooLong' in line)
    return new Failure('body_too_large', `the line is longer than ${LINE_MAX} bytes`);
  const document = tryParseJson(line.text);
  return document === undefined ? new Failure('malformed_json', 'the line is not JSON') : document;
}
