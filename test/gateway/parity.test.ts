/**
 * Every endpoint of the interface, asked of the service itself and through the gateway: the same
 * bytes. Two services of one seed and one standing clock answer alike as long as they are asked
 * alike, so each row is asked of the one directly and of the other through the gateway.
 */
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { openRig, type Rig } from './gateway-house.ts';

const CLIENT = { clientId: 'client', clientSecret: 'hush-client-secret' };
const BASIC = `Basic ${Buffer.from('client:hush-client-secret').toString('base64')}`;
const BACK = 'http://127.0.0.1:3000/callback';
const FORM = 'application/x-www-form-urlencoded';

let database: TestDatabase;
let direct: Sandbox;
let behind: Sandbox;
let rig: Rig;
/** What stands for `{…}` in a row: the same on both sides, or each side's own token. */
const named: Record<string, string> = {};
const own = { direct: { client: '', user: '' }, gateway: { user: '' } };

beforeAll(async () => {
  database = await createDatabase();
  const options = { ...CLIENT, seed: 5, clock: { now: () => Date.UTC(2026, 10, 21) } };
  direct = await startSandbox(options);
  behind = await startSandbox(options);
  rig = await openRig(database.db, { origin: behind.url });
  const [ada, ben, , , , frank] = direct.control.state().members.map(({ addr }) => addr ?? '');
  Object.assign(named, { ada, ben, frank, nobody: '0x'.padEnd(42, '9') });
});
afterAll(async () => {
  await rig.close();
  await direct.close();
  await behind.close();
  await database.drop();
});

/** As whom: with the managed token, a member's, Basic credentials, a foreign token, or nobody. */
type As = 'client' | 'user' | 'basic' | 'wrong' | 'nobody';
interface Row {
  what: string;
  method: string;
  path: string;
  as: As;
  body?: string;
  type?: string;
}
type Told = Awaited<ReturnType<typeof ask>>;

async function ask(side: 'direct' | 'gateway', row: Row) {
  const fill = (text: string) =>
    text.replace(/\{(\w+)\}/g, (_all, name) =>
      name === 'user' ? own[side].user : (named[name] ?? ''),
    );
  const headers: Record<string, string> = credentials(side, row.as);
  if (row.body !== undefined) headers['content-type'] = row.type ?? 'application/json';
  const origin = side === 'direct' ? direct.url : rig.url;
  const answer = await request(`${origin}${fill(row.path)}`, {
    method: row.method as 'GET',
    headers,
    body: row.body === undefined ? null : fill(row.body),
  });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  const { location, 'retry-after': after, 'www-authenticate': who } = answer.headers;
  return {
    status: answer.statusCode,
    text: bytes.toString('latin1'),
    type: answer.headers['content-type'],
    location,
    after,
    who,
    cookies: answer.headers['set-cookie'],
    operation: answer.headers['tallyhook-operation'],
  };
}

function credentials(side: 'direct' | 'gateway', as: As): Record<string, string> {
  if (as === 'basic') return { authorization: BASIC };
  if (as === 'nobody') return {};
  const key = side === 'gateway' ? { 'tallyhook-key': rig.secret } : undefined;
  if (as === 'client')
    return side === 'direct'
      ? { authorization: `Bearer ${own.direct.client}` }
      : { authorization: `Bearer ${rig.secret}` };
  const token = as === 'user' ? own[side].user : 'of-nobody';
  return { authorization: `Bearer ${token}`, ...key };
}

/** Asks both; everything but our own header must be the same. */
async function both(row: Row): Promise<{ direct: Told; gateway: Told }> {
  const told = { direct: await ask('direct', row), gateway: await ask('gateway', row) };
  const { operation: _none, ...expected } = told.direct;
  const { operation: _ours, ...given } = told.gateway;
  expect(given).toEqual(expected);
  return told;
}

const NFT = '/v1/chain/erc721/1';
const TOKEN = '/v1/app/token';
const form = (what: string, path: string, body: string, more: Partial<Row> = {}): Row => ({
  what,
  method: 'POST',
  path,
  as: 'client',
  body,
  type: FORM,
  ...more,
});
const pay = (what: string, path: string, body: object | string, more: Partial<Row> = {}): Row => ({
  what,
  method: 'POST',
  path: `${TOKEN}/${path}`,
  as: 'client',
  body: typeof body === 'string' ? body : JSON.stringify(body),
  ...more,
});
const get = (what: string, path: string, as: As = 'client'): Row => ({
  what,
  method: 'GET',
  path,
  as,
});
const PAY = { toAddr: '{ada}', amount: 10, reasonType: 'gift' };
const TAKE = { fromAddr: '{ada}', amount: 1, feeAmount: 0, reasonType: 'fine' };
const MOVE = { fromAddr: '{ada}', toAddr: '{ben}', amount: 3, feeAmount: 1, reasonType: 'gift' };

const WRITES: Row[] = [
  form('mint', `${NFT}/mint`, 'toAddr={ada}&tokenId=7&tokenURI=u&metaData=%7B%7D'),
  form('mint of a token that is there', `${NFT}/mint`, 'toAddr={ada}&tokenId=7&tokenURI=u'),
  form('mint without a token', `${NFT}/mint`, 'toAddr={ada}&tokenURI=u'),
  form('mint in a contract of others', '/v1/chain/erc721/2/mint', 'toAddr={ada}&tokenId=7'),
  form('mint without words', `${NFT}/mint`, ''),
  form('mint-sequential', `${NFT}/mint-sequential`, 'toAddr={ada}&tokenURI=u&extraData=%7B%7D'),
  form('mint-sequential, badly', `${NFT}/mint-sequential`, 'toAddr=x&tokenURI=u'),
  form(
    'transfer-from by its owner',
    `${NFT}/transfer-from`,
    'fromAddr={ada}&toAddr={ben}&tokenId=7',
    {
      as: 'user',
    },
  ),
  form(
    'transfer-from by another',
    `${NFT}/transfer-from`,
    'fromAddr={ben}&toAddr={ada}&tokenId=9',
    {
      as: 'user',
    },
  ),
  form('transfer-from with a client token', `${NFT}/transfer-from`, 'tokenId=7'),
  form('set-extra-data', `${NFT}/tokens/2/set-extra-data`, 'extraData=%7B%22a%22%3A1%7D', {
    method: 'PUT',
    as: 'user',
  }),
  form('set-extra-data, no JSON', `${NFT}/tokens/2/set-extra-data`, 'extraData=%7B', {
    method: 'PUT',
    as: 'user',
  }),
  form('burn', `${NFT}/burn`, 'tokenId=7'),
  form('burn of none', `${NFT}/burn`, 'tokenId=4711'),
  form('a write with a token of nobody', `${NFT}/burn`, 'tokenId=7', { as: 'wrong' }),
  pay('give', 'operations/1/give', PAY),
  pay('give with a slash at its end', 'operations/1/give/', PAY),
  pay('give of nothing', 'operations/1/give', { ...PAY, amount: 0 }),
  pay('give of a part', 'operations/1/give', { ...PAY, amount: 1.5 }),
  pay('give to nobody', 'operations/1/give', { ...PAY, toAddr: '{nobody}' }),
  pay('give to a suspended wallet', 'operations/1/give', { ...PAY, toAddr: '{frank}' }),
  pay('give by no operator', 'operations/99/give', PAY),
  pay(
    'give beyond 2^53',
    'operations/1/give',
    '{"toAddr":"{ben}","amount":9007199254740993,"reasonType":"x"}',
  ),
  pay('give with half a body', 'operations/1/give', '{"toAddr":'),
  pay('give as a form', 'operations/1/give', 'toAddr={ada}&amount=1&reasonType=x', { type: FORM }),
  pay('receive-from', 'operations/receive-from', TAKE),
  pay('receive-from beyond the balance', 'operations/receive-from', { ...TAKE, amount: 10 ** 9 }),
  pay('transfer', 'accounts/transfer', MOVE),
  pay('transfer beyond the balance', 'accounts/transfer', { ...MOVE, amount: 10 ** 9 }),
  pay('transfer without a fee', 'accounts/transfer', { ...MOVE, feeAmount: undefined }),
  pay('transfer with a token of nobody', 'accounts/transfer', MOVE, { as: 'wrong' }),
  pay('a write that nobody knows', 'events/3/give', PAY),
  form('another', '/v1/chain/erc721/1/freeze', 'tokenId=1', { method: 'PATCH' }),
  { what: 'a deletion', method: 'DELETE', path: `${NFT}/tokens/2`, as: 'client' },
];

const READS: Row[] = [
  get('tokens', `${NFT}/tokens`),
  get(
    'tokens, filtered',
    `${NFT}/tokens?ownerAddr={ada}&isLocked=false&valid=true&page=1&perPage=1`,
  ),
  get('tokens, a page too far', `${NFT}/tokens?page=99`),
  get('tokens, badly asked', `${NFT}/tokens?page=x&perPage=-1`),
  get('tokens with a user token', `${NFT}/tokens`, 'user'),
  get('tokens of others', '/v1/chain/erc721/2/tokens'),
  get('one token', `${NFT}/tokens/2`),
  get('no token', `${NFT}/tokens/4711`),
  get('a wallet', `${TOKEN}/account?addr={ada}`),
  get('a wallet, with a slash', `${TOKEN}/account/?addr={ada}`),
  get('no wallet', `${TOKEN}/account?addr={nobody}`),
  get('a wallet, badly asked', `${TOKEN}/account?addr=x`),
  get('the own wallet', `${TOKEN}/account`, 'user'),
  get('the own wallet of nobody', `${TOKEN}/account`, 'wrong'),
  get('no path', '/v1/nothing/here'),
  get('maintenance', '/v1/system/maintenance', 'nobody'),
  get(
    'the login page',
    `/v1/oauth/authorize?response_type=code&client_id=client&redirect_uri=${BACK}&state=%2F`,
    'nobody',
  ),
  get('the login page of nobody', '/v1/oauth/authorize?response_type=x&client_id=y', 'nobody'),
  get('a check of a token', '/v1/oauth/check_token?token={user}', 'basic'),
  get('a check of none', '/v1/oauth/check_token?token=x', 'basic'),
  get('a check by nobody', '/v1/oauth/check_token?token=x', 'nobody'),
  form('a grant that is none', '/v1/oauth/token', 'grant_type=password', { as: 'basic' }),
  form(
    'a wrong code',
    '/v1/oauth/token',
    `grant_type=authorization_code&code=x&redirect_uri=${BACK}`,
    {
      as: 'basic',
    },
  ),
  form('a wrong refresh', '/v1/oauth/token', 'grant_type=refresh_token&refresh_token=x', {
    as: 'basic',
  }),
  form('a grant without credentials', '/v1/oauth/token', 'grant_type=client_credentials', {
    as: 'nobody',
  }),
  { what: 'HEAD', method: 'HEAD', path: `${TOKEN}/account?addr={ada}`, as: 'client' },
  { what: 'OPTIONS', method: 'OPTIONS', path: `${NFT}/tokens`, as: 'client' },
];

describe('Through the gateway', () => {
  test('A member logs in: the redirect, its code and its tokens are the same', async () => {
    const grant = await ask(
      'direct',
      form('', '/v1/oauth/token', 'grant_type=client_credentials', {
        as: 'basic',
      }),
    );
    own.direct.client = JSON.parse(grant.text).access_token;
    // The gateway fetches its own with its first call, so that both were asked for one.
    await rig.call('GET', `${NFT}/tokens`);
    await ask('direct', get('', `${NFT}/tokens`));
    const query = `response_type=code&client_id=client&redirect_uri=${BACK}`;
    const login = `${query}&state=s%261&member_no=1`;
    const { direct: told } = await both(
      form('login', '/v1/oauth/authorize', login, { as: 'nobody' }),
    );
    expect([302, 303]).toContain(told.status);
    const code = new URL(String(told.location)).searchParams.get('code');
    const body = `grant_type=authorization_code&code=${code}&redirect_uri=${BACK}`;
    const tokens = await both(form('code', '/v1/oauth/token', body, { as: 'basic' }));
    const { access_token: user, refresh_token: refresh } = JSON.parse(tokens.direct.text);
    const again = `grant_type=refresh_token&refresh_token=${refresh}`;
    await both(form('refresh', '/v1/oauth/token', again, { as: 'basic' }));
    own.direct.user = user;
    own.gateway.user = user;
  });

  it.each(WRITES)('The answer is the same, and the write is recorded: $what', async (row) => {
    const { gateway } = await both(row);
    expect(gateway.operation).toMatch(/^op_/);
  });

  it.each(READS)('The answer is the same, and nothing is recorded: $what', async (row) => {
    const { gateway } = await both(row);
    expect(gateway.operation).toBeUndefined();
  });

  test('The answer is the same during maintenance', async () => {
    for (const side of [direct, behind])
      side.control.maintenance({ state: 'on', message: 'closed' });
    for (const row of [WRITES[0], WRITES[15], READS[0], READS[8], READS[10]])
      if (row) expect((await both(row)).gateway.status).toBe(503);
  });

  test('Neither tokens nor credentials were kept or logged', async () => {
    const rows = await database.owner.sql<{ row: string }[]>`
      select o::text || encode(request_body, 'escape') as row from tallyhook.operations o`;
    expect(rows).toHaveLength(WRITES.length + 2);
    const kept = `${rows.map(({ row }) => row).join('\n')}\n${rig.logged()}`;
    for (const secret of [own.direct.client, own.direct.user, 'hush-client-secret', rig.secret])
      expect(kept).not.toContain(secret);
  });
});
