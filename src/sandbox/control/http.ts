/**
 * The control surface over HTTP, and its OpenAPI document: JSON in and out, whole numbers as
 * decimal text. A body must have the content type of JSON, so that a page of another origin cannot
 * send one without a preflight.
 */
import { z } from 'zod';
import { assert, Failure, problemOf } from '../../kernel/errors.ts';
import { tryParseJson } from '../../kernel/json.ts';
import type { Answer } from '../endpoints/call.ts';
import type { Control } from './control.ts';
import { controlPage } from './page.ts';
import { CONTROL_ROUTES, type ControlRoute } from './routes.ts';

export interface ControlSurface {
  /** Answers a request below `/_sandbox`; the body is undefined when it was too large. */
  answer(
    method: string,
    path: string,
    query: Record<string, string>,
    contentType: string | undefined,
    body: string | undefined,
  ): Answer;
  page(): Answer;
}

export function makeControlSurface(control: Control): ControlSurface {
  const routes = CONTROL_ROUTES.map((route) => ({ route, pattern: patternOf(route.path) }));

  function run(method: string, path: string, query: Record<string, string>, body: unknown) {
    if (path === '/openapi.json' && method === 'GET') return controlDocument();
    let known = false;
    for (const { route, pattern } of routes) {
      const match = pattern.exec(path);
      if (!match) continue;
      known = true;
      if (route.method === method) return route.run(control, { ...query, ...match.groups }, body);
    }
    throw new Failure(known ? 'method_not_allowed' : 'not_found');
  }

  return {
    answer(method, path, query, contentType, body) {
      try {
        const below = path.slice('/_sandbox'.length);
        const value = method === 'POST' ? bodyOf(contentType, body) : undefined;
        return plainAnswer(200, run(method, below, query, value) ?? {});
      } catch (error) {
        const problem = problemOf(error);
        return plainAnswer(problem.status, problem, 'application/problem+json');
      }
    },
    page: () => controlPage(control.state()),
  };
}

/** @throws Failure `body_too_large`, `unsupported_media_type`, `malformed_json` */
function bodyOf(contentType: string | undefined, body: string | undefined): unknown {
  if (body === undefined) throw new Failure('body_too_large');
  if (!contentType?.startsWith('application/json')) throw new Failure('unsupported_media_type');
  const value = body === '' ? {} : tryParseJson(body);
  if (value === undefined) throw new Failure('malformed_json');
  return value;
}

/** `/tokens/{contract_id}/{token_id}` as a pattern with named groups. */
function patternOf(path: ControlRoute['path']): RegExp {
  assert(!/[.*+?^$()|[\]\\]/.test(path), 'a control path has no pattern characters');
  return new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
}

function plainAnswer(status: number, value: unknown, type = 'application/json'): Answer {
  const body = JSON.stringify(value, (_key, item) =>
    typeof item === 'bigint' ? item.toString() : item,
  );
  return { status, headers: { 'content-type': type, 'cache-control': 'no-store' }, body };
}

/** The two read-only paths that describe the surface. */
const DESCRIPTIONS = {
  '/_sandbox': { summary: 'The console of the sandbox', type: 'text/html' },
  '/_sandbox/openapi.json': { summary: 'This document', type: 'application/json' },
};

const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'code'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string' },
    detail: { type: 'string' },
  },
};

/** OpenAPI 3.1. Whole numbers may be sent as decimal text and are returned as decimal text. */
function controlDocument() {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of CONTROL_ROUTES) {
    const path = `/_sandbox${route.path}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  for (const [path, answer] of Object.entries(DESCRIPTIONS)) {
    const content = { [answer.type]: { schema: {} } };
    const responses = { 200: { description: answer.summary, content } };
    paths[path] = { get: { summary: answer.summary, responses } };
  }
  const info = { title: 'Control surface of the sandbox', version: '1' };
  return { openapi: '3.1.0', info, paths };
}

function operationOf({ path, summary, body, example, query = {} }: ControlRoute) {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const queries = Object.entries(query).map(([name, description]) => ({
    name,
    in: 'query',
    description,
    schema: { type: 'string', pattern: '^(0|[1-9][0-9]*)$' },
  }));
  const problem = {
    description: 'A problem document with a stable code',
    content: { 'application/problem+json': { schema: PROBLEM } },
  };
  return {
    summary,
    parameters: [...parameters, ...queries],
    ...(body
      ? { requestBody: { content: { 'application/json': { schema: schemaOf(body), example } } } }
      : {}),
    responses: {
      200: {
        description: 'The result',
        content: { 'application/json': { schema: { type: 'object' } } },
      },
      default: problem,
    },
  };
}

/** JSON Schema for a body. JSON Schema has no bigint; it becomes an integer of any size. */
function schemaOf(body: z.ZodType) {
  return z.toJSONSchema(body, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'bigint') jsonSchema.type = 'integer';
      if ('default' in jsonSchema && typeof jsonSchema.default === 'bigint') {
        jsonSchema.default = String(jsonSchema.default);
      }
    },
  });
}
