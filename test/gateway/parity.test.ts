/**
 * Every endpoint of the interface answers the same bytes through the gateway as it does directly.
 * Two sandboxes with one seed and a fixed clock answer alike when they get the same requests, so
 * each request goes to one of them directly and to the other through the gateway.
 */
import { request } from 'undici';
import { afterAll, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { CLIENT, setUpGateway } from './rig.ts';

const PAIR = `${CLIENT.clientId}:${CLIENT.clientSecret}`;
const BASIC = `Basic ${Buffer.from(PAIR).toString('base64')}`;
const CALLBACK = 'http://127.0.0.1:3000/callback';
const FORM = 'application/x-www-form-urlencoded';

const options = { ...CLIENT, seed: 5, clock: { now: () => Date.UTC(2026, 10, 21) } };
const direct = await startSandbox(options);
const behind = await startSandbox(options);
const { rig, sql } = await setUpGateway({ origin: behind.url });
afterAll(async () => {
  await direct.close();
  await behind.close();
});

const tokens = { client: '', user: '' };
const [ada, ben, , , , frank] = direct.control.state().members.map(({ addr }) => addr ?? '');
const unknown = '0x'.padEnd(42, '9');

/** Credentials: the managed token, a member's token, Basic, an invalid token, or none. */
type As = 'client' | 'user' | 'basic' | 'invalid' | 'none';
interface Row {
  what: string;
  method: string;
  path: string;
  as: As;
  body?: string;
  type?: string;
}

async function send(to: 'direct' | 'gateway', { method, path, as, body, type }: Row) {
  const origin = to === 'direct' ? direct.url : rig.url;
  const typed = body === undefined ? {} : { 'content-type': type ?? 'application/json' };
  const response = await request(`${origin}${path.replace('{user}', tokens.user)}`, {
    method: method as 'GET',
    headers: { ...credentials(to, as), ...typed },
    body: body ?? null,
  });
  const bytes = Buffer.from(await response.body.arrayBuffer());
  const { location, 'retry-after': retryAfter, 'www-authenticate': challenge } = response.headers;
  const { 'content-type': contentType, 'set-cookie': cookies } = response.headers;
  return {
    operation: response.headers['tallyhook-operation'],
    answer: {
      status: response.statusCode,
      text: bytes.toString('latin1'),
      contentType,
      location,
      retryAfter,
      challenge,
      cookies,
    },
  };
}

function credentials(to: 'direct' | 'gateway', as: As): Record<string, string> {
  if (as === 'none') return {};
  if (as === 'basic') return { authorization: BASIC };
  if (as === 'client')
    return { authorization: `Bearer ${to === 'direct' ? tokens.client : rig.secret}` };
  const authorization = `Bearer ${as === 'user' ? tokens.user : 'invalid'}`;
  return to === 'direct' ? { authorization } : { authorization, 'tallyhook-key': rig.secret };
}

/** Sends a request to both sides and expects the same answer. */
async function sendToBoth(row: Row) {
  const { answer } = await send('direct', row);
  const { answer: forwarded, operation } = await send('gateway', row);
  expect(forwarded).toEqual(answer);
  return { answer, operation };
}

const NFT = '/v1/chain/erc721/1';
const TOKEN = '/v1/app/token';
const get = (what: string, path: string, as: As = 'client'): Row => ({
  what,
  method: 'GET',
  path,
  as,
});
const form = (what: string, path: string, body: string, as: As = 'client'): Row => ({
  what,
  method: 'POST',
  path,
  as,
  body,
  type: FORM,
});
const pay = (what: string, path: string, body: object | string, as: As = 'client'): Row => ({
  what,
  method: 'POST',
  path: `${TOKEN}/${path}`,
  as,
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const setExtraData = (what: string, body: string): Row => ({
  ...form(what, `${NFT}/tokens/2/set-extra-data`, body, 'user'),
  method: 'PUT',
});
const GIVE = { toAddr: ada, amount: 10, reasonType: 'gift' };
const RECEIVE = { fromAddr: ada, amount: 1, feeAmount: 0, reasonType: 'fine' };
const TRANSFER = { fromAddr: ada, toAddr: ben, amount: 3, feeAmount: 1, reasonType: 'gift' };

const MINT = form('mint', `${NFT}/mint`, `toAddr=${ada}&tokenId=7&tokenURI=u&metaData=%7B%7D`);
const PAYMENT = pay('give', 'operations/1/give', GIVE);
const WRITES: Row[] = [
  MINT,
  form('mint of an existing token', `${NFT}/mint`, `toAddr=${ada}&tokenId=7&tokenURI=u`),
  form('mint without a token', `${NFT}/mint`, `toAddr=${ada}&tokenURI=u`),
  form('mint in a foreign contract', '/v1/chain/erc721/2/mint', `toAddr=${ada}&tokenId=7`),
  form('mint without a body', `${NFT}/mint`, ''),
  form('mint-sequential', `${NFT}/mint-sequential`, `toAddr=${ada}&tokenURI=u&extraData=%7B%7D`),
  form('mint-sequential to no address', `${NFT}/mint-sequential`, 'toAddr=x&tokenURI=u'),
  form(
    'transfer-from by the owner',
    `${NFT}/transfer-from`,
    `fromAddr=${ada}&toAddr=${ben}&tokenId=7`,
    'user',
  ),
  form(
    'transfer-from by another member',
    `${NFT}/transfer-from`,
    `fromAddr=${ben}&toAddr=${ada}&tokenId=9`,
    'user',
  ),
  form('transfer-from with a client token', `${NFT}/transfer-from`, 'tokenId=7'),
  setExtraData('set-extra-data', 'extraData=%7B%22a%22%3A1%7D'),
  setExtraData('set-extra-data with invalid JSON', 'extraData=%7B'),
  form('burn', `${NFT}/burn`, 'tokenId=7'),
  form('burn of an unknown token', `${NFT}/burn`, 'tokenId=4711'),
  form('burn with an invalid token', `${NFT}/burn`, 'tokenId=7', 'invalid'),
  PAYMENT,
  pay('give with a trailing slash', 'operations/1/give/', GIVE),
  pay('give of 0', 'operations/1/give', { ...GIVE, amount: 0 }),
  pay('give of a fraction', 'operations/1/give', { ...GIVE, amount: 1.5 }),
  pay('give to an unknown wallet', 'operations/1/give', { ...GIVE, toAddr: unknown }),
  pay('give to a suspended wallet', 'operations/1/give', { ...GIVE, toAddr: frank }),
  pay('give by an unknown operator', 'operations/99/give', GIVE),
  pay(
    'give beyond 2^53',
    'operations/1/give',
    `{"toAddr":"${ben}","amount":9007199254740993,"reasonType":"x"}`,
  ),
  pay('give with half a body', 'operations/1/give', '{"toAddr":'),
  form('give as a form', `${TOKEN}/operations/1/give`, `toAddr=${ada}&amount=1&reasonType=x`),
  pay('receive-from', 'operations/receive-from', RECEIVE),
  pay('receive-from beyond the balance', 'operations/receive-from', { ...RECEIVE, amount: 1e9 }),
  pay('transfer', 'accounts/transfer', TRANSFER),
  pay('transfer beyond the balance', 'accounts/transfer', { ...TRANSFER, amount: 1e9 }),
  pay('transfer without a fee', 'accounts/transfer', { ...TRANSFER, feeAmount: undefined }),
  pay('transfer with an invalid token', 'accounts/transfer', TRANSFER, 'invalid'),
  pay('a write that is not documented', 'events/3/give', GIVE),
  { ...form('PATCH', `${NFT}/freeze`, 'tokenId=1'), method: 'PATCH' },
  { what: 'DELETE', method: 'DELETE', path: `${NFT}/tokens/2`, as: 'client' },
];

const TOKENS = get('tokens', `${NFT}/tokens`);
const NOTHING = get('an unknown wallet', `${TOKEN}/account?addr=${unknown}`);
const LOGIN = `response_type=code&client_id=client&redirect_uri=${CALLBACK}`;
const READS: Row[] = [
  TOKENS,
  get(
    'tokens with filters',
    `${NFT}/tokens?ownerAddr=${ada}&isLocked=false&valid=true&page=1&perPage=1`,
  ),
  get('tokens beyond the last page', `${NFT}/tokens?page=99`),
  get('tokens with an invalid page', `${NFT}/tokens?page=x&perPage=-1`),
  get('tokens with a user token', `${NFT}/tokens`, 'user'),
  get('tokens of a foreign contract', '/v1/chain/erc721/2/tokens'),
  get('a token', `${NFT}/tokens/2`),
  get('an unknown token', `${NFT}/tokens/4711`),
  get('a wallet', `${TOKEN}/account?addr=${ada}`),
  get('a wallet with a trailing slash', `${TOKEN}/account/?addr=${ada}`),
  NOTHING,
  get('an invalid address', `${TOKEN}/account?addr=x`),
  get("the member's own wallet", `${TOKEN}/account`, 'user'),
  get('the own wallet with an invalid token', `${TOKEN}/account`, 'invalid'),
  get('an unknown path', '/v1/nothing/here'),
  get('maintenance', '/v1/system/maintenance', 'none'),
  get('the login page', `/v1/oauth/authorize?${LOGIN}&state=%2F`, 'none'),
  get('an invalid login', '/v1/oauth/authorize?response_type=x&client_id=y', 'none'),
  get('check_token', '/v1/oauth/check_token?token={user}', 'basic'),
  get('check_token of an unknown token', '/v1/oauth/check_token?token=x', 'basic'),
  get('check_token without credentials', '/v1/oauth/check_token?token=x', 'none'),
  form('an unknown grant', '/v1/oauth/token', 'grant_type=password', 'basic'),
  form(
    'an invalid code',
    '/v1/oauth/token',
    `grant_type=authorization_code&code=x&redirect_uri=${CALLBACK}`,
    'basic',
  ),
  form(
    'an invalid refresh token',
    '/v1/oauth/token',
    'grant_type=refresh_token&refresh_token=x',
    'basic',
  ),
  form('a grant without credentials', '/v1/oauth/token', 'grant_type=client_credentials', 'none'),
  { what: 'HEAD', method: 'HEAD', path: `${TOKEN}/account?addr=${ada}`, as: 'client' },
  { what: 'OPTIONS', method: 'OPTIONS', path: `${NFT}/tokens`, as: 'client' },
];

it('Through the gateway a member logs in with the same redirect, code and tokens', async () => {
  const grant = form('', '/v1/oauth/token', 'grant_type=client_credentials', 'basic');
  tokens.client = JSON.parse((await send('direct', grant)).answer.text).access_token;
  // The gateway fetches its own client token with its first request, so both sides issued one.
  await send('gateway', TOKENS);
  await send('direct', TOKENS);
  const login = `${LOGIN}&state=s%261&member_no=1`;
  const { answer } = await sendToBoth(form('', '/v1/oauth/authorize', login, 'none'));
  expect([302, 303]).toContain(answer.status);
  const code = new URL(String(answer.location)).searchParams.get('code');
  const exchange = `grant_type=authorization_code&code=${code}&redirect_uri=${CALLBACK}`;
  const granted = await sendToBoth(form('', '/v1/oauth/token', exchange, 'basic'));
  const { access_token: user, refresh_token: refresh } = JSON.parse(granted.answer.text);
  const renewal = `grant_type=refresh_token&refresh_token=${refresh}`;
  await sendToBoth(form('', '/v1/oauth/token', renewal, 'basic'));
  tokens.user = user;
});

it.each(WRITES)(
  'Through the gateway a write gets the same answer and is recorded: $what',
  async (row) => {
    expect((await sendToBoth(row)).operation).toMatch(/^op_/);
  },
);

it.each(READS)(
  'Through the gateway a read gets the same answer and is not recorded: $what',
  async (row) => {
    expect((await sendToBoth(row)).operation).toBeUndefined();
  },
);

it('Through the gateway every request gets the same answer during maintenance', async () => {
  for (const side of [direct, behind]) side.control.maintenance({ state: 'on', message: 'closed' });
  for (const row of [MINT, PAYMENT, TOKENS, NOTHING])
    expect((await sendToBoth(row)).answer.status).toBe(503);
});

it('Through the gateway neither tokens nor credentials are stored or logged', async () => {
  const rows = await sql<{ row: string }[]>`
      select o::text || encode(request_body, 'escape') as row from tallyhook.operations o`;
  expect(rows).toHaveLength(WRITES.length + 2);
  const kept = `${rows.map(({ row }) => row).join('\n')}\n${rig.logged.text}`;
  for (const secret of [tokens.client, tokens.user, CLIENT.clientSecret, rig.secret])
    expect(kept).not.toContain(secret);
});
