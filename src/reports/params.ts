/** The parameters of a reconciliation: a period, the time that ages are counted up to, limits. */
import type { Tx } from '../db/connect.ts';
import { type Instant, isoText } from '../kernel/clock.ts';

/** Ages at which open items become breaks, in milliseconds. */
export interface Limits {
  /** How long an executed operation may be missing in observations. */
  readLagMs: number;
  /** How long after its send deadline a write can still be applied. */
  quiescenceMs: number;
  /** How long a posting may wait. */
  overdueMs: number;
  /** How long a wallet may lack a conclusive observation, and an NFT write its settlement. */
  staleMs: number;
  /** Rows per list; counts are always complete. */
  listMax: number;
}

/** Parameters as SQL takes them, with the transaction whose snapshot is read. */
export interface ReportParams {
  tx: Tx;
  from: string;
  /** Exclusive. */
  to: string;
  asOf: string;
  limits: Limits;
}

export function reportParams(
  tx: Tx,
  input: { from: Instant; to: Instant; asOf: Instant; limits: Limits },
): ReportParams {
  const { from, to, asOf, limits } = input;
  return { tx, from: isoText(from), to: isoText(to), asOf: isoText(asOf), limits };
}

/** The instant `ms` before `asOf`. */
export function before({ asOf }: ReportParams, ms: number): string {
  return isoText(Date.parse(asOf) - ms);
}
