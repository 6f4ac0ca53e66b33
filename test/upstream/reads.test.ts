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

const noToken = { field: 'tokenId', validation: 'exists', message: 'no result' };
const named = (status: number, item: object): Reply => [200, { status, error: [item] }];
const PATH = '/v1/chain/erc721/3/tokens/9';

describe('A token is', () => {
  it.each<[string, string, Reply]>([
    ['absent', '404 that names it', named(404, { ...noToken, validation: '' })],
    ['absent', '422 that names it', named(422, noToken)],
    ['absent', '400 with a message that names it', nftError(400, 'The token does not exist')],
    ['absent', '404 with a message that names it', nftError(404, 'NFT not found')],
    ['inconclusive', '404 that names nothing', nftError(404, 'URL does not exist')],
    ['inconclusive', '404 without a list', [200, { status: 404 }]],
    ['inconclusive', '404 with an empty list', [200, { status: 404, error: [] }]],
    ['inconclusive', '422 that names nothing', nftError(422, 'cannot be processed')],
    ['inconclusive', '422 for another reason', named(422, { ...noToken, validation: 'locked' })],
    ['inconclusive', 'another refusal', nftError(400, 'tokenId must be a number')],
    ['inconclusive', 'a missing access token', nftError(400, 'The access token does not exist')],
    ['inconclusive', 'another code', accountError(406, 396)],
    ['inconclusive', "a proxy's 404", [404, '<html>The token does not exist</html>']],
    [
      'inconclusive',
      "a framework's 404",
      [404, { statusCode: 404, message: `Cannot GET ${PATH}`, error: 'Not Found' }],
    ],
    [
      'inconclusive',
      "another framework's 404",
      [404, { timestamp: '2026-01-01', status: 404, error: 'Not Found', path: PATH }],
    ],
    [
      'inconclusive',
      "a framework's 404 that speaks of a token",
      [404, { status: 404, message: 'token not found', path: PATH }],
    ],
    ['inconclusive', 'a problem document', [404, { type: 'a', title: 'Not Found', status: 404 }]],
    ['inconclusive', '404 of another family', [404, accountError(404, 404)[1]]],
  ])('%s after %s', async (result, _answer, reply) => {
    const { upstream } = await pollFrom(() => reply);
    const observation = await upstream.token(3n, 9n, 'steady');
    expect(observation.result).toBe(result);
    if (result === 'inconclusive') expect(observation).toMatchObject({ cause: 'refused' });
  });
});

describe('A wallet is', () => {
  it.each<[string, string, Reply]>([
    ['absent', '406/398', accountError(406, 398)],
    ['absent', '406/199, withdrawn or under sanction', accountError(406, 199)],
    ['inconclusive', '406 with a list', nftError(406, '398')],
    ['inconclusive', '404 of its family', accountError(404, 398)],
    ['inconclusive', "a framework's 404", [404, { statusCode: 404, message: 'Cannot GET' }]],
    ['inconclusive', 'another 406', accountError(406, 396)],
  ])('%s after %s', async (result, _answer, reply) => {
    const { poll } = await pollFrom(() => reply);
    expect((await poll()).result).toBe(result);
  });
});

it('A wallet is absent after 406/398', async () => {
  const { poll } = await pollFrom(() => accountError(406, 398));
  expect(await poll()).toMatchObject({ result: 'absent', status: 406 });
});

describe('A poll of a wallet is inconclusive', () => {
  const rows: [string, string, Reply][] = [
    ['refused', 'a wrong path', [404, '<html>no such page</html>']],
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
