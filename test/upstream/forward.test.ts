/** Requests of apps are sent unchanged, once, and their answers are returned unchanged. */
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import type { Forwarded } from '../../src/upstream/upstream.ts';
import {
  accountError,
  BODY,
  closeAll,
  DONE,
  forwardTo,
  GIVE,
  gate,
  give,
  upstreamTo,
} from './rig.ts';
import { http, type Reply, startRaw } from './service.ts';

afterEach(closeAll);

const bodyOf = ({ answer }: Forwarded) => answer && Buffer.from(answer.body).toString();

describe('A write', () => {
  it('is sent byte for byte with the managed token, and accepted with exact numbers', async () => {
    const { forward, service, clock } = await forwardTo(() => DONE);
    const path = `${GIVE}?a=%2F&b=c+d&&`;
    const forwarded = await forward({ path });
    expect(forwarded).toMatchObject({
      outcome: { class: 'accepted', txAppNo: 1n, txLogNo: 2n ** 70n },
      answer: { status: 200, complete: true },
      startedAt: clock.now(),
    });
    expect(bodyOf(forwarded)).toBe(
      '{"status":200,"data":{"tx_app_no":1,"tx_log_no":1180591620717411303424}}',
    );
    expect(service.count(GIVE)).toBe(1);
    expect(service.requests.at(-1)).toMatchObject({ method: 'POST', url: path, body: BODY });
    expect(service.requests.at(-1)?.headers).toMatchObject({
      'content-type': 'application/json;charset=weird',
      'content-length': String(BODY.length),
      'accept-encoding': 'identity',
      authorization: 'Bearer token-1',
    });
  });

  it('carries the token of the caller, or none, if the caller says so', async () => {
    const { forward, service } = await forwardTo(() => DONE);
    await forward({ authorization: { own: 'Bearer mine' } });
    await forward({ authorization: 'none' });
    const sent = service.requests.map(({ headers }) => headers.authorization);
    expect(sent).toEqual(['Bearer mine', undefined]);
  });

  it('carries no header that is ours or belongs to a connection', async () => {
    const { forward, service } = await forwardTo(() => DONE);
    const headers: [string, string][] = [
      ['Host', 'elsewhere.test'],
      ['Accept-Encoding', 'gzip'],
      ['Authorization', 'Bearer thk_secret'],
      ['Transfer-Encoding', 'chunked'],
      ['Content-Length', '1'],
      ['Connection', 'upgrade'],
      ['X-App', 'kept'],
    ];
    await forward({ headers, authorization: 'none' });
    const { headers: sent } = service.requests[0] ?? {};
    expect(sent).toMatchObject({ 'accept-encoding': 'identity', 'x-app': 'kept' });
    expect(sent?.host).toBe(new URL(service.origin).host);
    expect(JSON.stringify(sent)).not.toMatch(/thk_|gzip|chunked|elsewhere/);
  });

  it.each<[Reply, object]>([
    [accountError(406, 198), { class: 'rejected', code: '198' }],
    [accountError(500, 999), { class: 'unknown', cause: 'server_error' }],
    [[200, { status: 200, data: {} }], { class: 'unknown', cause: 'no_number' }],
  ])(
    'that is answered with %j is classified and returned with its answer',
    async (reply, outcome) => {
      const { forward, service } = await forwardTo(() => reply);
      expect(await forward()).toMatchObject({ outcome, answer: { status: 200 } });
      expect(service.count(GIVE)).toBe(1);
    },
  );

  it('that is not answered in time is unknown, and never sent again', async () => {
    const { forward, service, clock } = await forwardTo(() => 'hang');
    const forwarded = await forward({ deadlineAt: clock.now() + 100 });
    expect(forwarded).toMatchObject({ outcome: { class: 'unknown', cause: 'timeout' } });
    expect(forwarded.answer).toBeUndefined();
    expect(service.count(GIVE)).toBe(1);
  });

  it.each([
    ['truncated', 'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"status":200,"da', 17],
    ['too_large', http(200, 'x'.repeat(100_000)), 1000],
  ])('whose answer is %s is unknown, and the beginning is kept', async (cause, bytes, kept) => {
    const service = await startRaw((socket) => socket.end(bytes));
    const settings = { bodyBytesMax: 1000 };
    const { upstream } = await upstreamTo(service.origin(), systemClock, { settings });
    const forwarded = await upstream.forward(give(systemClock.now(), { authorization: 'none' }));
    expect(forwarded).toMatchObject({
      outcome: { class: 'unknown', cause, status: 200 },
      answer: { status: 200, complete: false },
    });
    expect(forwarded.answer?.body.length).toBe(kept);
  });

  it('does not wait while polls are stopped and their slots taken', async () => {
    const { opened, open } = gate();
    const { forward, upstream, service } = await forwardTo(async ({ url }) => {
      if (url.startsWith(GIVE)) return DONE;
      await opened;
      return [429, '', { 'retry-after': '60' }];
    });
    const polls = Array.from({ length: 8 }, () => upstream.token(1n, 1n, 'steady'));
    await expect.poll(() => service.count('/v1/chain/erc721/1/tokens/1')).toBeGreaterThan(0);
    expect(await forward()).toMatchObject({ outcome: { class: 'accepted' } });
    open();
    await Promise.all(polls);
    expect(upstream.blockedUntil('polls')).toBeDefined();
    expect(await forward()).toMatchObject({ outcome: { class: 'accepted' } });
  });
});

describe('A read of an app', () => {
  it('keeps redirects, cookies and bodies unchanged', async () => {
    const login: Reply = [302, 'go', { location: '/login', 'set-cookie': 'a=1' }];
    const { forward } = await forwardTo(() => login);
    const forwarded = await forward({
      method: 'GET',
      path: '/v1/oauth/authorize?response_type=code',
      host: 'auth',
      body: new Uint8Array(),
      authorization: 'none',
      family: 'read',
    });
    expect(forwarded).toMatchObject({ outcome: { class: 'accepted' }, answer: { status: 302 } });
    expect(forwarded.answer?.headers).toContainEqual(['location', '/login']);
    expect(forwarded.answer?.headers).toContainEqual(['set-cookie', 'a=1']);
    expect(bodyOf(forwarded)).toBe('go');
  });
});

it('Requests that need no key use nothing of the budget of polls', async () => {
  const { forward, upstream, service } = await forwardTo(() => DONE);
  const budget = () => [
    upstream.budget.free(),
    upstream.budget.ratePerS(),
    upstream.budget.nextAt(),
  ];
  const before = budget();
  const open = { host: 'auth', authorization: 'none', family: 'read' } as const;
  for (let i = 0; i < 50; i++) await forward({ ...open, path: '/v1/oauth/check_token?token=x' });
  expect(service.count('/v1/oauth/check_token')).toBe(50);
  expect(budget()).toEqual(before);
});
