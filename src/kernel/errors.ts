/**
 * Every refusal in one table: its stable code, the HTTP status it answers with, and what it says.
 * One class carries them. What is not in the table is a bug: it answers 500 with nothing inside.
 */

interface ErrorRow {
  status: number;
  title: string;
  /** Whether the same request may succeed later without being changed. */
  retryable?: true;
}

export const ERRORS = {
  // What a caller got wrong.
  malformed_http: { status: 400, title: 'The bytes are not a request of HTTP' },
  headers_too_large: { status: 431, title: 'The address and headers are larger than 16 KiB' },
  request_timeout: { status: 408, title: 'The request did not come in time', retryable: true },
  malformed_json: { status: 400, title: 'The body is not JSON' },
  invalid_request: { status: 400, title: 'The request does not have the documented form' },
  invalid_cursor: { status: 400, title: 'The cursor is not one that this list gave' },
  unauthorized: { status: 401, title: 'A valid key is needed: Authorization: Bearer thk_…' },
  forbidden: { status: 403, title: 'The key lacks the scope for this' },
  key_limit: { status: 403, title: 'The write exceeds a limit of the key' },
  frozen: { status: 403, title: 'Writes are frozen' },
  not_found: { status: 404, title: 'There is nothing here' },
  method_not_allowed: { status: 405, title: 'The path does not take this method' },
  conflict: { status: 409, title: 'The state does not allow this' },
  same_owner: { status: 409, title: 'A second person is needed: another owner must approve' },
  cursor_expired: { status: 410, title: 'The cursor is older than what is kept' },
  body_too_large: { status: 413, title: 'The body is larger than allowed' },
  unsupported_media_type: { status: 415, title: 'The body has the wrong content type' },
  // What happened to a write.
  idempotency_mismatch: { status: 422, title: 'The idempotency key was used with another request' },
  idempotency_in_flight: {
    status: 409,
    title: 'The first request with this key is still running',
    retryable: true,
  },
  executed_without_number: {
    status: 409,
    title: 'The write was executed, its number is not known',
  },
  not_executed: { status: 409, title: 'The write was found not executed; its key stays used' },
  wallet_outcome_pending: {
    status: 409,
    title: 'Another write on this wallet is open',
    retryable: true,
  },
  matches_open_operation: {
    status: 409,
    title: 'The report looks like an operation that is still open',
  },
  outcome_unknown: {
    status: 504,
    title: 'The answer of the service was lost; the outcome is unknown',
  },
  upstream_not_reached: {
    status: 502,
    title: 'The service was not reached; nothing was sent',
    retryable: true,
  },
  upstream_throttled: { status: 429, title: 'The service asked to wait', retryable: true },
  // What is wrong with us or around us.
  too_many_requests: { status: 429, title: 'Too many requests', retryable: true },
  database_unavailable: { status: 503, title: 'The database does not answer', retryable: true },
  not_ready: { status: 503, title: 'The daemon is not ready', retryable: true },
  shutting_down: { status: 503, title: 'The daemon is stopping', retryable: true },
  upstream_unreadable: {
    status: 502,
    title: 'The service answered something unreadable',
    retryable: true,
  },
  url_refused: { status: 422, title: 'Webhooks may not be sent to this address' },
  seal_broken: { status: 500, title: 'A secret does not open with this master key' },
  lease_lost: { status: 503, title: 'Another daemon took over', retryable: true },
  bad_setting: { status: 500, title: 'A setting is not usable' },
  internal: { status: 500, title: 'Something went wrong inside' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** A refusal or a failure with its code; `detail` is for people and never holds a secret. */
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

/**
 * The RFC 9457 problem document of an error; whatever is not a Failure is `internal`, with nothing
 * inside.
 */
export function problemOf(
  error: unknown,
): Record<string, unknown> & { status: number; code: ErrorCode } {
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
