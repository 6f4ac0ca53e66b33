/**
 * Database errors as SQLSTATE codes. The driver's errors contain statements, parameters and values,
 * which may be secret; a DatabaseError has only the SQLSTATE and the constraint.
 */

export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';
  /** SQLSTATE, or the driver's code such as CONNECTION_CLOSED. */
  readonly code: string;
  readonly constraint: string | undefined;

  constructor(code: string, constraint: string | undefined, where: string | undefined) {
    super(`database error: ${code}${constraint ? ` (${constraint})` : ''}`);
    this.code = code;
    this.constraint = constraint;
    if (where) this.stack = `${this.name}: ${this.message}\n${where}`;
  }
}

/** serialization_failure, deadlock_detected, lock_not_available: the work was rolled back. */
const RETRYABLE = new Set(['40001', '40P01', '55P03']);

/** The database was not reached, or the connection was lost. */
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
  // The session timed out, too many connections, or our own deadline passed.
  '25P03',
  '25P04',
  '53300',
  'DEADLINE',
  // More than the pool's bound wait for a connection.
  'BUSY',
]);

/** Converts an error of the driver to a DatabaseError; returns any other error unchanged. */
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
  if (isOfPooler(inner)) return new DatabaseError('08006', undefined, undefined);
  const frames = inner.stack?.split('\n').filter((line) => /^\s+at .*\/(src|test)\//.test(line));
  return new DatabaseError(code, constraint, frames?.slice(0, 6).join('\n'));
}

/** PgBouncer has one code for all its errors, such as a lost server; only this one is about us. */
function isOfPooler(error: Error & { code?: unknown; severity?: unknown }): boolean {
  const { code, severity, message } = error;
  return code === '08P01' && severity === 'FATAL' && !message.startsWith(REFUSED_PARAMETER);
}
const REFUSED_PARAMETER = 'unsupported startup parameter';

/** True when the same transaction may be run again. */
export function isRetryable(error: unknown): boolean {
  const known = toDatabaseError(error);
  return known instanceof DatabaseError && RETRYABLE.has(known.code);
}

/** True when the database was not reached or went away; a commit's result is then unknown. */
export function isAway(error: unknown): boolean {
  const known = toDatabaseError(error);
  return known instanceof DatabaseError && AWAY.has(known.code);
}

/** True when a lock was not free within `lock_timeout`. */
export function isLocked(error: unknown): boolean {
  const known = toDatabaseError(error);
  return known instanceof DatabaseError && known.code === '55P03';
}

/** True when `statement_timeout` ended a statement; its work was rolled back. */
export function isTooSlow(error: unknown): boolean {
  const known = toDatabaseError(error);
  return known instanceof DatabaseError && known.code === '57014';
}
