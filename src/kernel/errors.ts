/**
 * The one table of error codes, each with its HTTP status and title, and the class that carries
 * them. Codes are stable API. Any error that is not a Failure is answered as a bare 500, such as
 * that of a failed assertion, which is a bug in this program.
 */

interface ErrorRow {
  status: number;
  title: string;
}

export const ERRORS = {
  // Client errors.
  malformed_http: { status: 400, title: 'The bytes are not an HTTP request for a path' },
  headers_too_large: { status: 431, title: 'The request line and headers exceed 16 KiB' },
  request_timeout: { status: 408, title: 'The request did not arrive in time' },
  malformed_json: { status: 400, title: 'The body is not JSON' },
  invalid_request: { status: 400, title: 'The request does not have the documented form' },
  invalid_cursor: { status: 400, title: 'The cursor does not belong to this list' },
  unauthorized: { status: 401, title: 'A valid key is required: Authorization: Bearer thk_…' },
  forbidden: { status: 403, title: 'The key lacks the required scope' },
  key_limit: { status: 403, title: 'The write exceeds a limit of the key' },
  member_not_allowed: {
    status: 403,
    title: 'A key with limits may send the documented members of a write, each once, and no other',
  },
  frozen: {
    status: 403,
    title: 'Writes are frozen: repeat the write when an operator has allowed writes again',
  },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'The path does not allow this method' },
  conflict: { status: 409, title: 'The current state does not allow this' },
  same_owner: { status: 409, title: 'Another owner must approve' },
  cursor_expired: { status: 410, title: 'The cursor is older than the retention period' },
  body_too_large: { status: 413, title: 'The body is too large' },
  role_missing: { status: 421, title: 'This daemon does not have the role for this path' },
  unsupported_media_type: { status: 415, title: 'The content type of the body is not supported' },
  // Outcomes of a write.
  idempotency_mismatch: { status: 422, title: 'The idempotency key was used for another request' },
  idempotency_in_flight: {
    status: 409,
    title: 'The first request with this idempotency key is still running',
  },
  executed_without_number: {
    status: 409,
    title: 'The write was executed, but its number is not known',
  },
  not_executed: {
    status: 409,
    title: 'The write was not executed; its idempotency key stays used',
  },
  key_used_since_backup: {
    status: 409,
    title: 'The idempotency key was used after the backup from which the database was restored',
  },
  wallet_outcome_pending: { status: 409, title: 'Another write on this wallet is open' },
  matches_open_operation: { status: 409, title: 'The report matches an open operation' },
  outcome_unknown: {
    status: 504,
    title: 'The answer of the service was lost; the outcome is unknown',
  },
  upstream_not_reached: { status: 502, title: 'The service was not reached; nothing was sent' },
  upstream_throttled: { status: 429, title: 'The service is throttling requests' },
  // Server errors.
  too_many_requests: { status: 429, title: 'Too many requests' },
  database_unavailable: { status: 503, title: 'The database does not respond' },
  database_unproved: {
    status: 503,
    title: 'The database was lost and is being proved to be the same one; repeat the request',
  },
  query_too_slow: { status: 503, title: 'The query took too long; narrow its filters' },
  not_ready: { status: 503, title: 'The daemon is not ready' },
  shutting_down: { status: 503, title: 'The daemon is shutting down' },
  upstream_unreadable: { status: 502, title: 'The response of the service cannot be read' },
  url_refused: { status: 422, title: 'Webhooks may not be sent to this address' },
  decryption_failed: { status: 500, title: 'A secret cannot be decrypted with this master key' },
  lease_lost: { status: 503, title: 'Another daemon took over the lease' },
  bad_setting: { status: 500, title: 'A setting is invalid' },
  internal: { status: 500, title: 'Internal error' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** An error with a code of the table. `detail` is for people and must not hold a secret. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly code: ErrorCode;
  readonly detail: string | undefined;
  /** Further members of the problem document, such as `operation_id`. */
  readonly members: Record<string, unknown>;

  constructor(code: ErrorCode, detail?: string, members: Record<string, unknown> = {}) {
    super(detail ? `${code}: ${detail}` : code);
    this.code = code;
    this.detail = detail;
    this.members = members;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }
}

interface Problem {
  type: string;
  title: string;
  status: number;
  code: ErrorCode;
  [member: string]: unknown;
}

/** The RFC 9457 problem document of an error; `internal` without detail unless it is a Failure. */
export function problemOf(error: unknown): Problem {
  const failure = error instanceof Failure ? error : new Failure('internal');
  return {
    type: `urn:tallyhook:problem:${failure.code}`,
    title: ERRORS[failure.code].title,
    status: failure.status,
    code: failure.code,
    ...(failure.detail ? { detail: failure.detail } : {}),
    ...failure.members,
  };
}

export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${what}`);
}

/** The default of an exhaustive switch; the compiler proves that it is not reached. */
export function unreachable(value: never): never {
  throw new Error(`assertion failed: unexpected ${JSON.stringify(value)}`);
}

/** @throws Error when the value is null or undefined */
export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`assertion failed: no ${what}`);
  return value;
}
