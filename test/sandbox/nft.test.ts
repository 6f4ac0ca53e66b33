/** Section 4.1 of the interface: the seven NFT endpoints, their rules and the chain behind them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Caller, STRANGER, startCaller, stopAll } from './client.ts';

let caller: Caller;
let client: string;
const NFT = '/v1/chain/erc721/1';

beforeAll(async () => {
  caller = await startCaller();
});
afterAll(stopAll);
beforeEach(async () => {
  caller.clock.set(Date.UTC(2026, 0, 1));
  caller.sandbox.control.reset({});
  client = await caller.clientToken();
});

async function mint(tokenId: string, toAddr = caller.addressOf(1)) {
  const form = { toAddr, tokenId, tokenURI: 'ipfs://x' };
  return caller.send('POST', `${NFT}/mint`, { as: client, form });
}
async function minted(tokenId: string, toAddr?: string) {
  await mint(tokenId, toAddr);
  caller.clock.advance(10_000);
}
const read = (tokenId: string) => caller.send('GET', `${NFT}/tokens/${tokenId}`, { as: client });
const list = (query = '') => caller.send('GET', `${NFT}/tokens${query}`, { as: client });
const token = async (tokenId: string) => (await read(tokenId)).at('data');
const tokenAt = async (tokenId: string, field: string) => (await read(tokenId)).at(`data.${field}`);
const ids = async (query: string) => {
  const { at } = await list(query);
  const rows = at('data.data');
  return (Array.isArray(rows) ? rows : []).map((_row, i) => at(`data.data.${i}.token_id`));
};

describe('A mint', () => {
  test('is Pending, then in Progress, then Complete, by the clock', async () => {
    const reply = await mint('7');
    expect(reply.at('status')).toBe(200);
    expect(reply.at('data.tx_hash')).toMatch(/^0x[0-9a-f]{64}$/);
    expect(await tokenAt('7', 'status')).toBe(0);
    caller.clock.advance(3_000);
    expect(await tokenAt('7', 'status')).toBe(2);
    caller.clock.advance(7_000);
    expect(await token('7')).toEqual({
      contract_id: 1,
      token_id: 7,
      token_owner: caller.addressOf(1),
      token_uri: 'ipfs://x',
      token_metadata: '',
      token_extradata: '',
      token_creator: expect.stringMatching(/^0x[0-9a-f]{40}$/),
      token_created_at: '2026-01-01 00:00:00',
      token_owned_at: '2026-01-01 00:00:00',
      token_is_locked: 0,
      status: 1,
      last_tx_hash: reply.at('data.tx_hash'),
    });
  });

  test('that was told to fail ends in Fail, and its number is free again', async () => {
    caller.sandbox.control.failNext(1);
    await minted('7');
    expect(await tokenAt('7', 'status')).toBe(3);
    await minted('7');
    expect(await tokenAt('7', 'status')).toBe(1);
  });

  test('of a number in use is refused with 422', async () => {
    await minted('7');
    const { status, body } = await mint('7');
    expect(status).toBe(200);
    expect(body).toEqual({
      status: 422,
      error: [{ message: expect.any(String), field: 'tokenId', validation: 'unique' }],
    });
  });

  test('takes numbers of any size exactly', async () => {
    const huge = `1${'0'.repeat(58)}7`;
    await minted(huge);
    expect(await tokenAt(huge, 'token_id')).toBe(BigInt(huge));
    expect(await ids('')).toEqual([BigInt(huge)]);
  });

  test('that is sequential takes the first free number', async () => {
    await mint('1');
    await mint('3');
    const form = { toAddr: STRANGER, tokenURI: 'u', metaData: '{"a":1}', extraData: '' };
    const one = await caller.send('POST', `${NFT}/mint-sequential`, { as: client, form });
    const two = await caller.send('POST', `${NFT}/mint-sequential`, { as: client, form });
    expect([one.at('data.tokenId'), two.at('data.tokenId')]).toEqual([2, 4]);
    expect(await tokenAt('2', 'token_metadata')).toBe('{"a":1}');
  });
});

describe('Input is checked field by field', () => {
  const good = { toAddr: STRANGER, tokenId: '1', tokenURI: 'u' };
  test.each([
    [{ toAddr: '0x1' }, 'toAddr', 'length'],
    [{ toAddr: '' }, 'toAddr', 'required'],
    [{ tokenId: 'one' }, 'tokenId', 'integer'],
    [{ tokenId: '1.5' }, 'tokenId', 'integer'],
    [{ tokenId: '-1' }, 'tokenId', 'integer'],
    [{ tokenURI: '' }, 'tokenURI', 'required'],
    [{ metaData: '{' }, 'metaData', 'json'],
    [{ metaData: JSON.stringify('x'.repeat(999)) }, 'metaData', 'max'],
    [{ extraData: 'no' }, 'extraData', 'json'],
    [{ extraData: JSON.stringify('x'.repeat(499)) }, 'extraData', 'max'],
  ])('a wrong field is named with its rule (%#)', async (change, field, validation) => {
    const form = { ...good, ...change };
    const { status, body } = await caller.send('POST', `${NFT}/mint`, { as: client, form });
    expect(status).toBe(200);
    expect(body).toEqual({
      status: 400,
      error: [{ message: `${validation} validation failed on ${field}`, field, validation }],
    });
  });

  test('texts of exactly the greatest length pass', async () => {
    const form = {
      ...good,
      metaData: JSON.stringify('x'.repeat(998)),
      extraData: JSON.stringify('x'.repeat(498)),
    };
    expect((await caller.send('POST', `${NFT}/mint`, { as: client, form })).at('status')).toBe(200);
  });

  test.each([
    ['?ownerAddr=short', 'ownerAddr'],
    ['?creatorAddr=short', 'creatorAddr'],
    ['?isLocked=maybe', 'isLocked'],
    ['?valid=2', 'valid'],
    ['?page=0', 'page'],
    ['?perPage=x', 'perPage'],
  ])('the query %s breaks %s', async (query, field) => {
    const reply = await list(query);
    expect([reply.at('status'), reply.at('error.0.field')]).toEqual([400, field]);
  });
});

describe('A token is written', () => {
  const write = (kind: 'burn' | 'set' | 'move', as: string, change: object = {}) => {
    const form = { tokenId: '1', ...change };
    if (kind === 'burn') return caller.send('POST', `${NFT}/burn`, { as, form });
    if (kind === 'set') {
      const fields = { extraData: '{"hp":1}', ...change };
      return caller.send('PUT', `${NFT}/tokens/1/set-extra-data`, { as, form: fields });
    }
    const fields = { fromAddr: caller.addressOf(1), toAddr: caller.addressOf(2), ...form };
    return caller.send('POST', `${NFT}/transfer-from`, { as, form: fields });
  };
  const user = async (memberNo: number) =>
    String((await caller.login(memberNo)).at('access_token'));

  test('by its owner: extra data and owner change when the chain is done', async () => {
    await minted('1');
    const ada = await user(1);
    const set = await write('set', ada);
    expect(await tokenAt('1', 'token_extradata')).toBe('');
    caller.clock.advance(10_000);
    expect(await token('1')).toMatchObject({
      token_extradata: '{"hp":1}',
      last_tx_hash: set.at('data.tx_hash'),
    });
    await write('move', ada);
    expect(await tokenAt('1', 'token_owner')).toBe(caller.addressOf(1));
    caller.clock.advance(10_000);
    expect(await tokenAt('1', 'token_owner')).toBe(caller.addressOf(2));
  });

  test('a burn takes it away when the chain is done', async () => {
    await minted('1');
    expect((await write('burn', client)).at('data.tx_hash')).toHaveLength(66);
    expect((await read('1')).at('status')).toBe(200);
    caller.clock.advance(10_000);
    expect((await read('1')).at('status')).toBe(404);
    expect((await list()).at('data.total')).toBe(0);
  });

  test('a write that fails on the chain leaves it as it was, with status Fail', async () => {
    await minted('1');
    caller.sandbox.control.failNext(1);
    const move = await write('move', await user(1));
    caller.clock.advance(10_000);
    expect(await token('1')).toMatchObject({
      token_owner: caller.addressOf(1),
      status: 3,
      last_tx_hash: move.at('data.tx_hash'),
    });
  });

  test('not by the wrong kind of token, nor by nobody: 401', async () => {
    await minted('1');
    const ada = await user(1);
    for (const [kind, as] of [
      ['burn', ada],
      ['set', client],
      ['move', client],
      ['burn', 'nonsense'],
    ] as const) {
      expect((await write(kind, as)).body).toMatchObject({ status: 401 });
    }
  });

  test.each(['burn', 'set', 'move'] as const)(
    'not while locked on a market, nor while processed: %s',
    async (kind) => {
      await mint('1');
      const as = kind === 'burn' ? client : await user(1);
      expect((await write(kind, as)).at('error.0.validation')).toBe('processing');
      caller.clock.advance(10_000);
      caller.sandbox.control.setToken(1n, 1n, { locked: true });
      expect((await write(kind, as)).at('error.0.validation')).toBe('locked');
      caller.sandbox.control.setToken(1n, 1n, { locked: false });
      expect((await write(kind, as)).at('status')).toBe(200);
    },
  );

  test('not by somebody else: 422', async () => {
    await minted('1');
    const ben = await user(2);
    expect((await write('set', ben)).at('error.0.validation')).toBe('owner');
    const ada = await user(1);
    const from = { fromAddr: caller.addressOf(2) };
    expect((await write('move', ada, from)).at('error.0')).toMatchObject({ field: 'fromAddr' });
  });

  test('not in a contract of another app (401) or in none (404)', async () => {
    for (const [contract, status] of [
      [2, 401],
      [9, 404],
    ]) {
      const path = `/v1/chain/erc721/${contract}/burn`;
      const reply = await caller.send('POST', path, { as: client, form: { tokenId: '1' } });
      expect(reply.at('status')).toBe(status);
    }
  });
});

describe('The list', () => {
  test('filters by owner, creator, lock and processing', async () => {
    await minted('1');
    await minted('2', caller.addressOf(2));
    await mint('3');
    caller.sandbox.control.setToken(1n, 2n, { locked: true });
    const creator = await tokenAt('1', 'token_creator');
    expect(await ids(`?ownerAddr=${caller.addressOf(1)}`)).toEqual([1, 3]);
    expect(await ids(`?creatorAddr=${creator}`)).toEqual([1, 2, 3]);
    expect(await ids(`?creatorAddr=${STRANGER}`)).toEqual([]);
    expect(await ids('?isLocked=true')).toEqual([2]);
    expect(await ids('?isLocked=false')).toEqual([1, 3]);
    expect(await ids('?valid=true')).toEqual([1, 2]);
    expect(await ids('?valid=false')).toEqual([1, 2, 3]);
  });

  test('is paged', async () => {
    for (let id = 1; id <= 5; id += 1) await mint(String(id));
    const page = { total: 5, perPage: 2, page: 2, lastPage: 3 };
    expect((await list('?perPage=2&page=2')).at('data')).toMatchObject(page);
    expect(await ids('?perPage=2&page=2')).toEqual([3, 4]);
    expect(await ids('?perPage=2&page=3')).toEqual([5]);
    expect(await ids(`?page=${'9'.repeat(40)}`)).toEqual([]);
    expect((await list('?perPage=5000')).at('data.perPage')).toBe(100);
  });

  test('lags behind the writes when that is switched on', async () => {
    caller.sandbox.control.setSwitches({ read_lag_ms: 5_000 });
    await mint('1');
    expect((await list()).at('data.total')).toBe(0);
    expect((await read('1')).at('status')).toBe(404);
    caller.clock.advance(5_000);
    expect(await tokenAt('1', 'status')).toBe(0);
    caller.clock.advance(10_000);
    expect(await tokenAt('1', 'status')).toBe(1);
  });

  test('shows time in the zone of the switch', async () => {
    caller.sandbox.control.setSwitches({ time_zone: 'Asia/Seoul' });
    caller.sandbox.control.moveClock({ now: '2026-07-01T20:00:00Z' });
    client = await caller.clientToken();
    await mint('1');
    expect(await tokenAt('1', 'token_created_at')).toBe('2026-07-02 05:00:00');
  });
});
