/**
 * How the API refuses: RFC 9457 problem documents with a stable code. What is not a refusal of
 * ours is logged and answers 500 with nothing inside; a database that is away answers 503.
 */
import { type Hook, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { isAway, toDatabaseError } from '../../db/sqlstate.ts';
import { ERRORS, type ErrorCode, Failure, problemOf } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import type { Log } from '../../kernel/log.ts';
import type { Api, ApiEnv } from '../deps.ts';

const CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];

export const problem = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(CODES).openapi({ description: 'Stable; programs decide by it' }),
    detail: z.string().optional(),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .openapi({ description: 'What is wrong with the request, by place' }),
  })
  .openapi('Problem');

/** A problem document as the answer of a path. */
export function refusal(description: string) {
  return { description, content: { 'application/problem+json': { schema: problem } } };
}

/** What every path may refuse with. */
export const refusals = {
  400: refusal('The request does not have the documented form'),
  401: refusal('No valid key'),
  403: refusal('The key lacks the scope'),
  404: refusal('There is nothing here'),
  500: refusal('Something went wrong inside'),
  503: refusal('Not now; Retry-After says when'),
};

/** What a path with a body may refuse with beside that. */
export const bodyRefusals = {
  ...refusals,
  409: refusal('The state does not allow this'),
  413: refusal('The body is too large'),
  415: refusal('The body is not JSON by its content type'),
  422: refusal('Understood, and refused'),
};

/** A document as the answer of a path. */
export function json<S extends z.ZodType>(description: string, schema: S) {
  return { description, content: { 'application/json': { schema } } };
}

/** A JSON document that must come as the body. */
export function jsonBody<S extends z.ZodType>(schema: S) {
  return { required: true, content: { 'application/json': { schema } } } as const;
}

/** Turns what the schemas found into a refusal; a path that cannot name anything is not found. */
export const refuseInvalid: Hook<unknown, ApiEnv, string, void> = (result) => {
  if (result.success) return;
  if (result.target === 'param') throw new Failure('not_found');
  const errors = errorsOf(result.error);
  const detail = errors.map(({ path, message }) => `${path || 'body'}: ${message}`).join('; ');
  throw new Failure('invalid_request', detail.slice(0, 500), { errors: errors.slice(0, 50) });
};

type Issue = z.core.$ZodIssue;

/** What is wrong with a document, by place. */
export function errorsOf(error: z.core.$ZodError): { path: string; message: string }[] {
  return error.issues.flatMap((issue) => placesOf(issue, []));
}

/** Where an issue lies and what it says. Of a choice only the form counts that the value has. */
function placesOf(issue: Issue, above: PropertyKey[]): { path: string; message: string }[] {
  const path = [...above, ...issue.path];
  const at = (places: PropertyKey[], message: string) => ({
    path: places.map(String).join('.'),
    message,
  });
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => at([...path, key], 'is not known here'));
  if (issue.code === 'invalid_union') {
    const isInside = (i: Issue) => i.path.length > 0 || i.code === 'unrecognized_keys';
    const form = issue.errors.find((issues) => issues.length > 0 && issues.every(isInside));
    if (form) return form.flatMap((inner) => placesOf(inner, path));
  }
  return [at(path, issue.message)];
}

/** Answers every refusal, path and method that the app does not serve. */
export function answerProblems(app: Api, log: Log): void {
  app.onError((error, c) => {
    return problemResponse(c, failureOf(error, log));
  });
  let allowed: ((path: string) => string[]) | undefined;
  app.notFound((c) => {
    allowed ??= methodsByPath(app);
    const methods = allowed(c.req.path);
    if (methods.length === 0) return problemResponse(c, new Failure('not_found'));
    c.header('allow', methods.join(', '));
    return problemResponse(c, new Failure('method_not_allowed'));
  });
}

/** The refusal that an error amounts to; what is a bug of ours is logged. */
export function failureOf(error: unknown, log: Log): Failure {
  const failure = asFailure(error);
  if (failure.code === 'internal') log.error({ err: toDatabaseError(error) }, 'an API call failed');
  return failure;
}

function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  // The only two that the framework throws on its own.
  if (error instanceof HTTPException && error.status === 400) return new Failure('malformed_json');
  if (error instanceof HTTPException && error.status === 415)
    return new Failure('unsupported_media_type', 'send application/json');
  return new Failure(isAway(toDatabaseError(error)) ? 'database_unavailable' : 'internal');
}

const RETRY_AFTER_S = '2';

function problemResponse(c: Context, failure: Failure): Response {
  const { status, code } = failure;
  if (status === 401) c.header('www-authenticate', 'Bearer realm="tallyhook"');
  if (code === 'forbidden')
    c.header('www-authenticate', 'Bearer realm="tallyhook", error="insufficient_scope"');
  if (status === 429 || status === 503) c.header('retry-after', RETRY_AFTER_S);
  // What is left of the body is not read, so the connection is of no more use.
  if (status === 413) c.header('connection', 'close');
  c.header('cache-control', 'no-store');
  c.header('content-type', 'application/problem+json');
  return c.body(jsonText(problemOf(failure)), status as ContentfulStatusCode);
}

/** Which methods the app serves under a path, by its own routes. */
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
