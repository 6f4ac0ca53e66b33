/** The OpenAPI document of the control surface, made from its routes. */
import { z } from 'zod';
import { CONTROL_ROUTES, type ControlRoute } from './routes.ts';

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
export function controlDocument() {
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
