/**
 * What the database says when it refuses, as codes. Errors of the driver carry parameters and
 * values; nothing of that leaves this folder: a DatabaseError has the SQLSTATE and the constraint,
 * no more.
 */

/** A failed statement: which SQLSTATE, which constraint or table; never the values. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';
  /** SQLSTATE, or the driver's code such as CONNECTION_CLOSED. */
  readonly code: string;
  readonly constraint: string | undefined;

  constructor(code: string, constraint: string | undefined, where: string | undefined) {
    super(`database refused: ${code}${constraint ? ` (${constraint})` : ''}`);
    this.code = code;
    this.constraint = constraint;
    if (where) this.stack = `${this.name}: ${this.message}\n${where}`;
  }
}

/** SQLSTATEs after which the same work may be tried again: it was rolled back whole. */
const RETRYABLE = new Set(['40001', '40P01', '55P03']);

/** Codes that mean the database is away, not that it refused. */
const AWAY = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  '57P01',
  '57P02',
  '57P03',
  '08006',
  '08003',
  '08001',
  // Ended from outside while it ran, or no connection left: the server is there, but not for us.
  '25P03',
  '25P04',
  '53300',
  'DEADLINE',
]);

/**
 * The error as ours: one of the driver's becomes a DatabaseError, anything else stays what it is.
 */
export function toDatabaseError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof DatabaseError) return error;
  const inner = error.cause instanceof Error ? error.cause : error;
  const {
    code,
    constraint_name: constraint,
    query,
  } = inner as Error & {
    code?: unknown;
    constraint_name?: string;
    query?: unknown;
  };
  const driver = inner.name === 'PostgresError' || query !== undefined || AWAY.has(String(code));
  if (!driver || typeof code !== 'string') return error;
  const frames = inner.stack?.split('\n').filter((line) => /^\s+at .*\/(src|test)\//.test(line));
  return new DatabaseError(code, constraint, frames?.slice(0, 6).join('\n'));
}

/**
 * True when the transaction may be run again as it is (serialization failure, deadlock, lock
 * timeout).
 */
export function isRetryable(error: unknown): boolean {
  const refusal = toDatabaseError(error);
  return refusal instanceof DatabaseError && RETRYABLE.has(refusal.code);
}

/**
 * True when the database could not be reached or went away; the outcome of a commit is then not
 * known.
 */
export function isAway(error: unknown): boolean {
  const refusal = toDatabaseError(error);
  return refusal instanceof DatabaseError && AWAY.has(refusal.code);
}

/** True when a statement was ended because it ran for too long; its work was rolled back. */
export function isTooSlow(error: unknown): boolean {
  const refusal = toDatabaseError(error);
  return refusal instanceof DatabaseError && refusal.code === '57014';
}

/** True when a unique index (that one, when named) refused the row. */
export function isDuplicate(error: unknown, constraint?: string): boolean {
  const refusal = toDatabaseError(error);
  return (
    refusal instanceof DatabaseError &&
    refusal.code === '23505' &&
    (constraint === undefined || refusal.constraint === constraint)
  );
}
