/**
 * `/api/watches`: wallets, contracts and tokens that are polled on request. Up to a million are
 * added or removed by a stream of lines, which is answered by its progress and the refused lines.
 */
import { createHash } from 'node:crypto';
import { z } from '@hono/zod-openapi';
import { CsvError, parse } from 'csv-parse/sync';
import type { Context } from 'hono';
import { Failure, problemOf } from '../../../kernel/errors.ts';
import { jsonText, tryParseJson } from '../../../kernel/json.ts';
import type { Caller } from '../../../keys/keys.ts';
import { listWatches, type TargetRef, targetName } from '../../../observer/observer.ts';
import { observationAge, TARGET_COLUMNS, watch } from '../../../resources/admin/watch.ts';
import { plainText } from '../../../resources/cells.ts';
import type { Shown } from '../../../resources/resource.ts';
import type { watchLine } from '../../../resources/results.ts';
import { shower } from '../../../resources/show.ts';
import type { ApiDeps } from '../../deps.ts';
import { bodyOf, readJson } from '../../http/body.ts';
import { answerLines, batchesOf, bodyType, NDJSON, type TextLine } from '../../http/line-stream.ts';
import { idPosition, page, pageOf, paging, readCursor } from '../../http/pages.ts';
import { errorsOf, invalidRequest, problemsOf } from '../../http/problems.ts';
import { type AuditWork, json, type Router, reply } from '../../http/router.ts';
import { addressInput, decimalInput, idInput, schemaOf } from '../../http/schemas.ts';

const WATCHES_MAX = 1_000;

/** Bounds of a stream: the bytes of a line, its lines, those of a batch, refused ones listed. */
const LINE_MAX = 4_096;
const LINES_MAX = 1_000_000;
const BATCH = 1_000;
const LISTED_MAX = 10_000;
const STREAMS_MAX = 2;
/** Batches between two lines of progress. */
const PROGRESS_BATCHES = 10;
const CSV = 'text/csv';

const watchSchema = schemaOf(watch);
const show = shower(watch);
const age = schemaOf({ fields: observationAge }).shape;

const watchInput = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('wallet'), addr: addressInput }),
  z.strictObject({ kind: z.literal('contract'), contract_id: decimalInput }),
  z.strictObject({
    kind: z.literal('token'),
    contract_id: decimalInput,
    token_id: decimalInput,
  }),
]);
const watchInputs = z.union([watchInput, z.array(watchInput).min(1).max(WATCHES_MAX)]);
const dryRun = z.object({
  query: z.strictObject({
    dry_run: z.enum(['true', 'false']).optional().openapi({
      description: 'true: answers a stream the same, but changes nothing',
    }),
  }),
});
const streams = { [NDJSON]: { schema: z.string() }, [CSV]: { schema: z.string() } };
const streamed = {
  description: 'Lines of progress and refused lines, then a summary',
  content: { [NDJSON]: { schema: z.string() } },
};
const base = { tag: 'watches', path: '/api/watches' } as const;
const FORM =
  `A stream has at most ${LINES_MAX} lines: ${NDJSON} with one watch per line, or ${CSV} with a ` +
  'header that names its columns, of kind, addr, contract_id, token_id; without kind the filled ' +
  `cells tell it. Refused lines are answered with their number, at most ${LISTED_MAX}.`;

type Deps = Pick<ApiDeps, 'db' | 'observer' | 'log' | 'wake' | 'stopping' | 'bodyBytesMax'>;

export function addWatches(router: Router, deps: Deps): void {
  addList(router, deps);
  const answerStream = makeStreams(deps);
  addCreation(router, deps, answerStream);
  addRemoval(router, deps, answerStream);
}

async function readAge(observer: Deps['observer']) {
  return { observation_age_max_ms: Math.round((await observer.pricing()).bounds.maxMs) };
}

function addList(router: Router, { db, observer }: Deps): void {
  router.add({
    ...base,
    scope: 'read',
    method: 'get',
    summary: 'List watches, oldest first',
    request: z.object({
      query: z.strictObject({
        ...paging,
        addr: addressInput.optional().openapi({ description: 'Only the watch of this wallet' }),
      }),
    }),
    response: 'A page of watches',
    schema: pageOf(watchSchema).extend(age),
    async handle({ query: { limit, cursor, addr } }) {
      const after = readCursor(cursor, idPosition('wat'));
      const rows = await listWatches(db, { after, addr, limit: limit + 1 });
      return { ...page(rows, limit, show, ({ id }) => id), ...(await readAge(observer)) };
    },
  });
}

function addCreation(router: Router, deps: Deps, answerStream: AnswerStream): void {
  const { observer, bodyBytesMax } = deps;
  const created = z.union([
    watchSchema.extend(age),
    z.object({ data: z.array(watchSchema), ...age }),
  ]);
  router.raw({
    ...base,
    scope: 'manage',
    method: 'post',
    summary: 'Watch wallets, contracts or tokens: one, an array, or a stream',
    description: `A repeated request for the same target changes nothing. ${FORM}`,
    request: dryRun,
    content: { 'application/json': { schema: watchInputs }, ...streams },
    responses: {
      200: streamed,
      201: json('The watch, or for an array all watches', created),
      ...problemsOf('post', true, { 429: 'Too many streams are open; see Retry-After' }),
    },
    async handle({ query }, c, caller, audit) {
      if (!caller) throw new Failure('unauthorized');
      if (isStream(c))
        return answerStream(c, 'add', { caller, audit, dryRun: query.dry_run === 'true' });
      const body = watchInputs.safeParse(await readJson(c.req, bodyBytesMax));
      if (!body.success) throw invalidRequest(errorsOf(body.error));
      if (query.dry_run === 'true')
        throw new Failure('invalid_request', 'dry_run: is only for a stream');
      const inputs = Array.isArray(body.data) ? body.data : [body.data];
      const watches = await audit(body.data, () =>
        observer.watch(inputs.map(toTarget), caller.owner),
      );
      const data = watches.map(show);
      const [only] = data;
      const one = only && !Array.isArray(body.data) ? only : { data };
      return reply(c, jsonText({ ...one, ...(await readAge(observer)) }), 201);
    },
  });
}

function addRemoval(router: Router, { observer }: Deps, answerStream: AnswerStream): void {
  router.add({
    ...base,
    scope: 'manage',
    method: 'delete',
    path: '/api/watches/{id}',
    summary: 'Delete a watch',
    description: 'Its target is still polled while an operation touches it.',
    request: z.object({ params: z.object({ id: idInput('wat') }) }),
    response: 'The watch is deleted',
    handle: ({ params }) => observer.unwatch(params.id),
  });
  router.raw({
    ...base,
    scope: 'manage',
    method: 'post',
    path: '/api/watches/remove',
    summary: 'Delete the watches of the targets of a stream',
    description: `A target that is not watched is counted as such. ${FORM}`,
    request: dryRun,
    content: streams,
    responses: {
      200: streamed,
      ...problemsOf('post', true, { 429: 'Too many streams are open; see Retry-After' }),
    },
    handle({ query }, c, caller, audit) {
      if (!caller) throw new Failure('unauthorized');
      if (!isStream(c)) throw new Failure('unsupported_media_type', `send ${NDJSON} or ${CSV}`);
      return answerStream(c, 'remove', { caller, audit, dryRun: query.dry_run === 'true' });
    },
  });
}

function isStream(c: Context): boolean {
  return [NDJSON, CSV].includes(bodyType(c));
}

type Action = 'add' | 'remove';
interface StreamInput {
  caller: Caller;
  audit: AuditWork;
  dryRun: boolean;
}
type AnswerStream = (c: Context, action: Action, input: StreamInput) => Response;

/** Answers streams, at most STREAMS_MAX at once. */
function makeStreams(deps: Deps): AnswerStream {
  let open = 0;
  return (c, action, input) => {
    const body = bodyOf(c.req);
    if (open >= STREAMS_MAX)
      throw new Failure('too_many_requests', `at most ${STREAMS_MAX} streams of watches`);
    open++;
    const work = makeWork(deps, action, input);
    const format = bodyType(c) === CSV ? 'csv' : 'ndjson';
    return answerLines(c, deps, {
      ended: () => {
        open--;
      },
      summary: work.summary,
      async work({ write, stop }) {
        if (!body) return;
        const run = () => work.run(body, format, { write, stop });
        await (input.dryRun ? run() : input.audit({ format }, run));
        deps.wake('observer');
      },
    });
  };
}

interface LineOutput {
  write: (rows: readonly Shown<typeof watchLine>[]) => void;
  stop: AbortSignal;
}

/** One stream: what is done with its lines, and the count of their results. */
function makeWork({ observer }: Deps, action: Action, { caller, dryRun }: StreamInput) {
  const [done, unchanged] =
    action === 'add' ? (['added', 'watched'] as const) : (['removed', 'not_watched'] as const);
  const tally = { lines: 0, done: 0, unchanged: 0, refused: 0 };
  const counts = () => ({
    lines: tally.lines,
    [done]: tally.done,
    [unchanged]: tally.unchanged,
    refused: tally.refused,
  });
  // Nothing tells later batches of a dry run what earlier ones would have changed.
  const isFirst = dryRun ? makeSeen() : () => true;
  const apply = async (refs: TargetRef[]): Promise<void> => {
    if (refs.length === 0) return;
    const results =
      action === 'add'
        ? await observer.watchMany(refs, caller.owner, { dryRun, addedBefore: tally.done })
        : await observer.unwatchMany(refs, { dryRun });
    for (const [n, ref] of refs.entries()) {
      const changed = isFirst(ref) && results[n];
      tally[changed ? 'done' : 'unchanged']++;
    }
  };
  return {
    async run(body: ReadableStream<Uint8Array>, format: string, { write, stop }: LineOutput) {
      const read = format === 'csv' ? csvReader() : ndjsonReader();
      // And the header of CSV.
      const bounds = { lineBytesMax: LINE_MAX, linesMax: LINES_MAX + 1, size: BATCH };
      let batches = 0;
      for await (const lines of batchesOf(body, bounds, stop)) {
        const refs: TargetRef[] = [];
        for (const line of lines) {
          const ref = read(line);
          if (ref === undefined) continue;
          tally.lines++;
          if (!(ref instanceof Failure)) refs.push(ref);
          else if (++tally.refused <= LISTED_MAX)
            write([{ line: line.line, result: 'refused', problem: problemOf(ref) }]);
        }
        await apply(refs);
        if (++batches % PROGRESS_BATCHES === 0) write([{ progress: counts() }]);
      }
    },
    async summary() {
      const added = dryRun && action === 'add' ? tally.done : 0;
      const observation_age_max_ms = Math.round(await observer.maximumAgeMs(added));
      return { ...counts(), dry_run: dryRun, observation_age_max_ms };
    },
  };
}

function toTarget(input: z.output<typeof watchInput>): TargetRef {
  switch (input.kind) {
    case 'wallet':
      return { kind: 'wallet', addr: input.addr };
    case 'contract':
      return { kind: 'contract', contractId: input.contract_id };
    case 'token':
      return { kind: 'token', contractId: input.contract_id, tokenId: input.token_id };
  }
}

/** Reads one line; undefined for the header of CSV. */
type ReadLine = (line: TextLine) => TargetRef | Failure | undefined;

/** Reads lines of NDJSON. */
function ndjsonReader(): ReadLine {
  return readerOf((text) => {
    const document = tryParseJson(text);
    return document === undefined
      ? new Failure('malformed_json', 'the line is not JSON')
      : toRef(document);
  });
}

/**
 * Reads lines of CSV. The first one names the columns; without `kind` the filled cells tell it.
 * @throws Failure `invalid_request` for a header with other columns
 */
function csvReader(): ReadLine {
  let header: string[] | undefined;
  return readerOf((text) => {
    const cells = cellsOf(text)?.map(plainText);
    if (!header) {
      header = readHeader(cells);
      return undefined;
    }
    if (!cells) return new Failure('invalid_request', 'a quote is not closed');
    if (cells.length > header.length)
      return new Failure('invalid_request', `more than ${header.length} cells`);
    const filled = header.flatMap((name, n) => (cells[n] ? [[name, cells[n]] as const] : []));
    const fields: Record<string, string> = Object.fromEntries(filled);
    return toRef({ kind: kindOf(fields), ...fields });
  });
}

/** The cells of a row; undefined when a quote is not closed or stands inside a cell. */
function cellsOf(row: string): string[] | undefined {
  if (!row.includes('"')) return row.split(',').map((cell) => cell.trim());
  try {
    const [cells] = parse(row, { record_delimiter: '\n', trim: true });
    return cells;
  } catch (error) {
    if (error instanceof CsvError) return undefined;
    throw error;
  }
}

function readHeader(cells: string[] | undefined): string[] {
  const wrong = cells?.find(
    (name, n) => !TARGET_COLUMNS.some((one) => one === name) || cells.indexOf(name) !== n,
  );
  if (cells && wrong === undefined) return cells;
  const columns = TARGET_COLUMNS.join(', ');
  throw new Failure(
    'invalid_request',
    `line 1 must name the columns, of ${columns}; ${wrong ?? 'it'} is not one of them`,
  );
}

function kindOf(fields: Record<string, string>): string {
  if (fields.addr !== undefined) return 'wallet';
  return fields.token_id === undefined ? 'contract' : 'token';
}

function readerOf(read: (text: string) => TargetRef | Failure | undefined): ReadLine {
  return (line) =>
    'tooLong' in line
      ? new Failure('body_too_large', `the line is longer than ${LINE_MAX} bytes`)
      : read(line.text);
}

function toRef(document: unknown): TargetRef | Failure {
  const read = watchInput.safeParse(document);
  return read.success ? toTarget(read.data) : invalidRequest(errorsOf(read.error));
}

/**
 * Tells which targets it has not seen before. 48 bits of a hash of each are kept, about 40 MB for a
 * million, so that one in 500 runs with a million targets counts one of them wrongly.
 */
function makeSeen(): (ref: TargetRef) => boolean {
  const seen = new Set<number>();
  return (ref) => {
    const hash = createHash('sha1').update(targetName(ref)).digest().readUIntBE(0, 6);
    const isNew = !seen.has(hash);
    seen.add(hash);
    return isNew;
  };
}
