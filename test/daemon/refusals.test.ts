/**
 * Bad settings, bad bodies, wrong addresses, wrong amounts, unknown ids, huge bodies: each is
 * refused with a clear line or a clear document, and nothing is half-written.
 */
import { describe, expect, it } from 'vitest';
import { endOf, startCommand } from '../harness/command.ts';
import { exchanged } from '../harness/nonsense.ts';
import { useRig } from '../harness/rig.ts';

const rig = useRig();
const { app } = rig;

/** Starts a daemon that must refuse to. */
const start = (env: Record<string, string>) =>
  endOf(
    startCommand({ DATA_DIR: '/nonexistent/never-made', ...env }, [], { program: 'src/main.ts' }),
  );

describe('a bad setting', () => {
  it.each([
    [{ PORT: 'eighty' }, /^PORT must be a port from 0 to 65535\n$/],
    [{ LOG_LEVEL: 'loud' }, /^LOG_LEVEL must be trace, debug/],
    [
      { UPSTREAM_BASE_UR: 'http://a' },
      /^UPSTREAM_BASE_UR is not a setting; did you mean UPSTREAM_BASE_URL\?\n$/,
    ],
    [{ UPSTREAM_BASE_URL: 'http://a.example' }, /^UPSTREAM_AUTH_URL must be set as well/],
    [{ WEBHOOK_ALLOW_CIDRS: '10.0.0.0/99' }, /^WEBHOOK_ALLOW_CIDRS must be ranges such as/],
    [{ DATABASE_URL: 'mysql://x' }, /^DATABASE_URL must be a URL such as postgres:/],
    [{ DATABASE_URL: 'postgres://a@127.0.0.1/x' }, /^MASTER_KEY must be 32 bytes in base64/],
    [
      { DATABASE_URL: 'postgres://a@127.0.0.1/x?pool_mode=statement' },
      /^DATABASE_URL: pool_mode must be session/,
    ],
    [{ ADMIN_KEY: 'secret' }, /^ADMIN_KEY must be thk_/],
    [{ NODE_ENV: 'production' }, /^UPSTREAM_BASE_URL must be the address of the service/],
    [
      { TALLYHOOK_CONFIG: '/nowhere.yaml' },
      /cannot be read; TALLYHOOK_CONFIG must name a YAML file\n$/,
    ],
  ])('%j stops the start with one line', async (env, line) => {
    const { out, code } = await start(env as Record<string, string>);
    expect(out).toMatch(line);
    expect(out.trim().split('\n')).toHaveLength(1);
    expect(code).toBe(1);
  });
});

it('Arguments of a start, which has none, stop it with one line', async () => {
  const child = startCommand({}, ['--port', '3'], { program: 'src/main.ts' });
  const line = 'a start has no arguments; docs/settings.md lists its settings\n';
  expect(await endOf(child)).toEqual({ code: 1, out: line, err: '' });
});

const payment = (over: object) => ({
  fromAddr: rig.world.ada,
  toAddr: rig.world.ben,
  amount: 1,
  feeAmount: 1,
  reasonType: 'x',
  ...over,
});

describe('nonsense as a write', () => {
  it.each([
    ['JSON that is cut off', () => '{"fromAddr":', '997'],
    ['a body that is no object', () => '[]', '997'],
    ['an address of 41 characters', () => payment({ toAddr: `0x${'1'.repeat(39)}` }), '399'],
    ['an amount of zero', () => payment({ amount: 0 }), '299'],
    ['an amount below zero', () => payment({ amount: -5 }), '299'],
    ['an amount with a fraction', () => payment({ amount: 1.5 }), '298'],
    ['an amount in words', () => payment({ amount: 'many' }), '298'],
  ])(
    '%s is refused by the service, recorded as refused, and never posted',
    async (_, body, code) => {
      const answer = await app.call('POST', '/v1/app/token/accounts/transfer', body());
      expect(answer.json.error.code).toBe(code);
      const id = String(answer.headers['tallyhook-operation']);
      const operation = await app.call('GET', `/api/operations/${id}`);
      expect(operation.json).toMatchObject({ state: 'rejected', outcome: 'not_executed' });
    },
  );

  it('a body larger than a mebibyte is refused and not recorded', async () => {
    const before = await count();
    const body = payment({ reasonType: 'x'.repeat(1_100_000) });
    const answer = await app.call('POST', '/v1/app/token/accounts/transfer', body);
    expect(answer.status).toBe(413);
    expect(answer.json.code).toBe('body_too_large');
    expect(await count()).toBe(before);
  });

  it('a write without a key gets the own 401 of the service and is not recorded', async () => {
    const before = await count();
    const headers = { authorization: 'Bearer nobody' };
    const answer = await app.call('POST', '/v1/app/token/accounts/transfer', payment({}), headers);
    expect(answer.status).toBe(406);
    expect(answer.json.error.code).toBe('401');
    expect(await count()).toBe(before);
  });
});

describe('nonsense as HTTP', () => {
  it.each([
    ['no request at all', 'hello\r\n\r\n', 400, 'malformed_http'],
    [
      'a head of 20 KiB',
      `GET /v1/${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`,
      431,
      'headers_too_large',
    ],
    ['a tunnel', 'CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'malformed_http'],
  ])('%s is told so in a problem document', async (_what, bytes, status, code) => {
    const text = await exchanged(Number(new URL(rig.daemon.url).port), Buffer.from(bytes));
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} .*application/problem\\+json`, 's'));
    expect(text).toContain(`"code":"${code}"`);
  });
});

describe('nonsense to our own API', () => {
  it.each([
    ['GET', '/api/operations/op_nothing', undefined, 404, 'not_found'],
    ['GET', '/api/nowhere', undefined, 404, 'not_found'],
    ['GET', '/api/operations?limit=-1', undefined, 400, 'invalid_request'],
    ['GET', '/api/operations?colour=red', undefined, 400, 'invalid_request'],
    ['GET', '/api/events?cursor=tomorrow', undefined, 400, 'invalid_cursor'],
    ['POST', '/api/endpoints', '{"url":', 400, 'malformed_json'],
    ['POST', '/api/endpoints', { url: 'ftp://a.example', event_types: ['*'] }, 422, 'url_refused'],
    ['POST', '/api/watches', { kind: 'wallet', addr: '0x1' }, 400, 'invalid_request'],
    [
      'POST',
      '/api/reports',
      { kind: 'reconciliation', from: 'x', to: 'y' },
      400,
      'invalid_request',
    ],
  ])('%s %s answers a problem document', async (method, path, body, status, code) => {
    const answer = await app.call(method, path, body);
    expect([answer.status, answer.json.code]).toEqual([status, code]);
    expect(answer.headers['content-type']).toContain('application/problem+json');
  });
});

async function count(): Promise<number> {
  const rows = await rig.world.database.owner.sql<{ n: number }[]>`
    select count(*)::int as n from tallyhook.operations`;
  return rows[0]?.n ?? 0;
}
