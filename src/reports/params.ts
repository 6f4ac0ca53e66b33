/**
 * What a reconciliation is asked: a period, an instant to count ages to, and the limits it judges
 * by.
 */
import type { Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';

/** When something that is open becomes a break; milliseconds. */
export interface Limits {
  /** L: how long a write may take to show in reads. */
  readLagMs: number;
  /** How long after its send deadline a write may still be applied. */
  quiescenceMs: number;
  /** How long a posting may be due. */
  overdueMs: number;
  /** How long a wallet may go without a conclusive look, and an NFT write without its end. */
  staleMs: number;
  /** Lines of a list at most; the counts are always complete. */
  listMax: number;
}

/** One question, inside its snapshot. Instants as SQL takes them. */
export interface Question {
  tx: Tx;
  from: string;
  /** Excluded. */
  to: string;
  asOf: string;
  limits: Limits;
}

/** The question in one snapshot. */
export function questionOf(
  tx: Tx,
  given: { from: Instant; to: Instant; asOf: Instant; limits: Limits },
): Question {
  const { from, to, asOf, limits } = given;
  return { tx, from: isoText(from), to: isoText(to), asOf: isoText(asOf), limits };
}

/** The instant that lies `ms` before the question's own. */
export function before({ asOf }: Question, ms: number): string {
  return isoText(Date.parse(asOf) - ms);
}
