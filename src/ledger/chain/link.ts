/**
 * One batch of the ledger as the hash chain covers it. Without imports beside node:crypto, as
 * walk.ts.
 *
 * A line is the JSON text of one row. The digests of a chain row are the SHA-256 of the lines of
 * its batch; its head is the SHA-256 of the previous head (32 zero bytes at first) and of these
 * digests: batch, transactions, movements, evidence. The evidence is what other stages recorded.
 */
import { createHash } from 'node:crypto';

/** A row of the table `chain`. */
export interface ChainRow {
  batchId: bigint;
  lastTransaction: bigint;
  batch: Buffer;
  transactions: Buffer;
  movements: Buffer;
  evidence: Buffer;
  head: Buffer;
}

export interface RowLine {
  id: bigint;
  line: string;
}

/** A row that another stage recorded, such as `transition` 17 or `decision` op_1/2. */
export interface EvidenceLine {
  source: string;
  key: string;
  line: string;
}

/** Rows of the table `chained_rows`: the keys of one source in a batch, in their order. */
export interface ChainedRows {
  source: string;
  rowIds: string[];
}

/** A chain row with the rows that are found in its place; without one, rows beyond the chain. */
export interface Link {
  chain: ChainRow | undefined;
  batch: RowLine[];
  transactions: RowLine[];
  movements: RowLine[];
  /** By source, in the order of the digests. */
  chained: ChainedRows[];
  evidence: EvidenceLine[];
}

/** The members that make the key of a line of evidence, by its source. */
export const EVIDENCE_KEYS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['approval', ['subject', 'n', 'owner']],
  ['decision', ['subject', 'n']],
  ['drift', ['id']],
  ['drift_action', ['id']],
  ['period', ['id']],
  ['period_action', ['id']],
  ['quarantine_release', ['id']],
  ['transition', ['id']],
]);

export const DIGEST = 32;

export function sha256(...parts: (Buffer | string)[]): Buffer {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** Of the rows that are found; the chain has these if nothing was changed. */
export function digestsOf({ batch, transactions, movements, chained, evidence }: Link): Buffer[] {
  const lines = new Map(evidence.map((row) => [nameOf(row.source, row.key), row]));
  const named = namesOf(chained).flatMap((name) => lines.get(name) ?? []);
  return [batch, transactions, movements, named].map((rows) =>
    Buffer.concat(rows.map(({ line }) => sha256(line))),
  );
}

export function namesOf(chained: readonly ChainedRows[]): string[] {
  return chained.flatMap(({ source, rowIds }) => rowIds.map((key) => nameOf(source, key)));
}

/** As findings name a row: `drift action 3`. */
export function nameOf(source: string, key: string): string {
  return `${source.replaceAll('_', ' ')} ${key}`;
}

export function split(digests: Buffer): Buffer[] {
  const count = Math.floor(digests.length / DIGEST);
  return Array.from({ length: count }, (_, n) => digests.subarray(n * DIGEST, (n + 1) * DIGEST));
}
