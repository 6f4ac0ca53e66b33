/** Refusals of webhooks: a stable code, the status of the response, and what to do. */

const STATUSES = {
  bad_key: 500,
  method_not_allowed: 405,
  missing_header: 400,
  bad_header: 400,
  outside_tolerance: 400,
  bad_signature: 401,
  bad_event: 400,
  body_incomplete: 400,
  body_late: 408,
  body_too_large: 413,
  body_consumed: 500,
  keys_unavailable: 503,
  in_progress: 409,
  busy: 503,
  store_failed: 500,
  handler_failed: 500,
} as const;

export type WebhookErrorCode = keyof typeof STATUSES;

/** Its message holds no part of a key, a signature or a body. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
  readonly code: WebhookErrorCode;

  constructor(code: WebhookErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** The status to answer. All of them make the sender send again later. */
  get status(): number {
    return STATUSES[this.code];
  }
}
