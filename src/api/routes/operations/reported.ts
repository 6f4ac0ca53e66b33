/**
 * `POST /api/operations`: reports of writes that were made elsewhere, as one document, as an array,
 * or as a stream of lines that is answered line by line. What is recorded is recorded in batches;
 * sending the same again is harmless.
 */
import { createRoute, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure, problemOf } from '../../../kernel/errors.ts';
import { type Json, jsonText, tryParseJson } from '../../../kernel/json.ts';
import type { Caller } from '../../../keys/keys.ts';
import { REPORTS_MAX, type Report, type Reported } from '../../../operations/operations.ts';
import type { Api, ApiDeps, ApiEnv } from '../../deps.ts';
import { behindKey, deps, replyText } from '../../http/auth.ts';
import { boundedBody } from '../../http/body.ts';
import { linesOf, type TextLine } from '../../http/ndjson.ts';
import { bodyRefusals, failureOf, json, problem, refusal } from '../../http/problems.ts';
import { operation, shownOperation } from './fields.ts';
import { readReport, reportIn } from './report-lines.ts';

/** Bounds of what is taken at once, in bytes and reports. */
const BODY_MAX = 8_388_608;
const ARRAY_MAX = 10_000;
const LINE_MAX = 65_536;
const LINES_MAX = 100_000;
const STREAMS_MAX = 2;
const PATH = '/api/operations';
const NDJSON = 'application/x-ndjson';

const counts = { recorded: z.int(), known: z.int(), refused: z.int() };
const lineResult = z
  .object({
    line: z.int().openapi({ description: 'Which report, from 1' }),
    result: z.enum(['recorded', 'known', 'refused']),
    operation_id: z.string().nullable(),
    state: z.string().nullable(),
    problem: problem.nullable().openapi({ description: 'Why it was refused' }),
  })
  .openapi('ReportResult');
const manyResults = z.object({ data: z.array(lineResult), ...counts }).openapi('ReportResults');

const reportRoute = createRoute({
  method: 'post',
  path: PATH,
  tags: ['operations'],
  summary: 'Reports writes made elsewhere; a repeat of the same is known and changes nothing',
  description:
    `One report, an array of at most ${ARRAY_MAX}, or lines (${NDJSON}) of at most ${LINES_MAX}, ` +
    `each at most ${LINE_MAX} bytes. Of many, each is judged for itself; lines are answered by ` +
    'lines of ReportResult as they are recorded, and by a last line with a summary.',
  ...deps('manage'),
  request: {
    body: {
      required: true,
      content: {
        'application/json': { schema: z.union([reportIn, z.array(reportIn)]) },
        [NDJSON]: { schema: z.string() },
      },
    },
  },
  responses: {
    200: {
      description: 'The operation when it was known or is now resolved; for many, each result',
      content: {
        'application/json': { schema: z.union([manyResults, operation]) },
        [NDJSON]: { schema: z.string() },
      },
    },
    201: json('The operation that was recorded', operation),
    ...bodyRefusals,
    429: refusal('Too many streams at once; Retry-After says when'),
  },
});

/** What becomes of reports, counted. */
interface Tally {
  recorded: number;
  known: number;
  refused: number;
}

export function addElsewhere(app: Api, deps: ApiDeps): void {
  app.openAPIRegistry.registerPath(reportRoute);
  const bounded = boundedBody(BODY_MAX);
  let streams = 0;
  app.post(PATH, behindKey(deps, 'manage'), async (c) => {
    const type = (c.req.header('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
    if (type === NDJSON || type === 'application/ndjson') {
      if (streams >= STREAMS_MAX)
        throw new Failure('too_many_requests', `at most ${STREAMS_MAX} streams of reports at once`);
      streams++;
      return streamed(c, deps, () => {
        streams--;
      });
    }
    if (type !== 'application/json')
      throw new Failure('unsupported_media_type', `send application/json or ${NDJSON}`);
    let answer: Response | undefined;
    await bounded(c, async () => {
      answer = await documents(c, deps);
    });
    return answer as Response;
  });
}

/** One report or an array of them. */
async function documents(c: Context<ApiEnv>, deps: ApiDeps): Promise<Response> {
  const document = tryParseJson(await c.req.text());
  if (document === undefined) throw new Failure('malformed_json');
  const by = c.get('caller');
  if (!Array.isArray(document)) {
    const [only] = await reportAll(deps, [document], by);
    if (only?.result !== 'recorded' && only?.result !== 'known')
      throw only?.failure ?? new Failure('internal');
    const isNew = only.result === 'recorded' && only.isNew;
    return replyText(c, jsonText(shownOperation(only.operation)), isNew ? 201 : 200);
  }
  if (document.length > ARRAY_MAX)
    throw new Failure('body_too_large', `at most ${ARRAY_MAX} reports; send more as ${NDJSON}`);
  const tally: Tally = { recorded: 0, known: 0, refused: 0 };
  const data: object[] = [];
  for (let start = 0; start < document.length; start += REPORTS_MAX) {
    const some = document.slice(start, start + REPORTS_MAX);
    const results = await reportAll(deps, some, by);
    for (const [n, reported] of results.entries()) {
      tally[reported.result]++;
      data.push(shownResult(start + n + 1, reported));
    }
  }
  return replyText(c, jsonText({ data, ...tally }), 200);
}

type Reading = Pick<ApiDeps, 'elsewhere' | 'clock' | 'wake'>;
type Unread = Json | Failure;

/** Reads and records some documents; what cannot be read is refused for itself. */
async function reportAll(
  { elsewhere, clock, wake }: Reading,
  documents: readonly Unread[],
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
  const results = (await elsewhere.report(reports, by)).values();
  wake('ledger', 'observer', 'sequencer', 'webhooks');
  return read.map((report) => {
    if (report instanceof Failure) return { result: 'refused', failure: report };
    return results.next().value as Reported;
  });
}

function shownResult(line: number, reported: Reported) {
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

/**
 * Lines in, lines out. The body is read on whether or not the caller reads the answers meanwhile:
 * many send everything first, and waiting for them would wait for ever. What is held of the answers
 * is bounded by the number of lines.
 */
function streamed(c: Context<ApiEnv>, deps: ApiDeps, ended: () => void): Response {
  const { body } = c.req.raw;
  const by = c.get('caller');
  const gone = new AbortController();
  const stop = AbortSignal.any([gone.signal, deps.stopping]);
  const encoder = new TextEncoder();
  const answers = new ReadableStream<Uint8Array>({
    async start(controller) {
      const tally: Tally = { recorded: 0, known: 0, refused: 0 };
      const say = (rows: readonly object[]) => {
        if (!gone.signal.aborted && rows.length > 0)
          controller.enqueue(encoder.encode(rows.map((row) => `${jsonText(row)}\n`).join('')));
      };
      const last: { problem?: object } = {};
      try {
        if (body) await recordLines(deps, body, { by, stop, tally, say });
      } catch (error) {
        last.problem = problemOf(failureOf(error, deps.log));
      } finally {
        ended();
      }
      const lines = tally.recorded + tally.known + tally.refused;
      say([{ summary: { lines, ...tally }, ...last }]);
      if (!gone.signal.aborted) controller.close();
    },
    cancel: () => gone.abort(),
  });
  c.header('content-type', NDJSON);
  c.header('cache-control', 'no-store');
  return c.body(answers, 200);
}

/** Reads lines, records them in batches, and tells what became of each. */
async function recordLines(
  deps: Reading,
  body: ReadableStream<Uint8Array>,
  given: {
    by: Caller;
    stop: AbortSignal;
    tally: Tally;
    say: (rows: readonly object[]) => void;
  },
): Promise<void> {
  const { by, stop, tally, say } = given;
  let batch: { line: number; document: Unread }[] = [];
  const flush = async () => {
    if (stop.aborted) throw new Failure('shutting_down', 'send what follows again');
    const some = batch;
    batch = [];
    const results = await reportAll(
      deps,
      some.map(({ document }) => document),
      by,
    );
    say(
      results.map((reported, n) => {
        tally[reported.result]++;
        return shownResult(some[n]?.line ?? 0, reported);
      }),
    );
  };
  let taken = 0;
  for await (const given of linesOf(body, LINE_MAX)) {
    taken++;
    if (taken > LINES_MAX) {
      await flush();
      throw new Failure('body_too_large', `at most ${LINES_MAX} lines; send the others apart`);
    }
    batch.push({ line: given.line, document: documentOf(given) });
    if (batch.length === REPORTS_MAX) await flush();
  }
  await flush();
}

function documentOf(line: TextLine): Unread {
  if ('tooLong' in line)
    return new Failure('body_too_large', `the line has over ${LINE_MAX} bytes`);
  const document = tryParseJson(line.text);
  return document === undefined ? new Failure('malformed_json', 'the line is not JSON') : document;
}
