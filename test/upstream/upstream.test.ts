/** Deadlines of the service, across restarts and classes of traffic; bounds, closing, addresses. */
import { afterEach, describe, expect, it } from 'vitest';
import { manualClock } from '../harness/manual-clock.ts';
import {
  ACCOUNT,
  ADDR,
  closeAll,
  DONE,
  forwardTo,
  GIVE,
  gate,
  give,
  memoryQuotaStore,
  ok,
  pollFrom,
  upstreamTo,
  wallet,
} from './rig.ts';
import { type Reply, startScripted, TOKEN_PATH } from './service.ts';

afterEach(closeAll);

describe('A Retry-After', () => {
  const slow: Reply = [429, '{"status":429}', { 'retry-after': '60' }];

  it('received by a poll is obeyed in full, also after a restart', async () => {
    const quota = memoryQuotaStore();
    const clock = manualClock();
    const service = await startScripted(() =>
      service.count(ACCOUNT) > 1 ? ok(wallet) : [429, '', { 'retry-after': '3600' }],
    );
    const first = await upstreamTo(service.origin, clock, { quota });
    const retryAt = clock.now() + 3_600_000;
    const throttled = await first.upstream.account(ADDR, 'steady');
    expect(throttled).toMatchObject({ cause: 'throttled', retryAt });
    const second = await upstreamTo(service.origin, clock, { quota });
    clock.set(retryAt - 1);
    for (const { upstream } of [first, second]) {
      expect(await upstream.account(ADDR, 'unknown')).toMatchObject({ cause: 'throttled' });
      expect(upstream.budget.free()).toBe(0);
      expect(upstream.blockedUntil('polls')).toBeGreaterThanOrEqual(retryAt);
      expect(upstream.blockedUntil('app-write')).toBeUndefined();
    }
    expect(service.count(ACCOUNT)).toBe(1);
    clock.set(second.upstream.blockedUntil('polls') ?? 0);
    expect(await second.upstream.account(ADDR, 'steady')).toMatchObject({ result: 'seen' });
  });

  it('received by a write is passed on, and stops polls and writes, also after a restart', async () => {
    const quota = memoryQuotaStore();
    const clock = manualClock();
    const service = await startScripted(() => slow);
    const first = await upstreamTo(service.origin, clock, { quota });
    const retryAt = clock.now() + 60_000;
    const { outcome, answer } = await first.upstream.forward(give(clock.now()));
    expect(outcome).toEqual({ class: 'unavailable', reason: 'throttled', retryAt });
    expect(String(answer?.body)).toBe('{"status":429}');
    const second = await upstreamTo(service.origin, clock, { quota });
    for (const { upstream } of [first, second]) {
      expect(upstream.blockedUntil('app-write')).toBe(retryAt);
      expect(upstream.blockedUntil('app-read')).toBeUndefined();
      expect(upstream.budget.free()).toBe(0);
      const refused = await upstream.forward(give(clock.now()));
      expect(refused).toMatchObject({ outcome: { class: 'unavailable', retryAt } });
    }
    expect(service.count(GIVE)).toBe(1);
    clock.set(retryAt);
    await second.upstream.forward(give(clock.now()));
    expect(service.count(GIVE)).toBe(2);
  });

  it('of the authorization host to a caller limits nothing else', async () => {
    const { forward, upstream, service } = await forwardTo(({ url }) =>
      url.startsWith('/v1/oauth') ? [429, '', { 'retry-after': '86400' }] : DONE,
    );
    const login = { method: 'GET', path: '/v1/oauth/authorize', host: 'auth' } as const;
    const request = { ...login, body: new Uint8Array(), family: 'read' } as const;
    expect((await forward(request)).answer?.status).toBe(429);
    for (const cls of ['polls', 'app-read', 'app-write'] as const)
      expect(upstream.blockedUntil(cls)).toBeUndefined();
    expect((await forward(request)).answer?.status).toBe(429);
    expect(service.count('/v1/oauth/authorize')).toBe(2);
  });

  it('is removed for all daemons by a person, and obeyed again when it comes again', async () => {
    const quota = memoryQuotaStore();
    const clock = manualClock();
    const service = await startScripted(() => slow);
    const [one, other] = [
      await upstreamTo(service.origin, clock, { quota }),
      await upstreamTo(service.origin, clock, { quota }),
    ].map(({ upstream }) => upstream);
    await one?.forward(give(clock.now()));
    await other?.syncQuota();
    expect(other?.blockedUntil('app-write')).toBeDefined();
    clock.advance(1_000);
    await one?.clearDeadlines();
    await other?.syncQuota();
    for (const upstream of [one, other])
      for (const cls of ['polls', 'app-write'] as const)
        expect(upstream?.blockedUntil(cls)).toBeUndefined();
    await other?.forward(give(clock.now()));
    await one?.syncQuota();
    expect(one?.blockedUntil('app-write')).toBe(clock.now() + 60_000);
  });

  it('that another daemon received stops a poll that waited for budget meanwhile', async () => {
    const quota = memoryQuotaStore();
    const clock = manualClock();
    const slowRead = gate();
    const service = await startScripted(async ({ method }) => {
      if (method !== 'GET') return slow;
      await slowRead.opened;
      return ok(wallet);
    });
    const one = await upstreamTo(service.origin, clock, { quota });
    const settings = { concurrencyMax: 1 };
    const { upstream } = await upstreamTo(service.origin, clock, { quota, settings });
    const first = upstream.account(ADDR, 'steady');
    const waiting = upstream.account(ADDR, 'steady');
    await one.upstream.forward(give(clock.now()));
    slowRead.open();
    expect(await first).toMatchObject({ result: 'seen' });
    expect(await waiting).toMatchObject({ cause: 'throttled' });
    expect(service.count(ACCOUNT)).toBe(1);
  });

  it('that another daemon received for a client token stops its fetch, and no other request', async () => {
    const quota = memoryQuotaStore();
    const clock = manualClock();
    const tokens = { throttled: false };
    const service = await startScripted(
      () => DONE,
      () => (tokens.throttled ? slow : [200, { access_token: 'token', expires_in: 86_400 }]),
    );
    const [one, other, third] = await Promise.all(
      [1, 2, 3].map(() => upstreamTo(service.origin, clock, { quota })),
    ).then((opened) => opened.map(({ upstream }) => upstream));
    await other?.forward(give(clock.now()));
    tokens.throttled = true;
    expect((await one?.forward(give(clock.now())))?.answer?.status).toBe(429);
    const until = clock.now() + 60_000;
    expect((await third?.forward(give(clock.now())))?.outcome).toMatchObject({ retryAt: until });
    expect(service.count(TOKEN_PATH)).toBe(2);
    expect((await other?.forward(give(clock.now())))?.outcome.class).toBe('accepted');
  });

  it('received by a read of an app does not stop writes', async () => {
    const { forward } = await forwardTo(({ method }) => (method === 'GET' ? slow : DONE));
    const read = { method: 'GET', path: '/v1/x', body: new Uint8Array(), family: 'read' } as const;
    expect((await forward(read)).outcome).toMatchObject({ reason: 'throttled' });
    expect((await forward()).outcome).toMatchObject({ class: 'accepted' });
  });

  it('of maintenance stops polls without lowering their rate, and no writes', async () => {
    const down = { status: 503, message: 'under maintenance' };
    const { poll, forward, service, upstream, clock } = await pollFrom(() => [
      503,
      down,
      { 'retry-after': '60' },
    ]);
    const before = upstream.budget.bounds().effective;
    expect(await poll()).toMatchObject({ cause: 'maintenance' });
    expect(upstream.blockedUntil('polls')).toBe(clock.now() + 60_000);
    expect(upstream.blockedUntil('app-write')).toBeUndefined();
    expect(upstream.budget.bounds().effective).toBe(before);
    for (const n of [1, 2]) {
      const { outcome, answer } = await forward();
      expect(outcome).toMatchObject({ class: 'unavailable', reason: 'maintenance' });
      expect(answer?.status).toBe(503);
      expect(service.count(GIVE)).toBe(n);
    }
  });
});

it('A 429 without a deadline stops polls, but no app traffic', async () => {
  const { forward, upstream, service } = await forwardTo(() => [429, '']);
  await forward();
  await forward();
  expect(service.count(GIVE)).toBe(2);
  expect(upstream.blockedUntil('polls')).toBeDefined();
});

it('Requests of apps beyond the bound, or after closing, are not sent', async () => {
  const { opened, open } = gate();
  const clock = manualClock();
  const service = await startScripted(async () => {
    await opened;
    return DONE;
  });
  const { upstream } = await upstreamTo(service.origin, clock, { settings: { forwardsMax: 1 } });
  const first = upstream.forward(give(clock.now()));
  const second = await upstream.forward(give(clock.now()));
  expect(second.outcome).toEqual({ class: 'not_sent', cause: 'busy' });
  open();
  expect((await first).outcome.class).toBe('accepted');
  await upstream.close();
  const late = await upstream.forward(give(clock.now()));
  expect(late.outcome).toEqual({ class: 'not_sent', cause: 'aborted' });
});

it('Closing lets an open poll finish and starts no other', async () => {
  const { opened, open } = gate();
  const { upstream, service, poll } = await pollFrom(async () => {
    await opened;
    return ok(wallet);
  });
  const polling = poll();
  await expect.poll(() => service.count(ACCOUNT)).toBe(1);
  const closing = upstream.close();
  expect(await poll()).toMatchObject({ result: 'inconclusive', cause: 'budget' });
  open();
  await closing;
  expect(await polling).toMatchObject({ result: 'seen' });
});

it.each(['', 'nowhere', 'ftp://x', 'http://user@x', 'http://x/?a=1'])(
  '%j is refused as an address of the service',
  async (origin) => {
    await expect(upstreamTo(origin, manualClock())).rejects.toMatchObject({ code: 'bad_setting' });
  },
);

it('A path in front of /v1 in an address is kept', async () => {
  const service = await startScripted(() => ok(wallet));
  const baseUrl = `${service.origin}/behind/`;
  const { upstream } = await upstreamTo(service.origin, manualClock(), { baseUrl });
  await upstream.account(ADDR, 'steady');
  expect(service.requests.at(-1)?.url).toBe(`/behind/v1/app/token/account?addr=${ADDR}`);
});
