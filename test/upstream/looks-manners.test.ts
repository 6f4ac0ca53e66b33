/** How we ask: with which token, how long we keep silent, and how we stop. */
import { afterEach, describe, expect, it } from 'vitest';
import { manualClock } from '../harness/manual-clock.ts';
import { closeRaw } from './raw-service.ts';
import {
  closeAll,
  gate,
  memoryKeeper,
  type Reply,
  startScripted,
  TOKEN_PATH,
  upstreamTo,
} from './scripted-service.ts';
import { ADDR, account, nft, ok, poll, wallet, wallets } from './service-records.ts';

afterEach(async () => {
  await closeAll();
  await closeRaw();
});

describe('the client token of looks', () => {
  it('is fetched once for looks that begin together', async () => {
    const { upstream, service } = await poll(() => ok(wallet));
    await Promise.all([wallets(upstream), wallets(upstream)]);
    expect(service.count(TOKEN_PATH)).toBe(1);
  });

  it.each<[string, Reply]>([
    ['HTTP 401', [401, '']],
    ['body 401', nft(401, 'Unauthorized')],
    ['406/401', account(406, 401)],
  ])('that is refused with %s is replaced once', async (_what, refusal) => {
    const { upstream, service } = await poll(({ headers }) =>
      headers.authorization === 'Bearer token-1' ? refusal : ok(wallet),
    );
    expect(await wallets(upstream)).toMatchObject({ result: 'seen' });
    expect(service.count('/v1/app/token/account')).toBe(2);
  });

  it('that cannot be had gives its cause', async () => {
    const refused: Reply = [401, { status: 401, error: { code: 401, message: 'bad client' } }];
    const service = await startScripted(
      () => ok(wallet),
      () => refused,
    );
    const { upstream, logged } = await upstreamTo(service.origin, manualClock());
    expect(await wallets(upstream)).toMatchObject({ cause: 'unauthorized' });
    expect(service.count('/v1/app/token/account')).toBe(0);
    expect(logged.text).toContain('no client token');
    expect(logged.text).not.toContain('hush-hush');
  });

  it('and the secret appear in no line of the log', async () => {
    let calls = 0;
    const { upstream, logged } = await poll(() => {
      calls += 1;
      return calls === 1 ? [401, ''] : [429, '', { 'retry-after': '5' }];
    });
    await wallets(upstream);
    await upstream.checkToken();
    expect(logged.text).toContain('throttled');
    expect(logged.text).not.toMatch(/token-\d|hush-hush|Basic [A-Za-z0-9]/);
  });
});

describe('Retry-After', () => {
  it('is obeyed in full by looks, also by the daemon after a restart', async () => {
    const keeper = memoryKeeper();
    const clock = manualClock();
    const service = await startScripted(() =>
      service.count('/v1/app/token/account') > 1
        ? ok(wallet)
        : [429, '', { 'retry-after': '3600' }],
    );
    const first = await upstreamTo(service.origin, clock, { quota: keeper });
    const retryAt = clock.now() + 3_600_000;
    expect(await wallets(first.upstream)).toMatchObject({ cause: 'throttled', retryAt });
    const second = await upstreamTo(service.origin, clock, { quota: keeper });
    clock.set(retryAt - 1);
    for (const { upstream } of [first, second]) {
      expect(await wallets(upstream)).toMatchObject({ cause: 'throttled' });
      expect(upstream.budget.free()).toBe(0);
      expect(upstream.blockedUntil('polls')).toBeGreaterThanOrEqual(retryAt);
    }
    expect(service.count('/v1/app/token/account')).toBe(1);
    clock.set(second.upstream.blockedUntil('polls') ?? 0);
    expect(await wallets(second.upstream)).toMatchObject({ result: 'seen' });
  });

  it('of maintenance keeps looks silent without teaching a lower rate', async () => {
    const down: Reply = [
      503,
      { message: 'x', status: 503, note: 'maintenance' },
      { 'retry-after': '60' },
    ];
    const { upstream, clock } = await poll(() => down);
    const before = upstream.budget.learnedPerS();
    expect(await wallets(upstream)).toMatchObject({ cause: 'maintenance' });
    expect(upstream.blockedUntil('polls')).toBe(clock.now() + 60_000);
    expect(upstream.blockedUntil('app-write')).toBeUndefined();
    expect(upstream.budget.learnedPerS()).toBe(before);
  });
});

describe('closing', () => {
  it('lets an open look finish and begins none', async () => {
    const { opened, open } = gate();
    const { upstream, service } = await poll(async () => {
      await opened;
      return ok(wallet);
    });
    const polling = wallets(upstream);
    await expect.poll(() => service.count('/v1/app/token/account')).toBe(1);
    const closing = upstream.close();
    expect(await wallets(upstream)).toMatchObject({ result: 'inconclusive', cause: 'budget' });
    open();
    await closing;
    expect(await polling).toMatchObject({ result: 'seen' });
  });
});

it.each(['', 'nowhere', 'ftp://x', 'http://user@x', 'http://x/?a=1'])(
  '%j is refused as an address of the service',
  async (origin) => {
    await expect(upstreamTo(origin, manualClock())).rejects.toMatchObject({ code: 'bad_setting' });
  },
);

it('an address with a path in front of /v1 keeps it', async () => {
  const service = await startScripted(() => ok(wallet));
  const { upstream } = await upstreamTo(service.origin, manualClock(), {
    baseUrl: `${service.origin}/behind/`,
  });
  await wallets(upstream);
  expect(service.asked.at(-1)?.url).toBe(`/behind/v1/app/token/account?addr=${ADDR}`);
});
