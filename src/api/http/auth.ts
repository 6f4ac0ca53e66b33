/**
 * Who may call what. The scope that a route names in the OpenAPI document is the one that is asked
 * for, so the document cannot say anything else than what happens. A key is asked for before
 * anything of the request is read.
 */
import type { RouteConfig } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler, TypedResponse } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { JSONParsed } from 'hono/utils/types';
import { must } from '../../kernel/assert.ts';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { type Keys, requireScope, SCOPES, type Scope } from '../../keys/keys.ts';
import type { ApiDeps, ApiEnv } from '../deps.ts';
import { boundedBody } from './body.ts';

/** The name of our one security scheme in the document. */
export const KEY_SCHEME = 'key';

/** For a route: which scope its key needs. */
export function deps(scope: Scope) {
  return { security: [{ [KEY_SCHEME]: [scope] }] };
}

/** The route behind its key, its body bounded. */
export function guarded<R extends RouteConfig>(deps: ApiDeps, route: R): R {
  const named = route.security?.[0]?.[KEY_SCHEME]?.[0];
  const scope = must(
    SCOPES.find((s) => s === named),
    `scope of ${route.path}`,
  );
  const { body } = route.request ?? {};
  const reading = body ? [boundedBody(deps.bodyBytesMax)] : [];
  return { ...route, middleware: [behindKey(deps, scope), ...reading] };
}

/** Lets only callers with the scope pass, before anything else of the request is read. */
export function behindKey(
  { keys }: { keys: Pick<Keys, 'authenticate'> },
  scope: Scope,
): MiddlewareHandler<ApiEnv> {
  return async function access(c, next) {
    const secret = /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '')?.[1];
    const caller = secret === undefined ? undefined : await keys.authenticate(secret);
    if (!caller) throw new Failure('unauthorized');
    requireScope(caller, scope);
    c.set('caller', caller);
    await next();
  };
}

/** Answers a document in JSON that loses no digit. */
export function reply<T, S extends ContentfulStatusCode>(c: Context, body: T, status: S) {
  return replyText<T, S>(c, jsonText(body), status);
}

/** Answers a document that is JSON text already; the type says what is in it. */
export function replyText<T, S extends ContentfulStatusCode>(c: Context, text: string, status: S) {
  c.header('content-type', 'application/json');
  c.header('cache-control', 'no-store');
  return c.body(text, status) as Response as Response & TypedResponse<JSONParsed<T>, S, 'json'>;
}
