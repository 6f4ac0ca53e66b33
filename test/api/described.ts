/** Checks of a response against the OpenAPI definition of its route. */

import type { OpenAPIHono, RouteConfig } from '@hono/zod-openapi';
import { expect } from 'vitest';
import type { z } from 'zod';
import type { Api } from '../../src/api/api.ts';
import { parseJson } from '../../src/kernel/json.ts';

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  body: Body;
}

/** A parsed document. */
export interface Body {
  [member: string]: unknown;
  id: string;
  code: string;
  data: Body[];
  next_cursor: string | null;
  errors: { path: string; message: string }[];
}

/** The document itself and its page. */
export const UNDESCRIBED = ['/api/openapi.json', '/docs'];

/** Checks a response against the definition of its route. */
export async function checkResponse(
  api: Api,
  method: string,
  path: string,
  response: Response,
): Promise<Answer> {
  const { status, headers } = response;
  const text = await response.text();
  const type = (headers.get('content-type') ?? '').split(';')[0] as string;
  const where = `${method} ${path} answered ${status} ${type}: ${text.slice(0, 300)}`;
  const route = routeOf(api, method, path);
  const isJson = /[/+]json$/.test(type) && text !== '';
  const body = (isJson ? parseJson(text) : text) as Body;
  if (!route) {
    const isDocument = UNDESCRIBED.includes(path.split('?')[0] ?? '') && status === 200;
    expect(isDocument || status === 404 || status === 405, where).toBe(true);
  } else if (method !== 'HEAD') {
    const described = route.responses[status] as Described | undefined;
    expect(described, `${where}, which the document does not describe`).toBeDefined();
    const content = described?.content;
    if (!content) {
      expect(text, where).toBe('');
      return { status, headers, text, body };
    }
    const schema = content[type]?.schema;
    expect(schema, `${where}, a content type that the document does not describe`).toBeDefined();
    const parsed = schema?.safeParse(body);
    expect(parsed?.error?.issues ?? [], where).toEqual([]);
    // The schema drops fields that the document does not describe.
    expect(parsed?.data, where).toEqual(body);
  }
  if (status >= 400) expect(type, where).toBe('application/problem+json');
  return { status, headers, text, body };
}

interface Described {
  content?: Record<string, { schema: z.ZodType } | undefined>;
}

function routeOf(api: OpenAPIHono<never> | Api, method: string, path: string) {
  const bare = path.split('?')[0] as string;
  return api.openAPIRegistry.definitions
    .flatMap((definition) => (definition.type === 'route' ? [definition.route as RouteConfig] : []))
    .find(
      (route) =>
        route.method === (method === 'HEAD' ? 'get' : method.toLowerCase()) &&
        new RegExp(`^${route.path.replace(/\{[^}]+\}/g, '[^/]+')}$`).test(bare),
    );
}
