/**
 * Checks the hash chain of the ledger, link by link, and names what is wrong and where. Pure, and
 * without imports beside link.ts, because it also checks exports on machines without Tallyhook.
 */
import {
  type ChainRow,
  DIGEST,
  digestsOf,
  type EvidenceLine,
  type Link,
  nameOf,
  namesOf,
  type RowLine,
  sha256,
  split,
} from './link.ts';

/** A head that was kept elsewhere. */
export interface Anchor {
  /** Lower-case hex. */
  head: string;
  /** How many batches the chain had. */
  count: bigint;
  /** Where it was kept. */
  source: string;
}

type FindingKind =
  | 'changed'
  | 'removed'
  | 'inserted'
  | 'swapped'
  | 'cut'
  | 'line_ends'
  | 'chain_edited'
  | 'rewritten'
  | 'older_copy'
  | 'account_off'
  | 'day_end_off';

/** What is wrong; `row` is the first row that it concerns, such as `transaction 12`. */
interface Finding {
  kind: FindingKind;
  row: string;
  text: string;
}

export interface Verdict {
  ok: boolean;
  /** Batches in the chain, and its last head in hex. */
  count: bigint;
  head: string;
  transactions: bigint;
  /** Rows of other stages in the chain. */
  evidence: bigint;
  anchors: number;
  /** At most `FINDINGS_MAX`; `total` counts all. */
  findings: Finding[];
  total: number;
}

const FINDINGS_MAX = 100;
const FIRST_HEAD = Buffer.alloc(DIGEST);

/** `<head>:<count>`, as reports and `verify` print it; undefined for anything else. */
export function parseAnchor(text: string, source: string): Anchor | undefined {
  const [, head, count] = /^([0-9a-f]{64}):(\d{1,18})$/i.exec(text.trim()) ?? [];
  if (!head || !count || count === '0') return undefined;
  return { head: head.toLowerCase(), count: BigInt(count), source };
}

/** A row whose digest is in the chain. */
interface Expected {
  name: string;
  digest: Buffer;
  line: string | undefined;
  id: bigint;
}

/** Takes the links in the order of their batches; `end` gives the verdict. */
export class Walk {
  readonly #anchors: readonly Anchor[];
  readonly #findings: Finding[] = [];
  #total = 0;
  #evidence = 0n;
  /** The heads that the next link may follow: as stored, and after a finding as computed. */
  #heads: Buffer[] = [FIRST_HEAD];
  #last: Pick<ChainRow, 'batchId' | 'lastTransaction' | 'head'> = {
    batchId: 0n,
    lastTransaction: 0n,
    head: FIRST_HEAD,
  };
  /** Missing rows without another between them: removed, or cut off if none follows. */
  #missing: { first: string; count: number } | undefined;
  readonly #changed: Expected[] = [];

  constructor(anchors: readonly Anchor[]) {
    this.#anchors = anchors;
  }

  add(link: Link): void {
    const { chain, batch, transactions, movements, evidence } = link;
    if (chain) {
      this.#evidence += BigInt(chain.evidence.length / DIGEST);
      this.#checkLink(chain, link);
      this.#checkAnchors(chain);
      return;
    }
    this.#reportInserted('batch', batch);
    this.#reportInserted('transaction', transactions);
    this.#reportInserted('movement', movements);
    for (const row of evidence) this.#reportStrange(row);
  }

  /** Adds a finding, also one that was made by other means. */
  report(kind: FindingKind, row: string, text: string): void {
    this.#total += 1;
    if (this.#findings.length < FINDINGS_MAX)
      this.#findings.push({ kind, row, text: `${row} ${text}` });
  }

  end(): Verdict {
    if (this.#missing) {
      const { first, count } = this.#missing;
      const rows = count > 1 ? `it and ${count - 1} rows after it` : 'it';
      this.report('cut', first, `is in the chain but not in the ledger: ${rows} were cut off`);
    }
    for (const { count, source } of this.#anchors)
      if (count > this.#last.batchId) {
        const text =
          `is known to ${source}, but the chain ends at batch ${this.#last.batchId}: ` +
          'its end was cut off, or an older copy was restored';
        this.report('older_copy', `batch ${count}`, text);
      }
    this.#nameSwaps();
    return {
      ok: this.#total === 0,
      count: this.#last.batchId,
      head: this.#last.head.toString('hex'),
      transactions: this.#last.lastTransaction,
      evidence: this.#evidence,
      anchors: this.#anchors.length,
      findings: this.#findings,
      total: this.#total,
    };
  }

  #checkLink(chain: ChainRow, link: Link): void {
    const { batchId, lastTransaction } = this.#last;
    const hasGap = chain.batchId !== batchId + 1n;
    if (hasGap) {
      const text = 'is missing: the table chain was edited';
      this.report('chain_edited', `chain row ${batchId + 1n}`, text);
    }
    const stored = [chain.batch, chain.transactions, chain.movements, chain.evidence];
    const follows = (digests: readonly Buffer[]) =>
      this.#heads.some((head) => sha256(head, ...digests).equals(chain.head));
    const posted = BigInt(chain.transactions.length / DIGEST);
    const continues = chain.lastTransaction === lastTransaction + posted;
    const isTrue = hasGap || (continues && follows(stored));
    if (!isTrue) {
      const text = 'does not follow from the row before: it was edited';
      this.report('chain_edited', `chain row ${chain.batchId}`, text);
    }
    const found = isTrue ? stored : digestsOf(link);
    if (isTrue || !follows(found)) this.#checkRows(chain, link, hasGap);
    const [before = FIRST_HEAD] = this.#heads;
    this.#heads = isTrue
      ? [chain.head]
      : [chain.head, sha256(before, ...stored), sha256(before, ...found)];
    this.#last = chain;
  }

  #checkRows(chain: ChainRow, link: Link, hasGap: boolean): void {
    const { batch, transactions, movements } = link;
    const name = `batch ${chain.batchId}`;
    const digests = split(chain.transactions);
    const first = chain.lastTransaction - BigInt(digests.length) + 1n;
    const lines = new Map(transactions.map((row) => [row.id, row.line]));
    const expected = digests.map((digest, index): Expected => {
      const id = first + BigInt(index);
      return { name: `transaction ${id}`, digest, line: lines.get(id), id };
    });
    const line = batch[0]?.line;
    const isBare = expected.length > 0 && expected.every((row) => row.line === undefined);
    // A batch that remains without its transactions does not interrupt the missing rows.
    if (line === undefined || !isBare)
      this.#checkRow({ name, digest: chain.batch, line, id: chain.batchId });
    for (const row of expected) this.#checkRow(row);
    // Those of a missing chain row stand before the first.
    const isBeyond = ({ id }: RowLine) => id > chain.lastTransaction || (id < first && !hasGap);
    this.#reportInserted('transaction', transactions.filter(isBeyond));
    this.#checkMovements(name, split(chain.movements), movements);
    this.#checkEvidence(name, split(chain.evidence), link);
  }

  #checkRow(row: Expected): void {
    if (row.line === undefined) {
      this.#missing ??= { first: row.name, count: 0 };
      this.#missing.count += 1;
      return;
    }
    this.#reportRemoved();
    if (sha256(row.line).equals(row.digest)) return;
    if (this.#changed.length < FINDINGS_MAX) this.#changed.push(row);
    this.report('changed', row.name, 'is not as it was posted');
  }

  #reportRemoved(): void {
    if (!this.#missing) return;
    const { first, count } = this.#missing;
    const rows = count > 1 ? `it and ${count - 1} rows after it were` : 'it was';
    this.report('removed', first, `is in the chain but not in the ledger: ${rows} removed`);
    this.#missing = undefined;
  }

  #reportInserted(name: string, rows: readonly RowLine[]): void {
    for (const { id } of rows)
      this.report('inserted', `${name} ${id}`, 'is not in the chain: it was inserted');
  }

  /** Movements are numbered with gaps, so a missing one is only known by its digest. */
  #checkMovements(batch: string, digests: Buffer[], rows: readonly RowLine[]): void {
    const left = new Set(digests.map((digest) => digest.toString('hex')));
    const strange = rows.filter(({ line }) => !left.delete(sha256(line).toString('hex')));
    for (const { id } of strange.slice(0, left.size))
      this.report('changed', `movement ${id}`, 'is not as it was posted');
    this.#reportInserted('movement', strange.slice(left.size));
    const removed = left.size - strange.length;
    if (removed > 0) this.report('removed', batch, `lost ${removed} of its movements: removed`);
  }

  /** Rows have keys of their own, so a changed or removed one is known by its key. */
  #checkEvidence(batch: string, digests: Buffer[], { chained, evidence }: Link): void {
    const stored = digests.map((digest) => digest.toString('hex'));
    const known = new Set(stored);
    const lines = new Map(evidence.map((row) => [nameOf(row.source, row.key), row.line]));
    const names = namesOf(chained);
    let isEdited = names.length !== stored.length;
    for (const [index, name] of names.entries()) {
      const line = lines.get(name);
      if (line === undefined) {
        const text = 'is in the chain but not in the database: it was removed';
        this.report('removed', name, text);
        continue;
      }
      const digest = sha256(line).toString('hex');
      if (!known.has(digest)) this.report('changed', name, 'is not as it was recorded');
      else isEdited ||= digest !== stored[index];
    }
    if (isEdited) {
      const text = 'do not name the rows in the chain: the table chained_rows was edited';
      this.report('chain_edited', `chained rows of ${batch}`, text);
    }
    const named = new Set(names);
    for (const row of evidence)
      if (!named.has(nameOf(row.source, row.key))) this.#reportStrange(row);
  }

  #reportStrange({ source, key }: EvidenceLine): void {
    const text = 'is in no batch of the chain: it was inserted';
    this.report('inserted', nameOf(source, key), text);
  }

  #checkAnchors(chain: ChainRow): void {
    const head = chain.head.toString('hex');
    for (const { count, head: kept, source } of this.#anchors)
      if (count === chain.batchId && kept !== head) {
        const text = `has another head than ${source}: the ledger up to it was rewritten`;
        this.report('rewritten', `batch ${count}`, text);
      }
  }

  /** Names transactions that are each what another one was posted as. */
  #nameSwaps(): void {
    for (const row of this.#changed) {
      const other = this.#changed.find((one) => one !== row && isMoved(row, one));
      const at = this.#findings.find((one) => one.kind === 'changed' && one.row === row.name);
      if (!other || !at) continue;
      at.kind = 'swapped';
      at.text = `${row.name} is what was posted as ${other.name}: their order was swapped`;
    }
  }
}

/** True if a transaction is, apart from its number, the one that was posted as `as`. */
function isMoved({ line, id }: Expected, as: Expected): boolean {
  if (line === undefined) return false;
  return sha256(line.replace(`"id":${id},`, `"id":${as.id},`)).equals(as.digest);
}
