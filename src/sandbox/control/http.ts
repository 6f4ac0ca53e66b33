/**
 * The control surface over HTTP: JSON in and out, whole numbers as decimal text. A body must have
 * the content type of JSON, so that a page of another origin cannot send one without a preflight.
 */
import { assert, Failure, problemOf } from '../../kernel/errors.ts';
import { tryParseJson } from '../../kernel/json.ts';
import { type Answer, htmlAnswer } from '../endpoints/call.ts';
import type { Control } from './control.ts';
import { controlDocument } from './document.ts';
import { controlPage } from './page.ts';
import { PAGE_SCRIPT_SOURCE } from './page-script.ts';
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
    page: () => htmlAnswer(200, controlPage(control.state()), PAGE_SCRIPT_SOURCE),
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
