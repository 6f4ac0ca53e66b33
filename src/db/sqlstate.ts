/**
 * Database errors as SQLSTATE codes. The driver's errors contain statements, parameters and values,
 * which may be secret; a DatabaseError has only the SQLSTATE and the constraint.
 */
import { monotonicMs } from '../kernel/clock.ts';
import type { Log } from '../kernel/telemetry/log.ts';

export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';
  /** SQLSTATE, or the driver's code such as CONNECTION_CLOSED. */
  readonly code: string;
  readonly constraint: string | undefined;
  /** True when the server refused or ended the connection with it. */
  readonly isFatal: boolean;

  constructor(code: string, constraint?: string, where?: string, isFatal = false) {
    super(`database error: ${code}${constraint ? ` (${constraint})` : ''}`);
    this.code = code;
    this.constraint = constraint;
    this.isFatal = isFatal;
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
  // During a failover.
  'NO_TARGET_SESSION',
  '57P01',
  '57P02',
  '57P03',
  '57P04',
  '57P05',
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
    severity,
  } = inner as Error & {
    code?: unknown;
    constraint_name?: string;
    query?: unknown;
    severity?: unknown;
  };
  const driver = inner.name === 'PostgresError' || query !== undefined || AWAY.has(String(code));
  if (!driver || typeof code !== 'string') return error;
  if (isOfPooler(inner)) return new DatabaseError('08006');
  const frames = inner.stack?.split('\n').filter((line) => /^\s+at .*\/(src|test)\//.test(line));
  const isFatal = severity === 'FATAL' || severity === 'PANIC';
  return new DatabaseError(code, constraint, frames?.slice(0, 6).join('\n'), isFatal);
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

/** Too little disk, memory or room; errors of the system; read-only, as a standby is. */
const REFUSES = /^(53|58)...$|^25006$/;

/** The SQLSTATE with which a database that answers refuses work; undefined for other errors. */
export function refusalOf(error: unknown): string | undefined {
  const known = toDatabaseError(error);
  if (!(known instanceof DatabaseError) || AWAY.has(known.code)) return undefined;
  return REFUSES.test(known.code) ? known.code : undefined;
}

/** True when no statement of this kind can work now: the database is away or refuses work. */
export function isOutage(error: unknown): boolean {
  const known = toDatabaseError(error);
  if (!(known instanceof DatabaseError)) return false;
  return AWAY.has(known.code) || REFUSES.test(known.code) || known.isFatal;
}

/** True when the same request may work later, so that it is answered 503. */
export function isUnavailable(error: unknown): boolean {
  return isOutage(error) || isTooSlow(error) || isRetryable(error);
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

const LOGGED_EVERY_MS = 60_000;
const loggedAt = new WeakMap<Log, number>();

/** Logs an outage once a minute, not for each request and pass that fails with it. */
export function logOutage(log: Log, error: unknown): void {
  const now = monotonicMs();
  if (now - (loggedAt.get(log) ?? Number.NEGATIVE_INFINITY) < LOGGED_EVERY_MS) return;
  loggedAt.set(log, now);
  log.error({ err: toDatabaseError(error) }, 'the database is unavailable; logged once a minute');
}
