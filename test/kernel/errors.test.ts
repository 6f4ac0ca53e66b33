import { expect, it } from 'vitest';
import {
  assert,
  ERRORS,
  type ErrorCode,
  Failure,
  must,
  problemOf,
} from '../../src/kernel/errors.ts';

/** The codes that callers rely on, with their status. */
const CONTRACT: Record<string, number> = {
  malformed_json: 400,
  invalid_request: 400,
  invalid_cursor: 400,
  unauthorized: 401,
  forbidden: 403,
  key_limit: 403,
  member_not_allowed: 403,
  frozen: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  same_owner: 409,
  cursor_expired: 410,
  body_too_large: 413,
  unsupported_media_type: 415,
  idempotency_mismatch: 422,
  idempotency_in_flight: 409,
  executed_without_number: 409,
  not_executed: 409,
  wallet_outcome_pending: 409,
  matches_open_operation: 409,
  outcome_unknown: 504,
  upstream_not_reached: 502,
  upstream_throttled: 429,
  too_many_requests: 429,
  database_unavailable: 503,
  database_unproved: 503,
  not_ready: 503,
  shutting_down: 503,
  upstream_unreadable: 502,
  url_refused: 422,
  decryption_failed: 500,
  lease_lost: 503,
  bad_setting: 500,
  internal: 500,
};

it('The error table has every code of the contract with its status', () => {
  const rows = Object.entries(ERRORS).map(([code, { status }]) => [code, status]);
  expect(Object.fromEntries(rows)).toMatchObject(CONTRACT);
});

it.each(Object.keys(ERRORS) as ErrorCode[])(
  'The error table has a problem document for %s',
  (code) => {
    const problem = problemOf(new Failure(code, 'why', { operation_id: 'op_1' }));
    expect(problem).toEqual({
      type: `urn:tallyhook:problem:${code}`,
      title: ERRORS[code].title,
      status: ERRORS[code].status,
      code,
      detail: 'why',
      operation_id: 'op_1',
    });
    expect(problem.status).toBeGreaterThanOrEqual(400);
  },
);

it.each([new Error('secret'), 'secret', null, { code: 'secret' }, new TypeError('secret')])(
  'The error table answers the unexpected error %s as a bare 500',
  (error) => {
    expect(problemOf(error)).toEqual({
      type: 'urn:tallyhook:problem:internal',
      title: ERRORS.internal.title,
      status: 500,
      code: 'internal',
    });
  },
);

it('A failed assertion is an error that names the condition', () => {
  expect(() => assert(false, 'order')).toThrow('order');
  expect(() => must(undefined, 'row')).toThrow('no row');
  expect([must(0, 'zero'), must('', 'text'), must(false, 'flag')]).toEqual([0, '', false]);
});
