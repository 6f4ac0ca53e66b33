/** The OpenAPI document, scopes of keys, and invalid requests. */
import { describe, expect, it } from 'vitest';
import { describeApi } from '../../src/api/api.ts';
import { ACTION_WORDS } from '../../src/resources/admin/audit-entry.ts';
import { UNDESCRIBED } from './described.ts';
import { openApi, useApi } from './rig.ts';

const api = useApi();

interface Described {
  security?: { key: string[] }[];
  responses: Record<string, unknown>;
}

/** The gateway's paths, which the API describes and does not serve. */
const isOfGateway = (path: string) => path.startsWith('/v1/');

/** Those that the API serves. */
async function routes(): Promise<{ method: string; path: string; route: Described }[]> {
  const { body } = await api.call('GET', '/api/openapi.json');
  const paths = body.paths as Record<string, Record<string, Described>>;
  const own = Object.entries(paths).filter(([path]) => !isOfGateway(path));
  return own.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, route]) => ({
      method: method.toUpperCase(),
      path: path.replace('{addr}', 'x'.repeat(42)).replace(/\{\w+\}/g, '1'),
      route,
    })),
  );
}

const OPEN = ['/healthz', '/readyz', '/metrics', '/.well-known/webhook-keys'];

describe('The OpenAPI document', () => {
  it('The OpenAPI document has version 3.1 and needs no key', async () => {
    const { status, body } = await api.call('GET', '/api/openapi.json', { key: undefined });
    expect({ status, openapi: body.openapi }).toEqual({ status: 200, openapi: '3.1.0' });
  });

  it('The OpenAPI document describes exactly the routes that are served, and the gateway', async () => {
    const { body } = await api.call('GET', '/api/openapi.json');
    const paths = Object.entries(body.paths as Record<string, object>);
    const described = paths
      .filter(([path]) => !isOfGateway(path))
      .flatMap(([path, methods]) =>
        Object.keys(methods).map((m) => `${m.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
      );
    expect(paths.filter(([path]) => isOfGateway(path)).length).toBeGreaterThan(12);
    const served = api.api.routes
      .filter(({ method, path }) => method !== 'ALL' && !UNDESCRIBED.includes(path))
      .map(({ method, path }) => `${method} ${path}`);
    expect(described.toSorted()).toEqual([...new Set(served)].toSorted());
  });
});

describe('An operation of the document', () => {
  /** What workers of a consumer do all the time. */
  const UNAUDITED = ['pull', 'ack', 'release'].map((act) => `POST /api/consumers/{id}/${act}`);

  interface Operation {
    operationId: string;
    summary: string;
    description: string;
    tags: string[];
    security: { key: string[] }[];
    responses: Record<string, unknown>;
  }
  const operations = async () => {
    const { body } = await api.call('GET', '/api/openapi.json');
    const paths = body.paths as Record<string, Record<string, Operation>>;
    const webhooks = body.webhooks as Record<string, { post: Operation }>;
    const tags = body.tags as { name: string; description: string }[];
    const routes = Object.values(paths).flatMap((methods) => Object.values(methods));
    return { routes, all: [...routes, ...Object.values(webhooks).map(({ post }) => post)], tags };
  };

  it('An operation has an id of its own, a sentence, and the scope of its key or none', async () => {
    const { routes, all, tags } = await operations();
    const ids = all.map(({ operationId }) => operationId);
    expect([...new Set(ids)]).toEqual(ids);
    expect(ids.filter((id) => !/^[a-z_-]+$/.test(id))).toEqual([]);
    for (const { operationId, summary, description, responses } of all) {
      expect(summary, operationId).toMatch(/^\S.{5,}$/);
      expect(description, operationId).toMatch(/\.$/);
      expect(Object.keys(responses).join(), operationId).toMatch(/2\w\w.*(4\d\d|default)/);
    }
    for (const { security, description } of routes) {
      const scopes = security.map(({ key }) => `\`${key[0]}\``).join(' or ');
      expect(description).toContain(scopes ? `a key with the scope ${scopes}.` : 'Needs no key.');
    }
    const open = routes.filter(({ security, tags }) => !security[0] && !tags.includes('gateway'));
    expect(open).toHaveLength(OPEN.length);
    const used = new Set(all.flatMap(({ tags }) => tags));
    expect(tags.map(({ name }) => name).toSorted()).toEqual([...used].toSorted());
    for (const { description } of tags) expect(description).toMatch(/^[A-Z].{10,}/);
  });

  it('Each change that the audit trail has is in words there', async () => {
    const { body } = await api.call('GET', '/api/openapi.json');
    const paths = body.paths as Record<string, Record<string, Operation>>;
    const changes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((method) => method !== 'get' && path.startsWith('/api/'))
        .map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(Object.keys(ACTION_WORDS).filter((action) => !changes.includes(action))).toEqual([]);
    const unsaid = changes.filter((action) => !(action in ACTION_WORDS));
    expect(unsaid, 'without words in src/resources/admin/audit-entry.ts').toEqual(UNAUDITED);
  });

  it('The document without a daemon is the served one', async () => {
    const { body } = await api.call('GET', '/api/openapi.json');
    expect(body).toEqual(JSON.parse(JSON.stringify(describeApi())));
  });

  it('The document names its licence, its address, and where the gateway is described', async () => {
    const { body } = await api.call('GET', '/api/openapi.json');
    const { text } = await api.call('GET', '/docs', { key: undefined });
    expect(body).toMatchObject({
      info: { license: { name: 'MIT' }, contact: { url: '/docs' } },
      servers: [{ url: '/' }],
      externalDocs: { url: '/docs#gateway' },
    });
    expect(text).toContain('id="gateway"');
  });
});

describe('A key', () => {
  it('Every path of /api requires a key before the request is validated', async () => {
    for (const { method, path } of await routes()) {
      if (OPEN.includes(path)) continue;
      const { status, headers, body } = await api.call(method, `${path}?limit=`, {
        key: undefined,
        ...(method === 'GET' ? {} : { raw: '{' }),
      });
      expect({ path, status, code: body.code }).toEqual({
        path,
        status: 401,
        code: 'unauthorized',
      });
      expect(headers.get('www-authenticate')).toMatch(/^Bearer /);
    }
  });

  it.each([['gateway'], ['read'], ['manage'], ['decide']] as const)(
    'A key with the scope %s can call exactly the routes of that scope',
    async (scope) => {
      const key = await api.keyFor(scope);
      for (const { method, path, route } of await routes()) {
        const taken = (route.security ?? []).flatMap(({ key = [] }) => key);
        if (taken.length === 0 || taken.includes(scope)) continue;
        const { status, headers, body } = await api.call(method, path, { key });
        expect({ path, status, code: body.code }).toEqual({ path, status: 403, code: 'forbidden' });
        expect(headers.get('www-authenticate')).toContain('insufficient_scope');
      }
      const { status } = await api.call('GET', '/api/status', { key });
      expect(status).toBe(scope === 'read' ? 200 : 403);
    },
  );

  it.each(['thk_short', `thk_${'x'.repeat(43)}`, 'whsec_x', ''])(
    'An unknown key (%s) is answered with 401',
    async (key) => {
      const { status } = await api.call('GET', '/api/status', { key });
      expect(status).toBe(401);
    },
  );
});

describe('An invalid request', () => {
  it.each([
    ['GET', '/api', 404, 'not_found'],
    ['GET', '/api/nothing', 404, 'not_found'],
    ['GET', '/api/freeze', 405, 'method_not_allowed'],
    ['GET', '/api/periods/open', 404, 'not_found'],
    ['GET', '/api/operations/', 404, 'not_found'],
    ['PUT', '/api/operations', 405, 'method_not_allowed'],
    ['DELETE', '/api/keys', 405, 'method_not_allowed'],
    ['OPTIONS', '/api/keys', 405, 'method_not_allowed'],
    ['POST', '/healthz', 405, 'method_not_allowed'],
  ])('%s %s answers %i %s', async (method, path, status, code) => {
    const answer = await api.call(method, path);
    expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
  });

  it('An unknown method is answered with the methods of the path', async () => {
    const { headers } = await api.call('PUT', '/api/endpoints/1');
    expect(headers.get('allow')).toBe('DELETE, GET, HEAD, PATCH');
  });

  it.each([
    ['limit=', 'limit'],
    ['limit=0', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=501', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['colour=red', 'colour'],
    ['state=lost', 'state'],
    ['addr=0x1', 'addr'],
    ['token_id=-1', 'token_id'],
    ['token_id=1e3', 'token_id'],
    ['since=yesterday', 'since'],
    ['since=0000-01-01T00:00:00Z', 'since'],
    ['reference=%00', 'reference'],
  ])('The query %s is refused with the name of the parameter %s', async (query, path) => {
    const { status, body } = await api.call('GET', `/api/operations?${query}`);
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_request' });
    expect(body.errors.map((error) => error.path)).toEqual([path]);
  });

  const json = { 'content-type': 'application/json' };
  it.each([
    ['text that is not JSON', { raw: '{"kind":', headers: json }, 400, 'malformed_json'],
    ['nothing', { raw: '', headers: json }, 400, 'malformed_json'],
    [
      'a form',
      { raw: 'a=1', headers: { 'content-type': 'text/plain' } },
      415,
      'unsupported_media_type',
    ],
    ['a number', { raw: '1', headers: json }, 400, 'invalid_request'],
    ['null', { raw: 'null', headers: json }, 400, 'invalid_request'],
    ['too much', { raw: `"${'x'.repeat(1_048_576)}"`, headers: json }, 413, 'body_too_large'],
    ['deep nesting', { raw: '['.repeat(200_000), headers: json }, 400, 'malformed_json'],
  ])('A body of %s is refused', async (_what, call, status, code) => {
    const answer = await api.call('POST', '/api/watches', call);
    expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
  });
});

describe('A compressed body', () => {
  it('A body in a content encoding is refused by every route that reads one', async () => {
    const { body } = await api.call('GET', '/api/openapi.json');
    const paths = body.paths as Record<
      string,
      Record<string, { requestBody?: { content: object } }>
    >;
    const own = Object.entries(paths).filter(([path]) => !isOfGateway(path));
    const reading = own.flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { requestBody }]) =>
        Object.keys(requestBody?.content ?? {}).map((type) => [method, path, type] as const),
      ),
    );
    expect(reading.length).toBeGreaterThan(25);
    for (const encoding of ['gzip', 'br', 'GZIP, identity'])
      for (const [method, path, type] of reading) {
        const place = path.replace(/\{\w+\}/g, '1');
        const headers = { 'content-type': type, 'content-encoding': encoding };
        const answer = await api.call(method.toUpperCase(), place, { raw: '{}', headers });
        expect({ path, type, status: answer.status, code: answer.body.code }).toEqual({
          path,
          type,
          status: 415,
          code: 'unsupported_media_type',
        });
      }
  });

  it.each(['identity', 'Identity', ''])(
    'A body with the content encoding %j is read as it is',
    async (encoding) => {
      const { status } = await api.call('POST', '/api/watches', {
        body: { kind: 'contract', contract_id: '1' },
        headers: { 'content-encoding': encoding },
      });
      expect(status).toBe(201);
    },
  );
});

describe('An unexpected error', () => {
  it('An unexpected error is answered as a bare 500 and logged without secrets', async () => {
    const broken = await openApi(api.database.db, (deps) => ({
      ...deps,
      clock: {
        now: () => {
          throw new Error('the secret is thk_0123456789012345678901234567890123456789');
        },
        correctionMs: () => 0,
      },
    }));
    const { status, text, body } = await broken.call('GET', '/api/status');
    expect({ status, code: body.code }).toEqual({ status: 500, code: 'internal' });
    expect(text).not.toContain('secret');
    const line = broken.lines.find((l) => l.includes('API request failed'));
    expect(line).toContain('Error');
    expect(line).not.toContain('thk_01');
  });
});
