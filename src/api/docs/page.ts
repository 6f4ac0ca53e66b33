/**
 * The API's document as a page for readers, without scripts and without a key.
 *
 * `@scalar/api-reference` (1.72.1) would add a search. It was tried under the policy of this page:
 * it inserts four style sheets, three of them without a nonce, and styles of elements, so it needs
 * `style-src 'unsafe-inline'`. Its script has 4.4 MB (1.3 MB compressed), its package 50 MB, and
 * its page advertises other services. It needs no eval, and without its fonts no other origin.
 */
import { html } from 'hono/html';
import {
  alternativesOf,
  exampleOf,
  type Field,
  fieldsOf,
  notesOf,
  type Schema,
  typeOf,
} from './schema.ts';

type Html = ReturnType<typeof html>;

interface Operation {
  tags?: string[];
  summary?: string;
  description?: string;
  security?: Record<string, string[]>[];
  parameters?: { name: string; in: string; required?: boolean; schema?: Schema }[];
  requestBody?: { content: Record<string, { schema?: Schema }> };
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
 * @param url the address of this daemon as the reader sees it, for the examples
 */
export function docsPage(document: object, url: string): Html {
  const { info, paths, webhooks, components } = document as Document;
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Route => ({ method, path, operation })),
  );
  const tags = [...new Set(routes.map(tagOf))];
  const parts = [...tags, 'webhooks', 'schemas'];
  const { schemas } = components;
  const context = { url, schemas };
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API · ${info.title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/console/style.css">
</head>
<body>
<div id="app">
<header class="head"><a class="brand" href="/">${info.title}</a>
<nav aria-label="Parts of the API"><div class="group">
${parts.map((part) => html`<a href="#${part}">${part}</a> `)}</div></nav></header>
<main class="view docs">
<div class="view-head"><h1>API</h1><a href="/api/openapi.json">openapi.json</a></div>
<p class="lead">${info.description}</p>
<p>A request has the header <code>Authorization: Bearer thk_…</code> with a key of the scope that
its operation names; <code>npx tallyhook keys create</code> makes one. Lists answer
<code>{"data": […], "next_cursor": …}</code>; the next page is <code>?cursor=</code> with it. Writes
to the service itself go to <code>/v1/…</code>, as the service describes them.</p>
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
  const scope = operation.security?.flatMap((one) => Object.values(one).flat())[0];
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
${operation.description && html`<p>${operation.description}</p>`}
<p class="muted">${scope ? html`A key with the scope <code>${scope}</code>.` : 'Needs no key.'}</p>
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

function webhookPart(type: string, { description, requestBody }: Operation): Html {
  return html`<details id="webhook-${type}">
<summary><code>${type}</code> ${description}</summary>
${shapePart(requestBody?.content['application/json']?.schema ?? {})}
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
  if (operation.security) lines.push("-H 'Authorization: Bearer thk_…'");
  const schema = operation.requestBody?.content['application/json']?.schema;
  if (schema) {
    lines.push(
      "-H 'Content-Type: application/json'",
      `-d '${JSON.stringify(exampleOf(schema, schemas))}'`,
    );
  }
  return lines.join(' \\\n  ');
}
