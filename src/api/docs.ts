/**
 * The API's document as a page for readers, without scripts and without a key.
 *
 * `@scalar/api-reference` (1.72.1) would add a search. It was tried under the policy of this page:
 * it inserts four style sheets, three of them without a nonce, and styles of elements, so it needs
 * `style-src 'unsafe-inline'`. Its script has 4.4 MB (1.3 MB compressed), its package 50 MB, and
 * its page advertises other services. It needs no eval, and without its fonts no other origin.
 */
import { html } from 'hono/html';

type Html = ReturnType<typeof html>;

interface Operation {
  tags?: string[];
  summary?: string;
  description?: string;
  security?: Record<string, string[]>[];
  parameters?: { name: string; in: string; required?: boolean; schema?: Schema }[];
  requestBody?: { content: Record<string, { schema?: Schema; example?: unknown }> };
  responses: Record<string, Answer>;
}

interface Answer {
  description: string;
  content?: Record<string, { schema?: Schema }>;
}

/** The part of an OpenAPI document that is shown. */
interface Document {
  info: { title: string; description?: string };
  paths: Record<string, Record<string, Operation>>;
  /** By the type of their event. */
  webhooks: Record<string, { post: Operation }>;
  components: { schemas: Record<string, Schema> };
}

/** What examples need. */
interface Context {
  url: string;
  schemas: Record<string, Schema>;
}

/** A route with its method and path. */
interface Route {
  method: string;
  path: string;
  operation: Operation;
}

/**
 * @param document of OpenAPI 3.1, as the routes make it
 * @param at the address of this daemon as the reader sees it
 */
export function docsPage(document: object, at: { origin: string; basePath: string }): Html {
  const { origin, basePath } = at;
  const { info, paths, webhooks, components } = document as Document;
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Route => ({ method, path, operation })),
  );
  const tags = [...new Set(routes.map(tagOf))];
  const parts = ['gateway', ...tags, 'webhooks', 'schemas'];
  const { schemas } = components;
  const context = { url: origin + basePath, schemas };
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API · ${info.title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${basePath}/console/style.css">
</head>
<body>
<div id="app">
<header class="head"><a class="brand" href="${basePath}/">${info.title}</a>
<nav aria-label="Parts of the API"><div class="group">
${parts.map((part) => html`<a href="#${part}">${part}</a> `)}</div></nav></header>
<main class="view docs">
<div class="view-head"><h1>API</h1><a href="${basePath}/api/openapi.json">openapi.json</a></div>
<p class="lead">${info.description}</p>
<p>A request has the header <code>Authorization: Bearer thk_…</code> with a key of the scope that
its operation names; <code>npx tallyhook keys create</code> makes one. Lists answer
<code>{"data": […], "next_cursor": …}</code>; the next page is <code>?cursor=</code> with it.</p>
${gatewayPart()}
${tags.map((tag) =>
  tagPart(
    tag,
    routes.filter((route) => tagOf(route) === tag),
    context,
  ),
)}
<section class="card" id="webhooks"><h2>webhooks</h2>
<p>What endpoints receive, and the feed at <code>/api/events</code> shows, by the type of the
event.</p>
${Object.entries(webhooks).map(([type, { post }]) => webhookPart(type, post))}
</section>
<section class="card" id="schemas"><h2>schemas</h2>
${Object.entries(schemas).map(([name, schema]) => schemaPart(name, schema))}
</section>
</main>
</div>
</body>
</html>`;
}

/** What an app may send to the service's own paths beside what the service describes, and gets. */
const GATEWAY: [header: string, meaning: string][] = [
  ['Authorization', 'Bearer thk_…; or the token of your own, with the key in Tallyhook-Key'],
  [
    'Idempotency-Key',
    'Up to 255 printable characters, as they are or as a quoted string with the escapes \\" and ' +
      '\\\\, which is the same key. The same request with the same key gets the first answer',
  ],
  ['Tallyhook-Reference', 'Your name of the write, up to 255 printable characters'],
  ['Prefer', 'respond-async: a write that cannot be sent now is queued and answered with 202'],
  ['Tallyhook-Expires', 'Until when it may wait, RFC 3339'],
  ['Tallyhook-Operation', 'In an answer: the id of the recorded write'],
  ['Tallyhook-Outcome', 'In an answer: its state'],
  ['Idempotency-Replayed', 'In an answer: true for that of an earlier request'],
];

function gatewayPart(): Html {
  const rows = GATEWAY.map(([name, meaning]) => ({
    name,
    type: ['text'],
    isRequired: false,
    notes: [meaning],
  }));
  return html`<section class="card" id="gateway"><h2>gateway</h2>
<p>Writes to the service itself, and reads of it, go to <code>/v1/…</code> with the paths, bodies
and answers that the service describes. The gateway records each write before it sends it. Bodies
are read as they are sent: one with a <code>Content-Encoding</code> is refused with 415.</p>
${table(rows)}
</section>`;
}

function tagOf({ operation }: Route): string {
  return operation.tags?.[0] ?? 'other';
}

function tagPart(tag: string, routes: readonly Route[], context: Context): Html {
  return html`<section class="card" id="${tag}"><h2>${tag}</h2>
${routes.map((route) => routePart(route, context))}
</section>
`;
}

function routePart(route: Route, context: Context): Html {
  const { method, path, operation } = route;
  const parameters = (operation.parameters ?? []).map(({ name, required, schema = {} }) => ({
    name,
    isRequired: required ?? false,
    type: typeOf(schema),
    notes: notesOf(schema),
  }));
  const answers = Object.entries(operation.responses);
  const isProblem = ([, { content }]: [string, Answer]) =>
    Object.keys(content ?? {}).includes('application/problem+json');
  return html`<details id="${method}-${path}">
<summary><code>${method.toUpperCase()} ${path}</code> ${operation.summary}</summary>
<p>${withCode(operation.description ?? '')}</p>
<pre tabindex="0">${curlOf(route, context)}</pre>
${parameters.length > 0 && html`<h3>Parameters</h3>${table(parameters)}`}
${Object.entries(operation.requestBody?.content ?? {}).map(
  ([type, { schema = {} }]) => html`<h3>Body: ${type}</h3>${shapePart(schema)}`,
)}
${answers.filter((one) => !isProblem(one)).map(([status, answer]) => answerPart(status, answer))}
<p class="muted">Problems: ${answers.filter(isProblem).map(([status]) => `${status} `)}</p>
</details>
`;
}

/** A text of the document, in which code stands between backticks. */
function withCode(text: string): (Html | string)[] {
  return text.split('`').map((part, n) => (n % 2 === 0 ? part : html`<code>${part}</code>`));
}

function answerPart(status: string, { description, content = {} }: Answer): Html {
  const shapes = Object.entries(content).map(
    ([type, { schema = {} }]) => html`<p class="muted">${type}</p>${shapePart(schema)}`,
  );
  return html`<h3>${status}: ${description}</h3>${shapes}`;
}

function schemaPart(name: string, schema: Schema): Html {
  return html`<h3 id="schema-${name}"><code>${name}</code></h3>
${schema.description && html`<p>${schema.description}</p>`}
${shapePart(schema)}
`;
}

function webhookPart(type: string, { summary, description, requestBody }: Operation): Html {
  const { schema = {}, example } = requestBody?.content['application/json'] ?? {};
  return html`<details id="webhook-${type}">
<summary><code>${type}</code> ${summary}</summary>
<p>${description}</p>
${shapePart(schema)}
<pre tabindex="0"><code>${JSON.stringify(example, null, 2)}</code></pre>
</details>
`;
}

/** The type of a value, and its fields. */
function shapePart(schema: Schema): Html {
  const inner = schema.type === 'array' ? (schema.items ?? {}) : schema;
  const alternatives = alternativesOf(inner);
  const tables = alternatives.map((one) => fieldsOf(one)).filter((fields) => fields.length > 0);
  const several = tables.length > 1 ? html`<p>One of:</p>` : '';
  if (tables.length > 0 && !schema.allOf) return html`${several}${tables.map(table)}`;
  return html`<p>${typeText(typeOf(schema))}</p>${tables.map(table)}`;
}

function table(fields: readonly Field[]): Html {
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Fields"><table>
<thead><tr><th>name</th><th>type</th><th>notes</th></tr></thead>
<tbody>${fields.map(fieldRow)}</tbody>
</table></div>`;
}

function fieldRow({ name, type, isRequired, notes }: Field): Html {
  const remarks = [...(isRequired ? ['required'] : []), ...notes].join('; ');
  return html`<tr><td><code>${name}</code></td><td>${typeText(type)}</td><td>${remarks}</td></tr>
`;
}

function typeText(type: Field['type']): (Html | string)[] {
  return type.map((part) =>
    typeof part === 'string' ? part : html`<a href="#schema-${part.schema}">${part.schema}</a>`,
  );
}

function curlOf({ method, path, operation }: Route, { url, schemas }: Context): string {
  const verb = method === 'get' ? '' : `-X ${method.toUpperCase()} `;
  const lines = [`curl ${verb}${url}${path.replace(/\{(\w+)\}/g, '$1')}`];
  if (operation.security?.length) lines.push("-H 'Authorization: Bearer thk_…'");
  const schema = operation.requestBody?.content['application/json']?.schema;
  if (schema) {
    lines.push(
      "-H 'Content-Type: application/json'",
      `-d '${JSON.stringify(exampleOf(schema, schemas))}'`,
    );
  }
  return lines.join(' \\\n  ');
}

/** The part of JSON Schema that the document uses. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: (string | number | boolean | null)[];
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  default?: unknown;
  example?: unknown;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

interface Field {
  /** With the names around it: `evidence.at`, `lines[].amount`. */
  name: string;
  /** Words, and names of schemas of the document. */
  type: (string | { schema: string })[];
  isRequired: boolean;
  /** Bounds, the default, and what the description says. */
  notes: string[];
}

/** The fields of an object, those of inline objects after them; none of anything else. */
function fieldsOf(schema: Schema, prefix = ''): Field[] {
  const parts = schema.allOf ?? [];
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    const isRequired = schema.required?.includes(name) ?? false;
    const row = { name: path, type: typeOf(field), isRequired, notes: notesOf(field) };
    const inner = field.type === 'array' ? field.items : field;
    const end = field.type === 'array' ? '[].' : '.';
    return [row, ...(inner && !inner.$ref ? fieldsOf(inner, path + end) : [])];
  });
  return [...parts.flatMap((part) => fieldsOf(part, prefix)), ...own];
}

/** The objects of which a value is one, or an item of the list; a single one as a rule. */
function alternativesOf(schema: Schema): Schema[] {
  const choices = (schema.anyOf ?? schema.oneOf ?? []).filter(isObject);
  return choices.length > 0 ? choices.flatMap(alternativesOf) : [schema];
}

function isObject({ type, properties, anyOf, oneOf, allOf, $ref }: Schema): boolean {
  return type === 'object' || Boolean(properties ?? anyOf ?? oneOf ?? allOf ?? $ref);
}

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1);
}

/** The type in words. */
function typeOf(schema: Schema): Field['type'] {
  const { $ref, allOf, items, additionalProperties, format, pattern } = schema;
  if ($ref) return [{ schema: nameOf($ref) }];
  const choices = schema.anyOf ?? schema.oneOf ?? allOf?.filter((part) => part.$ref);
  if (choices?.length)
    return choices.flatMap((one, n) =>
      (n === 0 ? [] : [joinOf(allOf)]).concat(typeOf(one) as string[]),
    );
  if (schema.enum) return [schema.enum.map(String).join(' | ')];
  const types = [schema.type ?? 'any value'].flat();
  if (types.includes('array') && items) return ['list of ', ...typeOf(items)];
  if (typeof additionalProperties === 'object')
    return ['object of ', ...typeOf(additionalProperties)];
  const names = types.map((type) => {
    if (type !== 'string') return type;
    if (format === 'date-time') return 'instant';
    return pattern?.includes('[1-9]') ? 'number as text' : 'text';
  });
  return [names.join(' or ')];
}

function joinOf(allOf: Schema[] | undefined): string {
  return allOf ? ' with ' : ' or ';
}

function notesOf(schema: Schema): string[] {
  const { minimum, maximum, maxLength, maxItems, description, example } = schema;
  const notes: string[] = [];
  if (description) notes.push(description);
  if (minimum !== undefined && maximum !== undefined) notes.push(`${minimum} to ${maximum}`);
  else if (minimum !== undefined) notes.push(`at least ${minimum}`);
  else if (maximum !== undefined) notes.push(`at most ${maximum}`);
  if (maxLength !== undefined && !schema.pattern) notes.push(`at most ${maxLength} characters`);
  if (maxItems !== undefined) notes.push(`at most ${maxItems} items`);
  if (schema.default !== undefined) notes.push(`default ${textOf(schema.default)}`);
  if (example !== undefined) notes.push(`such as ${textOf(example)}`);
  return notes;
}

/** A body with the required fields, as an example; with the first one if none is required. */
function exampleOf(given: Schema, schemas: Readonly<Record<string, Schema>>): unknown {
  const [schema = given] = alternativesOf(given.$ref ? (schemas[nameOf(given.$ref)] ?? {}) : given);
  if (schema.type === 'array') return [exampleOf(schema.items ?? {}, schemas)];
  if (schema.type !== 'object') return exampleValueOf(schema);
  const { properties = {}, required = [] } = schema;
  const names = required.length > 0 ? required : Object.keys(properties).slice(0, 1);
  const examples = names.map((name) => [name, exampleOf(properties[name] ?? {}, schemas)]);
  return Object.fromEntries(examples);
}

function exampleValueOf(schema: Schema): unknown {
  const { example, type, format, pattern, enum: values, minimum, minLength } = schema;
  if (example !== undefined) return example;
  if (values) return values[0];
  if (format === 'date-time') return '2026-01-31T09:00:00Z';
  const [first] = [type].flat();
  if (first === 'integer' || first === 'number') return minimum ?? 1;
  if (first === 'boolean') return true;
  // Addresses and hashes.
  if (minLength === 42 || minLength === 66) return '0x…';
  return pattern?.includes('[1-9]') ? '1' : '…';
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
