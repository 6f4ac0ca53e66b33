/**
 * Errors as RFC 9457 problem documents with a stable code. Unexpected errors are logged and
 * answered as a bare 500, an unreachable database as 503.
 */
import type { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { isTooSlow, isUnavailable, logOutage, toDatabaseError } from '../../db/sqlstate.ts';
import { Failure, problemOf } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import { problem } from '../../resources/results.ts';
import type { Api } from '../deps.ts';
import { schemaOf } from './schemas.ts';

/** A problem document as the response of a route. */
export function problemResponse(description: string) {
  return { description, content: { 'application/problem+json': { schema: schemaOf(problem) } } };
}

const PROBLEMS = {
  400: 'The request does not have the documented form',
  401: 'No valid key',
  403: 'The key lacks the required scope',
  404: 'Not found',
  500: 'Internal error',
  503: 'Temporarily unavailable; see Retry-After',
};
const WRITE_PROBLEMS = {
  409: 'The current state does not allow this',
  422: 'The request has the documented form, but is refused',
};
const BODY_PROBLEMS = {
  408: 'The body did not arrive in time',
  413: 'The body is too large',
  415: 'The content type of the body is not supported',
};

/** The problems that a route may answer; `more` are those of this route alone. */
export function problemsOf(method: string, hasBody: boolean, more: Record<number, string> = {}) {
  const all = [
    PROBLEMS,
    method === 'get' ? {} : WRITE_PROBLEMS,
    hasBody ? BODY_PROBLEMS : {},
    more,
  ];
  return Object.fromEntries(
    all.flatMap((some) =>
      Object.entries(some).map(([status, text]) => [status, problemResponse(text)]),
    ),
  );
}

type FieldError = { path: string; message: string };

export function invalidRequest(errors: readonly FieldError[]): Failure {
  const detail = errors.map(({ path, message }) => `${path || 'body'}: ${message}`).join('; ');
  return new Failure('invalid_request', detail.slice(0, 500), { errors: errors.slice(0, 50) });
}

/** The errors of a request, without the name of its part (`query` or `body`). */
export function requestErrors(error: z.core.$ZodError): FieldError[] {
  return errorsOf(error).map(({ path, message }) => ({
    path: path.replace(/^(query|body)\.?/, ''),
    message,
  }));
}

type Issue = z.core.$ZodIssue;

export function errorsOf(error: z.core.$ZodError): FieldError[] {
  return error.issues.flatMap((issue) => flatten(issue, []));
}

/** Of a union, only the errors of the variant that the value has the form of. */
function flatten(issue: Issue, parent: PropertyKey[]): FieldError[] {
  const path = [...parent, ...issue.path];
  const at = (places: PropertyKey[], message: string) => ({
    path: places.map(String).join('.'),
    message,
  });
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => at([...path, key], 'is not a known field'));
  if (issue.code === 'invalid_union') {
    const isInside = (i: Issue) => i.path.length > 0 || i.code === 'unrecognized_keys';
    const form = issue.errors.find((issues) => issues.length > 0 && issues.every(isInside));
    if (form) return form.flatMap((inner) => flatten(inner, path));
  }
  return [at(path, issue.message)];
}

/** Answers errors, unknown paths (404) and unknown methods (405). */
export function answerProblems(app: Api, log: Log): void {
  app.onError((error, c) => answer(c, failureOf(error, log)));
  let allowed: ((path: string) => string[]) | undefined;
  app.notFound((c) => {
    allowed ??= methodsByPath(app);
    const methods = allowed(c.req.path);
    if (methods.length === 0) return answer(c, new Failure('not_found'));
    c.header('allow', methods.join(', '));
    return answer(c, new Failure('method_not_allowed'));
  });
}

/** The failure to answer for an error; unexpected errors are logged. */
export function failureOf(error: unknown, log: Log): Failure {
  const failure = asFailure(error);
  if (failure.code === 'database_unavailable') logOutage(log, error);
  if (failure.code === 'internal') log.error({ err: toDatabaseError(error) }, 'API request failed');
  return failure;
}

function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (isTooSlow(error)) return new Failure('query_too_slow');
  return new Failure(isUnavailable(error) ? 'database_unavailable' : 'internal');
}

const RETRY_AFTER_S = '2';

function answer(c: Context, failure: Failure): Response {
  const { status, code } = failure;
  if (status === 401) c.header('www-authenticate', 'Bearer realm="tallyhook"');
  if (code === 'forbidden')
    c.header('www-authenticate', 'Bearer realm="tallyhook", error="insufficient_scope"');
  if (status === 429 || status === 503) c.header('retry-after', RETRY_AFTER_S);
  // The rest of the body is not read, so the connection cannot be used again.
  if (status === 408 || status === 413) c.header('connection', 'close');
  c.header('cache-control', 'no-store');
  c.header('content-type', 'application/problem+json');
  return c.body(jsonText(problemOf(failure)), status as ContentfulStatusCode);
}

/** The methods that the app serves under a path. */
function methodsByPath(app: Api): (path: string) => string[] {
  const routes = app.routes.filter(({ method }) => method !== 'ALL');
  const patterns = routes.map(({ path, method }) => ({ method, pattern: patternOf(path) }));
  return (path) => {
    const found = patterns.filter(({ pattern }) => pattern.test(path)).map((r) => r.method);
    return [...new Set(found.includes('GET') ? [...found, 'HEAD'] : found)].sort();
  };
}

function patternOf(path: string): RegExp {
  const parts = path.split('/').map((part) => (part.startsWith(':') ? '[^/]+' : literal(part)));
  return new RegExp(`^${parts.join('/')}$`);
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
