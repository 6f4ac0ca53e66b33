/** What we ask ourselves, over real HTTP: every result a look can have. */
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { jsonText } from '../../src/kernel/json.ts';
import { readToken, readWallet } from '../../src/upstream/upstream.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { closeRaw, http, startRaw } from './raw-service.ts';
import { closeAll, type Reply, startScripted, TOKEN_PATH, upstreamTo } from './scripted-service.ts';
import { ADDR, account, nft, OTHER, ok, poll, token, wallet, wallets } from './service-records.ts';

afterEach(async () => {
  await closeAll();
  await closeRaw();
});

describe('a record', () => {
  it('of a wallet is seen with every digit, by the client token, as identity', async () => {
    const { upstream, service, clock } = await poll(() => ok(wallet));
    const polled = await wallets(upstream);
    expect(polled).toEqual({
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
    const { upstream, service } = await poll(({ url }) =>
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
    const { upstream, service } = await poll(() => ok(data));
    expect(await upstream.maintenance()).toMatchObject({
      result: 'seen',
      record: { status: 'READY', startText: '2026-01-01 00:00:00', message: 'soon' },
    });
    expect(service.asked).toHaveLength(1);
    expect(service.asked[0]?.headers.authorization).toBeUndefined();
  });

  it('of our own token is read bare', async () => {
    const { upstream, service } = await poll(() => [200, { active: true, exp: 1767312000 }]);
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
    const { upstream } = await poll(() => reply);
    expect(await upstream.token(3n, 9n, 'steady')).toMatchObject({ result: 'absent' });
  });

  it.each<[string, Reply]>([
    ['another refusal', nft(400, 'tokenId must be a number')],
    ['another code', account(406, 396)],
    ['a proxy with 404', [404, '<html>does not exist</html>']],
  ])('of a token is not what %s says', async (_what, reply) => {
    const { upstream } = await poll(() => reply);
    expect(await upstream.token(3n, 9n, 'steady')).toMatchObject({ cause: 'refused' });
  });

  it('of a wallet reads as 406/398', async () => {
    const { upstream } = await poll(() => account(406, 398));
    expect(await wallets(upstream)).toMatchObject({ result: 'absent', status: 406 });
  });

  it.each<[string, Reply]>([
    ['a path that is wrong', [404, '<html>no such page</html>']],
    ['a wallet under sanction', account(406, 199)],
    ['a validation error', nft(400, 'addr is too long')],
    ['500/997', account(500, 997)],
  ])('is not what %s says', async (_what, reply) => {
    const { upstream } = await poll(() => reply);
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
    const { upstream } = await poll(() => reply);
    expect(await wallets(upstream)).toMatchObject({ result: 'inconclusive', cause });
  });

  it('a page with a token of another contract is unreadable', async () => {
    const page = { total: 1, perPage: 1, page: 1, lastPage: 1, data: [token] };
    const { upstream } = await poll(() => ok(page));
    const polled = await upstream.tokens(4n, {}, 'steady');
    expect(polled).toMatchObject({ result: 'inconclusive', cause: 'unreadable' });
  });

  it('a wallet in another spelling is the one that was asked for', async () => {
    const { upstream } = await poll(() => ok({ ...wallet, token_addr: ADDR.toLowerCase() }));
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
    const { upstream, service } = await poll(() => account(500, 999));
    await wallets(upstream);
    expect(service.count('/v1/app/token/account')).toBe(1);
  });
});
