/** What apps ask is sent as it is, once, and told as it came. */
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import type { Forwarded } from '../../src/upstream/upstream.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { closeRaw, http, startRaw } from './raw-service.ts';
import {
  closeAll,
  gate,
  memoryKeeper,
  type Reply,
  startScripted,
  upstreamTo,
} from './scripted-service.ts';
import { BODY, DONE, forwardTo, GIVE, give } from './writes.ts';

afterEach(async () => {
  await closeAll();
  await closeRaw();
});

const bodyOf = ({ answer }: Forwarded) => answer && Buffer.from(answer.body).toString();

describe('a write', () => {
  it('is sent byte for byte with the managed token, and accepted with exact numbers', async () => {
    const { forward, service, clock } = await forwardTo(() => DONE);
    const path = `${GIVE}?a=%2F&b=c+d&&`;
    const forwarded = await forward({ path });
    expect(forwarded).toMatchObject({
      outcome: { class: 'accepted', txAppNo: 1n, txLogNo: 2n ** 70n },
      answer: { status: 200, complete: true },
      startedAt: clock.now(),
      sends: 1,
    });
    expect(bodyOf(forwarded)).toBe(
      '{"status":200,"data":{"tx_app_no":1,"tx_log_no":1180591620717411303424}}',
    );
    expect(service.asked.at(-1)).toMatchObject({ method: 'POST', url: path, body: BODY });
    expect(service.asked.at(-1)?.headers).toMatchObject({
      'content-type': 'application/json;charset=weird',
      'content-length': String(BODY.length),
      'accept-encoding': 'identity',
      authorization: 'Bearer token-1',
    });
  });

  it('goes out with the own token of the caller, or with none', async () => {
    const { forward, service } = await forwardTo(() => DONE);
    await forward({ authorization: { own: 'Bearer mine' } });
    await forward({ authorization: 'none' });
    expect(service.asked.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer mine',
      undefined,
    ]);
  });

  it('takes no header along that is ours or belongs to a connection', async () => {
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
    const { headers: sent } = service.asked[0] ?? {};
    expect(sent).toMatchObject({ 'accept-encoding': 'identity', 'x-app': 'kept' });
    expect(sent?.host).toBe(new URL(service.origin).host);
    expect(JSON.stringify(sent)).not.toMatch(/thk_|gzip|chunked|elsewhere/);
  });

  it.each<[string, Reply, object]>([
    ['rejected', [200, { status: '406', error: { code: '198', message: 'x' } }], { code: '198' }],
    ['unknown', [200, { status: '500', error: { code: '999', message: 'x' } }], {}],
    ['unknown', [200, { status: 200, data: {} }], { cause: 'no_number' }],
  ])('that is %s is told so, with its answer', async (cls, reply, more) => {
    const { forward } = await forwardTo(() => reply);
    const forwarded = await forward();
    expect(forwarded).toMatchObject({ outcome: { class: cls, ...more }, sends: 1 });
    expect(forwarded.answer?.status).toBe(200);
  });

  it('that is not answered in time is unknown, and never sent again', async () => {
    const { forward, service } = await forwardTo(() => 'hang', undefined);
    const forwarded = await forward({ deadlineAt: Date.UTC(2026, 0, 1) + 100 });
    expect(forwarded).toMatchObject({ outcome: { class: 'unknown', cause: 'timeout' }, sends: 1 });
    expect(forwarded.answer).toBeUndefined();
    expect(service.count(GIVE)).toBe(1);
  });

  it('whose answer was cut is unknown, and what was read of it is told', async () => {
    const cut = 'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"status":200,"da';
    const service = await startRaw((socket) => socket.end(cut));
    const { upstream } = await upstreamTo(service.origin(), systemClock);
    const forwarded = await upstream.forward(give(systemClock.now(), { authorization: 'none' }));
    expect(forwarded).toMatchObject({
      outcome: { class: 'unknown', cause: 'truncated', status: 200 },
      answer: { status: 200, complete: false },
      sends: 1,
    });
    expect(bodyOf(forwarded)).toBe('{"status":200,"da');
  });

  it('that may not be sent any more is not sent', async () => {
    const { forward, service } = await forwardTo(() => DONE);
    const forwarded = await forward({ mayStillSend: () => false });
    expect(forwarded).toMatchObject({ outcome: { class: 'not_sent', cause: 'withdrawn' } });
    expect(forwarded.sends).toBe(0);
    expect(service.count(GIVE)).toBe(0);
  });

  it('does not wait while looks are silenced and their places taken', async () => {
    const { opened, open } = gate();
    const { forward, upstream, service } = await forwardTo(async ({ url }) => {
      if (url.startsWith(GIVE)) return DONE;
      await opened;
      return [429, '', { 'retry-after': '60' }];
    });
    const observations = Array.from({ length: 8 }, () => upstream.token(1n, 1n, 'steady'));
    await expect.poll(() => service.count('/v1/chain/erc721/1/tokens/1')).toBeGreaterThan(0);
    expect(await forward()).toMatchObject({ outcome: { class: 'accepted' } });
    open();
    await Promise.all(observations);
    expect(upstream.blockedUntil('polls')).toBeDefined();
    expect(await forward()).toMatchObject({ outcome: { class: 'accepted' } });
  });
});

describe('a throttling of app traffic', () => {
  const slow: Reply = [429, '{"status":429}', { 'retry-after': '60' }];

  it('is passed on, silences looks and that class, and outlives a restart', async () => {
    const keeper = memoryKeeper();
    const clock = manualClock();
    const service = await startScripted(() => slow);
    const first = await upstreamTo(service.origin, clock, { quota: keeper });
    const retryAt = clock.now() + 60_000;
    const told = await first.upstream.forward(give(clock.now()));
    expect(told.outcome).toEqual({ class: 'unavailable', reason: 'throttled', retryAt });
    expect(bodyOf(told)).toBe('{"status":429}');
    const second = await upstreamTo(service.origin, clock, { quota: keeper });
    for (const { upstream } of [first, second]) {
      expect(upstream.blockedUntil('app-write')).toBe(retryAt);
      expect(upstream.blockedUntil('app-read')).toBeUndefined();
      expect(upstream.budget.free()).toBe(0);
      const refused = await upstream.forward(give(clock.now()));
      expect(refused).toMatchObject({ outcome: { class: 'unavailable', retryAt }, sends: 0 });
    }
    expect(service.count(GIVE)).toBe(1);
    clock.set(retryAt);
    await second.upstream.forward(give(clock.now()));
    expect(service.count(GIVE)).toBe(2);
  });

  it('without a deadline is passed on and keeps nothing from apps', async () => {
    const { forward, upstream, service } = await forwardTo(() => [429, '']);
    await forward();
    await forward();
    expect(service.count(GIVE)).toBe(2);
    expect(upstream.blockedUntil('polls')).toBeDefined();
  });

  it('of reads leaves writes alone', async () => {
    const { forward } = await forwardTo(({ method }) => (method === 'GET' ? slow : DONE));
    const read = { method: 'GET', path: '/v1/x', body: new Uint8Array(), family: 'read' } as const;
    expect((await forward(read)).outcome).toMatchObject({ reason: 'throttled' });
    expect((await forward()).outcome).toMatchObject({ class: 'accepted' });
  });
});

describe('a request of any other kind', () => {
  it("of maintenance gets the service's own 503, and the next one is sent too", async () => {
    const down = { status: 503, message: 'under maintenance' };
    const { forward, service } = await forwardTo(() => [503, down, { 'retry-after': '60' }]);
    for (const n of [1, 2]) {
      const forwarded = await forward();
      expect(forwarded.outcome).toMatchObject({ class: 'unavailable', reason: 'maintenance' });
      expect(forwarded.answer?.status).toBe(503);
      expect(service.count(GIVE)).toBe(n);
    }
  });

  it('keeps redirects, cookies and bodies as they are', async () => {
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
  });

  it('beyond the bound of open requests is turned away, unsent', async () => {
    const { opened, open } = gate();
    const clock = manualClock();
    const service = await startScripted(async () => {
      await opened;
      return DONE;
    });
    const settings = { forwardsMax: 1 };
    const { upstream } = await upstreamTo(service.origin, clock, { settings });
    const first = upstream.forward(give(clock.now()));
    const second = await upstream.forward(give(clock.now()));
    expect(second.outcome).toEqual({ class: 'not_sent', cause: 'busy' });
    open();
    expect((await first).outcome.class).toBe('accepted');
    await upstream.close();
    const late = await upstream.forward(give(clock.now()));
    expect(late.outcome).toEqual({ class: 'not_sent', cause: 'aborted' });
  });

  it('keeps a body that is larger than the bound out of memory', async () => {
    const service = await startRaw((socket) => socket.write(http(200, 'x'.repeat(100_000))));
    const settings = { bodyBytesMax: 1000 };
    const { upstream } = await upstreamTo(service.origin(), systemClock, { settings });
    const request = give(systemClock.now(), { authorization: 'none' });
    const forwarded = await upstream.forward(request);
    expect(forwarded.outcome).toEqual({ class: 'unknown', cause: 'too_large', status: 200 });
    expect(forwarded.answer?.body.length).toBe(1000);
  });
});
