/** What we ask ourselves, over real HTTP: every result a look can have. */
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { jsonText } from '../../src/kernel/json.ts';
import { readToken, readWallet, type Upstream } from '../../src/upstream/upstream.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { closeRaw, http, startRaw } from './raw-service.ts';
import {
  closeAll,
  gate,
  memoryKeeper,
  type Reply,
  type Script,
  startScripted,
  TOKEN_PATH,
  upstreamTo,
} from './scripted-service.ts';

afterEach(async () => {
  await closeAll();
  await closeRaw();
});

const ADDR = `0x${'aB'.repeat(20)}`;
const OTHER = `0x${'cd'.repeat(20)}`;
const wallet = { token_addr: ADDR, amt_token: 12345678901234567890n, status: 1 };
const token = {
  contract_id: 3,
  token_id: 9,
  token_owner: ADDR,
  token_uri: 'ipfs://x',
  token_metadata: '',
  token_extradata: '',
  token_creator: ADDR,
  token_created_at: '2026-01-01 09:00:00',
  token_owned_at: '2026-01-01 09:00:00',
  token_is_locked: 0,
  status: 1,
  last_tx_hash: `0x${'ef'.repeat(32)}`,
};
const ok = (data: unknown): Reply => [200, { status: 200, data }];
const nft = (status: number, message: string): Reply => [
  200,
  { status, error: [{ message, field: '', validation: '' }] },
];
const account = (status: number, code: number, http = 200): Reply => [
  http,
  { status: String(status), error: { code: String(code), message: 'no' } },
];

async function lookAt(script: Script, clock = manualClock()) {
  const service = await startScripted(script);
  return { service, clock, ...(await upstreamTo(service.origin, clock)) };
}
const wallets = (upstream: Upstream) => upstream.account(ADDR, 'steady');

describe('a record', () => {
  it('of a wallet is seen with every digit, by the client token, as identity', async () => {
    const { upstream, service, clock } = await lookAt(() => ok(wallet));
    const looked = await wallets(upstream);
    expect(looked).toEqual({
      startedAt: clock.now(),
      endedAt: clock.now(),
      result: 'seen',
      record: { addr: ADDR, balance: 12345678901234567890n, status: 1 },
      raw: wallet,
    });
    const asked = service.asked.at(-1);
    expect(asked).toMatchObject({ method: 'GET', url: `/v1/app/token/account?addr=${ADDR}` });
    expect(asked?.headers).toMatchObject({
      authorization: 'Bearer token-1',
      'accept-encoding': 'identity',
    });
    expect(service.asked[0]).toMatchObject({
      url: TOKEN_PATH,
      body: 'grant_type=client_credentials',
      headers: {
        authorization: `Basic ${Buffer.from('client:hush-hush').toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
    });
  });

  it('of a token and of a page of them is seen', async () => {
    const id = 10n ** 40n;
    const { upstream, service } = await lookAt(({ url }) =>
      url.includes('?')
        ? ok({ total: 1, perPage: 2, page: 3, lastPage: 4, data: [token] })
        : ok({ ...token, token_id: id }),
    );
    const one = await upstream.token(3n, id, 'pending');
    expect(one).toMatchObject({ result: 'seen', record: { tokenId: id, locked: false } });
    const query = { ownerAddr: ADDR, isLocked: true, valid: false, page: 3, perPage: 100 };
    const page = await upstream.tokens(3n, query, 'steady');
    expect(page).toMatchObject({
      result: 'seen',
      record: { total: 1n, perPage: 2, page: 3, lastPage: 4, tokens: [{ tokenId: 9n }] },
    });
    expect(service.asked.map(({ url }) => url).slice(1)).toEqual([
      `/v1/chain/erc721/3/tokens/${id}`,
      `/v1/chain/erc721/3/tokens?ownerAddr=${ADDR}&isLocked=true&valid=false&page=3&perPage=100`,
    ]);
  });

  it('of maintenance is asked for without credentials', async () => {
    const data = { status: 'READY', start: '2026-01-01 00:00:00', end: null, message: 'soon' };
    const { upstream, service } = await lookAt(() => ok(data));
    expect(await upstream.maintenance()).toMatchObject({
      result: 'seen',
      record: { status: 'READY', startText: '2026-01-01 00:00:00', message: 'soon' },
    });
    expect(service.asked).toHaveLength(1);
    expect(service.asked[0]?.headers.authorization).toBeUndefined();
  });

  it('of our own token is read bare', async () => {
    const { upstream, service } = await lookAt(() => [200, { active: true, exp: 1767312000 }]);
    const checked = await upstream.checkToken();
    expect(checked).toMatchObject({ record: { active: true, exp: 1767312000n } });
    expect(service.asked.at(-1)?.url).toBe('/v1/oauth/check_token?token=token-1');
  });
});

describe('a record in an answer to an app', () => {
  const body = (data: unknown, status = 200) => Buffer.from(jsonText({ status, data }));

  it('is read when it is the one that the app asked for', () => {
    expect(readWallet(body(wallet), ADDR.toUpperCase())?.balance).toBe(12345678901234567890n);
    expect(readToken(body(token), 3n, 9n)?.owner).toBe(ADDR);
  });

  it('is not read from another one, a refusal, or half an answer', () => {
    expect(readWallet(body(wallet), OTHER)).toBeUndefined();
    expect(readToken(body(token), 3n, 8n)).toBeUndefined();
    expect(readWallet(body(wallet, 406), ADDR)).toBeUndefined();
    expect(readWallet(body(wallet).subarray(0, 40), ADDR)).toBeUndefined();
  });
});

describe('absence', () => {
  it.each<[string, Reply]>([
    ['404', nft(404, 'URL does not exist')],
    ['422', nft(422, 'cannot be processed')],
    ['400 in words', nft(400, 'The token does not exist')],
  ])('of a token reads as %s', async (_what, reply) => {
    const { upstream } = await lookAt(() => reply);
    expect(await upstream.token(3n, 9n, 'steady')).toMatchObject({ result: 'absent' });
  });

  it.each<[string, Reply]>([
    ['another refusal', nft(400, 'tokenId must be a number')],
    ['another code', account(406, 396)],
    ['a proxy with 404', [404, '<html>does not exist</html>']],
  ])('of a token is not what %s says', async (_what, reply) => {
    const { upstream } = await lookAt(() => reply);
    expect(await upstream.token(3n, 9n, 'steady')).toMatchObject({ cause: 'refused' });
  });

  it('of a wallet reads as 406/398', async () => {
    const { upstream } = await lookAt(() => account(406, 398));
    expect(await wallets(upstream)).toMatchObject({ result: 'absent', status: 406 });
  });

  it.each<[string, Reply]>([
    ['a path that is wrong', [404, '<html>no such page</html>']],
    ['a wallet under sanction', account(406, 199)],
    ['a validation error', nft(400, 'addr is too long')],
    ['500/997', account(500, 997)],
  ])('is not what %s says', async (_what, reply) => {
    const { upstream } = await lookAt(() => reply);
    expect(await wallets(upstream)).toMatchObject({ result: 'inconclusive', cause: 'refused' });
  });
});

describe('a look that says nothing has its cause', () => {
  it.each<[string, Reply, string]>([
    ['of another wallet', ok({ ...wallet, token_addr: OTHER }), 'unreadable'],
    ['without an amount', ok({ ...wallet, amt_token: null }), 'unreadable'],
    ['that is empty', [200, ''], 'unreadable'],
    ['that is a page', [200, '<html>'], 'unreadable'],
    ['with an empty envelope', ok(null), 'unreadable'],
    ['that redirects', [302, '', { location: '/login' }], 'unreadable'],
    ['406/401', account(406, 401), 'unauthorized'],
    ['401', [401, ''], 'unauthorized'],
    ['403', [403, ''], 'unauthorized'],
    ['500/999', account(500, 999), 'error'],
    ['500/499', account(500, 499), 'error'],
    ['502', [502, '<html>'], 'error'],
    ['503 for no reason', [503, ''], 'error'],
    ['503 for maintenance', [503, { status: 503, message: 'under maintenance' }], 'maintenance'],
    ['429', [429, ''], 'throttled'],
    ['503 with Retry-After', [503, '', { 'retry-after': '60' }], 'throttled'],
  ])('%s', async (_what, reply, cause) => {
    const { upstream } = await lookAt(() => reply);
    expect(await wallets(upstream)).toMatchObject({ result: 'inconclusive', cause });
  });

  it('a page with a token of another contract is unreadable', async () => {
    const page = { total: 1, perPage: 1, page: 1, lastPage: 1, data: [token] };
    const { upstream } = await lookAt(() => ok(page));
    const looked = await upstream.tokens(4n, {}, 'steady');
    expect(looked).toMatchObject({ result: 'inconclusive', cause: 'unreadable' });
  });

  it('a wallet in another spelling is the one that was asked for', async () => {
    const { upstream } = await lookAt(() => ok({ ...wallet, token_addr: ADDR.toLowerCase() }));
    expect(await wallets(upstream)).toMatchObject({ result: 'seen' });
  });

  it.each<[string, string, string]>([
    ['cut', 'HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"status":200', 'unreadable'],
    ['none', '', 'unreachable'],
  ])('an answer that is %s', async (_what, bytes, cause) => {
    const service = await startRaw((socket, nth) => {
      if (service.received[nth]?.includes('/token/account')) socket.end(bytes);
      else socket.write(http(200, '{"access_token":"t","expires_in":86400}'));
    });
    const { upstream } = await upstreamTo(service.origin(), systemClock);
    expect(await wallets(upstream)).toMatchObject({ result: 'inconclusive', cause });
  });

  it('a service that is not there is unreachable, with its token or without', async () => {
    const service = await startRaw(() => {});
    await service.close();
    const { upstream } = await upstreamTo(service.origin(), manualClock());
    expect(await wallets(upstream)).toMatchObject({ cause: 'unreachable' });
    expect(await upstream.maintenance()).toMatchObject({ cause: 'unreachable' });
  });

  it('an answer that is too late is unreachable', async () => {
    const service = await startScripted(() => 'hang');
    const settings = { readTimeoutMs: 100 };
    const { upstream } = await upstreamTo(service.origin, systemClock, { settings });
    expect(await wallets(upstream)).toMatchObject({ cause: 'unreachable' });
  });

  it('nothing is asked again by itself', async () => {
    const { upstream, service } = await lookAt(() => account(500, 999));
    await wallets(upstream);
    expect(service.count('/v1/app/token/account')).toBe(1);
  });
});

describe('the client token of looks', () => {
  it('is fetched once for looks that begin together', async () => {
    const { upstream, service } = await lookAt(() => ok(wallet));
    await Promise.all([wallets(upstream), wallets(upstream)]);
    expect(service.count(TOKEN_PATH)).toBe(1);
  });

  it.each<[string, Reply]>([
    ['HTTP 401', [401, '']],
    ['body 401', nft(401, 'Unauthorized')],
    ['406/401', account(406, 401)],
  ])('that is refused with %s is replaced once', async (_what, refusal) => {
    const { upstream, service } = await lookAt(({ headers }) =>
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
    const { upstream, logged } = await lookAt(() => {
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
      expect(upstream.blockedUntil('looks')).toBeGreaterThanOrEqual(retryAt);
    }
    expect(service.count('/v1/app/token/account')).toBe(1);
    clock.set(second.upstream.blockedUntil('looks') ?? 0);
    expect(await wallets(second.upstream)).toMatchObject({ result: 'seen' });
  });

  it('of maintenance keeps looks silent without teaching a lower rate', async () => {
    const down: Reply = [
      503,
      { message: 'x', status: 503, note: 'maintenance' },
      { 'retry-after': '60' },
    ];
    const { upstream, clock } = await lookAt(() => down);
    const before = upstream.budget.learnedPerS();
    expect(await wallets(upstream)).toMatchObject({ cause: 'maintenance' });
    expect(upstream.blockedUntil('looks')).toBe(clock.now() + 60_000);
    expect(upstream.blockedUntil('app-write')).toBeUndefined();
    expect(upstream.budget.learnedPerS()).toBe(before);
  });
});

describe('closing', () => {
  it('lets an open look finish and begins none', async () => {
    const { opened, open } = gate();
    const { upstream, service } = await lookAt(async () => {
      await opened;
      return ok(wallet);
    });
    const looking = wallets(upstream);
    await expect.poll(() => service.count('/v1/app/token/account')).toBe(1);
    const closing = upstream.close();
    expect(await wallets(upstream)).toMatchObject({ result: 'inconclusive', cause: 'budget' });
    open();
    await closing;
    expect(await looking).toMatchObject({ result: 'seen' });
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
