/**
 * The control surface described: an OpenAPI document and a small page, both made from its routes.
 */
import { z } from 'zod';
import { isoText } from '../kernel/clock.ts';
import { escapeHtml } from './call.ts';
import type { Control } from './control.ts';
import { CONTROL_ROUTES, type ControlRoute } from './control-routes.ts';
import { ROUTES } from './routes.ts';

/** What the surface says of itself; neither changes anything. */
const DESCRIPTIONS = {
  '/_sandbox': { summary: 'A page for people', type: 'text/html' },
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

/** OpenAPI 3.1. Whole numbers may be written as decimal text, and are answered so. */
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

function operationOf({ path, summary, body, query = {} }: ControlRoute) {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const questions = Object.entries(query).map(([name, description]) => ({
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
    parameters: [...parameters, ...questions],
    ...(body
      ? { requestBody: { content: { 'application/json': { schema: schemaOf(body) } } } }
      : {}),
    responses: {
      200: { description: 'Done', content: { 'application/json': { schema: { type: 'object' } } } },
      default: problem,
    },
  };
}

/** A bigint has no JSON Schema of its own: it is an integer of any size. */
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

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;
padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ccc;padding:.3rem;
text-align:left;vertical-align:top}code{font-size:.9em;overflow-wrap:anywhere}`;

/** What stands in the world, and what can be done to it. */
export function controlPage(state: ReturnType<Control['state']>): string {
  const members = new Map(state.members.map((member) => [member.addr, member.nickname]));
  const operators = new Map(
    state.operators.map(({ addr, operation_no }) => [addr, `operator ${operation_no}`]),
  );
  const wallets = state.wallets.map(({ addr, balance, status }) => [
    members.get(addr) ?? operators.get(addr) ?? '',
    addr,
    balance,
    status,
  ]);
  const tokens = state.tokens.map((token) => [
    `${token.contract_id}/${token.token_id}`,
    token.owner,
    token.status,
    token.locked ? 'locked' : '',
  ]);
  const control = CONTROL_ROUTES.map(({ method, path, summary }) => [
    method,
    `/_sandbox${path}`,
    summary,
  ]);
  const service = ROUTES.map(({ method, path, name }) => [method, path, name]);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Sandbox</title><style>${STYLE}</style></head>
<body>
<h1>Sandbox</h1>
<p>Seed ${state.seed}, ${isoText(state.now)}, app ${state.app.app_no}
(<code>${escapeHtml(state.app.client_id)}</code>).
The control surface is described by <a href="/_sandbox/openapi.json">openapi.json</a>.</p>
<h2>Wallets</h2>${tableOf(['who', 'token_addr', 'amt_token', 'status'], wallets)}
<h2>Tokens</h2>${tableOf(['token', 'owner', 'status', 'lock'], tokens)}
<h2>Control</h2>${tableOf(['method', 'path', 'does'], control)}
<h2>Endpoints</h2>${tableOf(['method', 'path', 'name for faults'], service)}
</body>
</html>
`;
}

function tableOf(head: string[], rows: unknown[][]): string {
  const line = (cells: unknown[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(String(cell))}</${tag}>`).join('')}</tr>`;
  return `<table>${line(head, 'th')}${rows.map((row) => line(row, 'td')).join('\n')}</table>`;
}
