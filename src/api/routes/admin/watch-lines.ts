/** Watches as lines: the fields of a watch, and lines of NDJSON or CSV that hold them. */
import { createHash } from 'node:crypto';
import { z } from '@hono/zod-openapi';
import { cellsOf } from '../../../kernel/csv.ts';
import { Failure } from '../../../kernel/errors.ts';
import { tryParseJson } from '../../../kernel/json.ts';
import { type TargetRef, targetName } from '../../../observer/observer.ts';
import { TARGET_COLUMNS } from '../../../resources/admin/watch.ts';
import { addressInput, decimalInput } from '../../http/fields.ts';
import type { TextLine } from '../../http/ndjson.ts';
import { errorsOf, invalidRequest } from '../../http/problems.ts';

export const watchInput = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('wallet'), addr: addressInput }),
  z.strictObject({ kind: z.literal('contract'), contract_id: decimalInput }),
  z.strictObject({
    kind: z.literal('token'),
    contract_id: decimalInput,
    token_id: decimalInput,
  }),
]);

export function toTarget(input: z.output<typeof watchInput>): TargetRef {
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

/** The longest line, in bytes. */
export const LINE_MAX = 4_096;

/** Reads lines of NDJSON. */
export function ndjsonReader(): ReadLine {
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
export function csvReader(): ReadLine {
  let header: string[] | undefined;
  return readerOf((text) => {
    const cells = cellsOf(text);
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

function readHeader(cells: string[] | undefined): string[] {
  const wrong = cells?.find(
    (name, n) => !TARGET_COLUMNS.includes(name) || cells.indexOf(name) !== n,
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
export function makeSeen(): (ref: TargetRef) => boolean {
  const seen = new Set<number>();
  return (ref) => {
    const hash = createHash('sha1').update(targetName(ref)).digest().readUIntBE(0, 6);
    const isNew = !seen.has(hash);
    seen.add(hash);
    return isNew;
  };
}
