/** NFT rules that the contract suite does not check: the chain by the clock, locks, lag, zones. */
import { describe, expect, it } from 'vitest';
import { UNUSED_ADDRESS, useCaller } from '../client.ts';

const caller = useCaller();
const NFT = '/v1/chain/erc721/1';

async function mint(tokenId: string) {
  const form = { toAddr: caller.addressOf(1), tokenId, tokenURI: 'ipfs://x' };
  return caller.send('POST', `${NFT}/mint`, { as: caller.client, form });
}
async function minted(tokenId: string) {
  await mint(tokenId);
  caller.clock.advance(10_000);
}
const get = (path: string) => caller.send('GET', `${NFT}/tokens${path}`, { as: caller.client });
const token = async (tokenId: string) => (await get(`/${tokenId}`)).at('data');
const statusOf = async (tokenId: string) => (await get(`/${tokenId}`)).at('data.status');
const userToken = async (memberNo: number) =>
  String((await caller.login(memberNo)).at('access_token'));

function write(kind: 'burn' | 'set' | 'move', as: string, change: object = {}) {
  const form = { tokenId: '1', ...change };
  if (kind === 'burn') return caller.send('POST', `${NFT}/burn`, { as, form });
  if (kind === 'set') {
    const fields = { extraData: '{"hp":1}', ...change };
    return caller.send('PUT', `${NFT}/tokens/1/set-extra-data`, { as, form: fields });
  }
  const fields = { fromAddr: caller.addressOf(1), toAddr: caller.addressOf(2), ...form };
  return caller.send('POST', `${NFT}/transfer-from`, { as, form: fields });
}

describe('A mint', () => {
  it('is Pending, then in Progress, then Complete, by the clock', async () => {
    const reply = await mint('7');
    expect(await statusOf('7')).toBe(0);
    caller.clock.advance(3_000);
    expect(await statusOf('7')).toBe(2);
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

  it('that fails on the chain leaves its token id free', async () => {
    caller.sandbox.control.failNext(1);
    await minted('7');
    expect(await statusOf('7')).toBe(3);
    await minted('7');
    expect(await statusOf('7')).toBe(1);
  });

  it('that is sequential takes the first free token id', async () => {
    await mint('1');
    await mint('3');
    const form = { toAddr: UNUSED_ADDRESS, tokenURI: 'u' };
    const sequential = async () => {
      const options = { as: caller.client, form };
      return (await caller.send('POST', `${NFT}/mint-sequential`, options)).at('data.tokenId');
    };
    expect([await sequential(), await sequential()]).toEqual([2, 4]);
  });
});

describe('A refusal of invalid input', () => {
  const errorsOf = (reply: { text: string }) => {
    const { status, error } = JSON.parse(reply.text);
    expect(status).toBe(400);
    return error.map((each: { field: string; validation: string; message: string }) => {
      expect(each.message).toBe(`${each.validation} validation failed on ${each.field}`);
      return `${each.field} ${each.validation}`;
    });
  };

  it('names every wrong field of a form with its rule', async () => {
    const form = {
      toAddr: '0x1',
      tokenId: '-1',
      tokenURI: '',
      metaData: '{'.repeat(1_001),
      extraData: JSON.stringify('x'.repeat(499)),
    };
    const reply = await caller.send('POST', `${NFT}/mint`, { as: caller.client, form });
    expect(errorsOf(reply)).toEqual([
      'toAddr length',
      'tokenId integer',
      'tokenURI required',
      'metaData json',
      'metaData max',
      'extraData max',
    ]);
  });

  it('names every wrong query parameter of a list with its rule', async () => {
    const query = '?ownerAddr=short&creatorAddr=short&isLocked=maybe&valid=2&page=0&perPage=x';
    expect(errorsOf(await get(query))).toEqual([
      'ownerAddr length',
      'creatorAddr length',
      'isLocked boolean',
      'valid boolean',
      'page above',
      'perPage integer',
    ]);
  });
});

describe('A write to a token', () => {
  it('shows its effect when the chain completes it', async () => {
    await minted('1');
    const ada = await userToken(1);
    const hash = (await write('set', ada)).at('data.tx_hash');
    expect(await token('1')).toMatchObject({ token_extradata: '' });
    caller.clock.advance(10_000);
    expect(await token('1')).toMatchObject({ token_extradata: '{"hp":1}', last_tx_hash: hash });
    await write('move', ada);
    expect(await token('1')).toMatchObject({ token_owner: caller.addressOf(1) });
    caller.clock.advance(10_000);
    expect(await token('1')).toMatchObject({ token_owner: caller.addressOf(2) });
    await write('burn', caller.client);
    expect((await get('/1')).at('status')).toBe(200);
    caller.clock.advance(10_000);
    expect((await get('/1')).at('status')).toBe(404);
  });

  it('that fails on the chain changes only status and last hash', async () => {
    await minted('1');
    caller.sandbox.control.failNext(1);
    const move = await write('move', await userToken(1));
    caller.clock.advance(10_000);
    expect(await token('1')).toMatchObject({
      token_owner: caller.addressOf(1),
      status: 3,
      last_tx_hash: move.at('data.tx_hash'),
    });
  });

  it.each(['burn', 'set', 'move'] as const)(
    'is refused while the token is processed or locked on a market: %s',
    async (kind) => {
      await mint('1');
      const as = kind === 'burn' ? caller.client : await userToken(1);
      expect((await write(kind, as)).at('error.0.validation')).toBe('processing');
      caller.clock.advance(10_000);
      caller.sandbox.control.setToken(1n, 1n, { locked: true });
      expect((await write(kind, as)).at('error.0.validation')).toBe('locked');
      caller.sandbox.control.setToken(1n, 1n, { locked: false });
      expect((await write(kind, as)).at('status')).toBe(200);
    },
  );

  it('is refused for a user who does not own the token, and for a wrong fromAddr', async () => {
    await minted('1');
    expect((await write('set', await userToken(2))).at('error.0.validation')).toBe('owner');
    const from = { fromAddr: caller.addressOf(2) };
    const reply = await write('move', await userToken(1), from);
    expect(reply.at('error.0')).toMatchObject({ field: 'fromAddr' });
  });

  it.each([
    [2, 401, 'of another app'],
    [9, 404, 'that does not exist'],
  ])('is refused in contract %i with %i: a contract %s', async (contract, status) => {
    const path = `/v1/chain/erc721/${contract}/burn`;
    const form = { tokenId: '1' };
    expect((await caller.send('POST', path, { as: caller.client, form })).at('status')).toBe(
      status,
    );
  });
});

describe('A read', () => {
  it('of a page far behind the last one is empty', async () => {
    await mint('1');
    expect((await get(`?page=${'9'.repeat(40)}`)).at('data.data')).toEqual([]);
  });

  it('lags behind the writes by read_lag_ms', async () => {
    caller.sandbox.control.setSwitches({ read_lag_ms: 5_000 });
    await mint('1');
    expect((await get('')).at('data.total')).toBe(0);
    expect((await get('/1')).at('status')).toBe(404);
    caller.clock.advance(5_000);
    expect(await statusOf('1')).toBe(0);
    caller.clock.advance(10_000);
    expect(await statusOf('1')).toBe(1);
  });

  it('shows timestamps in the time zone of the switch', async () => {
    caller.sandbox.control.setSwitches({ time_zone: 'Asia/Seoul' });
    caller.sandbox.control.moveClock({ now: '2026-07-01T20:00:00Z' });
    caller.client = await caller.clientToken();
    await mint('1');
    expect(await token('1')).toMatchObject({ token_created_at: '2026-07-02 05:00:00' });
  });
});
