/** Our own reads, over HTTP: every result that a read can have. */
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { jsonText } from '../../src/kernel/json.ts';
import { readToken, readWallet } from '../../src/upstream/upstream.ts';
import { manualClock } from '../harness/manual-clock.ts';
import {
  ACCOUNT,
  ADDR,
  accountError,
  closeAll,
  nftError,
  ok,
  pollFrom,
  token,
  upstreamTo,
  wallet,
} from './rig.ts';
import { http, type Reply, startRaw, startScripted, TOKEN_PATH } from './service.ts';

afterEach(closeAll);

const OTHER = `0x${'cd'.repeat(20)}`;

describe('A record', () => {
  it('of a wallet is read with every digit, by the client token, as identity', async () => {
    const { poll, service, clock } = await pollFrom(() => ok(wallet));
    expect(await poll()).toEqual({
      startedAt: clock.now(),
      endedAt: clock.now(),
      result: 'seen',
      record: { addr: ADDR, balance: 12345678901234567890n, status: 1 },
      raw: wallet,
    });
    const request = service.requests.at(-1);
    expect(request).toMatchObject({ method: 'GET', url: `${ACCOUNT}?addr=${ADDR}` });
    expect(request?.headers).toMatchObject({
      authorization: 'Bearer token-1',
      'accept-encoding': 'identity',
    });
    expect(service.requests[0]).toMatchObject({
      url: TOKEN_PATH,
      body: 'grant_type=client_credentials',
      headers: {
        authorization: `Basic ${Buffer.from('client:hush-hush').toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
    });
  });

  it('of a wallet may spell the address in another case', async () => {
    const { poll } = await pollFrom(() => ok({ ...wallet, token_addr: ADDR.toLowerCase() }));
    expect(await poll()).toMatchObject({ result: 'seen' });
  });

  it('of a token, and of a page of tokens, is read', async () => {
    const id = 10n ** 40n;
    const { upstream, service } = await pollFrom(({ url }) =>
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
    expect(service.requests.map(({ url }) => url).slice(1)).toEqual([
      `/v1/chain/erc721/3/tokens/${id}`,
      `/v1/chain/erc721/3/tokens?ownerAddr=${ADDR}&isLocked=true&valid=false&page=3&perPage=100`,
    ]);
  });

  it('of maintenance is requested without credentials', async () => {
    const data = { status: 'READY', start: '2026-01-01 00:00:00', end: null, message: 'soon' };
    const { upstream, service } = await pollFrom(() => ok(data));
    expect(await upstream.maintenance()).toMatchObject({
      result: 'seen',
      record: { status: 'READY', startText: '2026-01-01 00:00:00', message: 'soon' },
    });
    expect(service.requests).toHaveLength(1);
    expect(service.requests[0]?.headers.authorization).toBeUndefined();
  });

  it('of our own token is read without an envelope', async () => {
    const { upstream, service } = await pollFrom(() => [200, { active: true, exp: 1767312000 }]);
    const checked = await upstream.checkToken();
    expect(checked).toMatchObject({ record: { active: true, exp: 1767312000n } });
    expect(service.requests.at(-1)?.url).toBe('/v1/oauth/check_token?token=token-1');
  });
});

describe('A record in an answer to an app', () => {
  const body = (data: unknown, status = 200) => Buffer.from(jsonText({ status, data }));

  it('is read when it is the requested one', () => {
    expect(readWallet(body(wallet), ADDR.toUpperCase())?.balance).toBe(12345678901234567890n);
    expect(readToken(body(token), 3n, 9n)?.owner).toBe(ADDR);
  });

  it('is not read from another record, a refusal, or half an answer', () => {
    expect(readWallet(body(wallet), OTHER)).toBeUndefined();
    expect(readToken(body(token), 3n, 8n)).toBeUndefined();
    expect(readWallet(body(wallet, 406), ADDR)).toBeUndefined();
    expect(readWallet(body(wallet).subarray(0, 40), ADDR)).toBeUndefined();
  });
});

describe('A token is', () => {
  it.each<[string, string, Reply]>([
    ['absent', '404', nftError(404, 'URL does not exist')],
    ['absent', '422', nftError(422, 'cannot be processed')],
    ['absent', 'a message', nftError(400, 'The token does not exist')],
    ['inconclusive', 'another refusal', nftError(400, 'tokenId must be a number')],
    ['inconclusive', 'another code', accountError(406, 396)],
    ['inconclusive', "a proxy's 404", [404, '<html>does not exist</html>']],
  ])('%s after %s', async (result, _answer, reply) => {
    const { upstream } = await pollFrom(() => reply);
    const observation = await upstream.token(3n, 9n, 'steady');
    expect(observation.result).toBe(result);
    if (result === 'inconclusive') expect(observation).toMatchObject({ cause: 'refused' });
  });
});

it('A wallet is absent after 406/398', async () => {
  const { poll } = await pollFrom(() => accountError(406, 398));
  expect(await poll()).toMatchObject({ result: 'absent', status: 406 });
});

describe('A poll of a wallet is inconclusive', () => {
  const rows: [string, string, Reply][] = [
    ['refused', 'a wrong path', [404, '<html>no such page</html>']],
    ['refused', 'a sanction', accountError(406, 199)],
    ['refused', 'a validation error', nftError(400, 'addr is too long')],
    ['refused', '500/997', accountError(500, 997)],
    ['unreadable', 'the record of another wallet', ok({ ...wallet, token_addr: OTHER })],
    ['unreadable', 'a record without an amount', ok({ ...wallet, amt_token: null })],
    ['unreadable', 'an empty body', [200, '']],
    ['unreadable', 'an HTML page', [200, '<html>']],
    ['unreadable', 'an empty envelope', ok(null)],
    ['unreadable', 'a redirect', [302, '', { location: '/login' }]],
    ['unauthorized', '406/401', accountError(406, 401)],
    ['unauthorized', '401', [401, '']],
    ['unauthorized', '403', [403, '']],
    ['error', '500/999', accountError(500, 999)],
    ['error', '500/499', accountError(500, 499)],
    ['error', '502', [502, '<html>']],
    ['error', 'a 503 without a reason', [503, '']],
    ['error', 'a record under HTTP 500', [500, { status: 200, data: wallet }]],
    ['maintenance', 'a 503', [503, { status: 503, message: 'under maintenance' }]],
    ['throttled', '429', [429, '']],
    ['throttled', 'a 503 with Retry-After', [503, '', { 'retry-after': '60' }]],
  ];
  it.each(rows)('(%s) after %s, and not retried', async (cause, _answer, reply) => {
    const { poll, service } = await pollFrom(() => reply);
    expect(await poll()).toMatchObject({ result: 'inconclusive', cause });
    expect(service.count(ACCOUNT)).toBe(cause === 'unauthorized' && reply[0] !== 403 ? 2 : 1);
  });

  it.each<[string, string, string]>([
    ['unreadable', 'truncated', 'HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"status":200'],
    ['unreachable', 'missing', ''],
  ])('(%s) after an answer that is %s', async (cause, _answer, bytes) => {
    const service = await startRaw((socket, nth) => {
      if (service.received[nth]?.includes('/token/account')) socket.end(bytes);
      else socket.write(http(200, '{"access_token":"t","expires_in":86400}'));
    });
    const { upstream } = await upstreamTo(service.origin(), systemClock);
    const observation = await upstream.account(ADDR, 'steady');
    expect(observation).toMatchObject({ result: 'inconclusive', cause });
  });

  it('(unreachable) when the service refuses connections, with credentials or without', async () => {
    const service = await startRaw(() => {});
    await service.close();
    const { upstream } = await upstreamTo(service.origin(), manualClock());
    expect(await upstream.account(ADDR, 'steady')).toMatchObject({ cause: 'unreachable' });
    expect(await upstream.maintenance()).toMatchObject({ cause: 'unreachable' });
  });

  it('(unreachable) when the answer comes too late', async () => {
    const service = await startScripted(() => 'hang');
    const settings = { readTimeoutMs: 100 };
    const { upstream } = await upstreamTo(service.origin, systemClock, { settings });
    expect(await upstream.account(ADDR, 'steady')).toMatchObject({ cause: 'unreachable' });
  });
});

it('A page with a token of another contract is unreadable', async () => {
  const page = { total: 1, perPage: 1, page: 1, lastPage: 1, data: [token] };
  const { upstream } = await pollFrom(() => ok(page));
  const observation = await upstream.tokens(4n, {}, 'steady');
  expect(observation).toMatchObject({ result: 'inconclusive', cause: 'unreadable' });
});
