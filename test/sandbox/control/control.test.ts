/** The control surface over HTTP: what it changes, shows and refuses. */
import { describe, expect, it } from 'vitest';
import { UNUSED_ADDRESS, useCaller } from '../client.ts';

const caller = useCaller();

const post = (path: string, json: string | object) =>
  caller.send('POST', `/_sandbox${path}`, { json });
const get = (path: string) => caller.send('GET', `/_sandbox${path}`);

describe('The control surface changes', () => {
  it('a wallet: its balance of any size, a difference, its status', async () => {
    const huge = '9'.repeat(60);
    expect((await post(`/wallets/${UNUSED_ADDRESS}`, { amt_token: huge })).body).toEqual({
      addr: UNUSED_ADDRESS,
      balance: huge,
      status: 1,
    });
    await post(`/wallets/${UNUSED_ADDRESS}`, { delta: `-${huge}` });
    const reply = await post(`/wallets/${UNUSED_ADDRESS}`, { delta: 5, status: 2 });
    expect(reply.body).toEqual({ addr: UNUSED_ADDRESS, balance: '5', status: 2 });
  });

  it('a token: a new owner gets a new hash, a lock or status does not', async () => {
    const made = await post('/tokens/1/5', { owner: UNUSED_ADDRESS });
    expect(made.body).toMatchObject({ owner: UNUSED_ADDRESS, status: 1, locked: false });
    const locked = await post('/tokens/1/5', { locked: true, status: 3 });
    expect(locked.body).toMatchObject({ locked: true, status: 3 });
    expect(locked.at('last_tx_hash')).toBe(made.at('last_tx_hash'));
    const moved = await post('/tokens/1/5', { owner: caller.addressOf(1), extra: '{}' });
    expect(moved.at('last_tx_hash')).not.toBe(made.at('last_tx_hash'));
    expect((await caller.send('DELETE', '/_sandbox/tokens/1/5')).status).toBe(200);
    expect(caller.sandbox.world.tokens.get('1/5')).toBeUndefined();
  });

  it('members, redirect URIs, switches, the clock', async () => {
    expect((await post('/members', { nickname: 'Zoe' })).at('member_no')).toBe('9');
    const uri = 'http://127.0.0.1:1/back';
    expect((await post('/redirect-uris', { uri })).at('redirect_uris')).toContain(uri);
    const switches = { fee: 'deducted', transfer_max: '9'.repeat(30) };
    expect((await post('/switches', switches)).body).toMatchObject(switches);
    const before = Number((await get('/state')).at('now'));
    await post('/clock', { advance_ms: 5_000 });
    expect((await get('/state')).at('now')).toBe(before + 5_000);
    const { status } = await post('/clock', { now: '2020-01-01T00:00:00Z' });
    expect(status).toBe(400);
  });

  it('maintenance, and which chain writes fail', async () => {
    const on = await post('/maintenance', { state: 'on', duration_ms: 1_000 });
    expect(on.at('maintenance.message')).toBe(null);
    expect((await post('/maintenance', { state: 'off' })).body).toEqual({ maintenance: null });
    expect((await post('/tokens/fail-next', {})).body).toEqual({ fail_next: 1 });
  });
});

it('The control surface shows requests without secrets, and applied writes', async () => {
  const { client: as } = caller;
  const json = { toAddr: caller.addressOf(1), amount: 5, reasonType: 'x' };
  await caller.send('POST', '/v1/app/token/operations/1/give', { as, json });
  await caller.send('POST', '/v1/app/token/operations/1/give', { as, json: '{' });
  const log = await get('/requests');
  expect(log.at('data')).toMatchObject([
    { n: 1, endpoint: 'oauth_token', body: '', applied: false, status: 200 },
    { n: 2, endpoint: 'give', method: 'POST', applied: true, status: 200 },
    { n: 3, endpoint: 'give', body: '{', applied: false, status: 500 },
  ]);
  expect(log.text).not.toContain(as);
  expect((await get('/requests?after=2')).at('data')).toMatchObject([{ n: 3 }]);
  expect((await get('/requests?limit=1')).at('data')).toMatchObject([{ n: 3 }]);
  expect((await get('/requests?after=0&limit=1')).at('data')).toMatchObject([{ n: 1 }]);
  expect((await get('/requests?limit=0')).at('data')).toEqual([]);
  expect((await get('/effects')).at('data')).toMatchObject([
    { n: '1', kind: 'give', amount: '5', tx_log_no: '1', to_addr: caller.addressOf(1) },
  ]);
});

describe('The control surface refuses', () => {
  it.each([
    ['/wallets/0x1', {}, 400, 'invalid_request'],
    ['/tokens/9/1', {}, 404, 'not_found'],
    ['/tokens/1/x', {}, 400, 'invalid_request'],
    ['/faults', { kind: 'nonsense' }, 400, 'invalid_request'],
    ['/faults', { kind: 'error', code: '123' }, 400, 'invalid_request'],
    ['/faults', { kind: 'dropped', endpoint: 'gvie' }, 400, 'invalid_request'],
    ['/clock', { now: '+012026-01-01T00:00:00Z' }, 400, 'invalid_request'],
    ['/clock', { now: '9999-12-31T00:00:00Z' }, 400, 'invalid_request'],
    ['/switches', { fees: 'on_top' }, 400, 'invalid_request'],
    ['/switches', { time_zone: 'Mars' }, 400, 'invalid_request'],
    ['/maintenance', { state: 'maybe' }, 400, 'invalid_request'],
    ['/nothing', {}, 404, 'not_found'],
    ['/state', {}, 405, 'method_not_allowed'],
    ['/reset', '{', 400, 'malformed_json'],
  ])('%s %j: %i %s', async (path, json, status, code) => {
    const reply = await post(path, json);
    expect([reply.status, reply.at('code')]).toEqual([status, code]);
  });

  it('a body that a page of another origin could send, and grants no preflight', async () => {
    const headers = { 'content-type': 'text/plain' };
    const reply = await caller.send('POST', '/_sandbox/reset', { headers });
    expect([reply.status, reply.at('code')]).toEqual([415, 'unsupported_media_type']);
    const preflight = { origin: 'http://evil', 'access-control-request-method': 'POST' };
    const options = await caller.send('OPTIONS', '/_sandbox/reset', { headers: preflight });
    expect([...options.headers.keys()].join()).not.toContain('access-control');
  });
});

it('A reset creates the world of its seed, with the switches of the start', async () => {
  await post('/switches', { fee: 'deducted' });
  const one = caller.addressOf(1);
  await post('/reset', { seed: 2 });
  const two = caller.addressOf(1);
  expect(caller.sandbox.world.switches().fee).toBe('on_top');
  await post('/reset', { seed: 1 });
  expect([caller.addressOf(1) === one, two === one]).toEqual([true, false]);
});

it('With background traffic, wallets and tokens change by the clock without a request', async () => {
  caller.sandbox.control.setSwitches({ background_traffic: true, background_interval_ms: 1_000 });
  const balances = () => caller.sandbox.control.state().wallets.map(({ balance }) => balance);
  const before = balances();
  expect(balances()).toEqual(before);
  caller.clock.advance(60_000);
  const after = balances();
  expect(after).not.toEqual(before);
  caller.sandbox.control.setSwitches({ background_traffic: false });
  caller.clock.advance(60_000);
  expect(balances()).toEqual(after);
  const tokens = () => caller.sandbox.control.state().tokens;
  const seen = new Set(tokens().map(({ token_id, locked }) => `${token_id} ${locked}`));
  caller.sandbox.control.setSwitches({ background_traffic: true });
  for (let i = 0; i < 60; i += 1) {
    caller.clock.advance(5_000);
    for (const { token_id, locked } of tokens()) seen.add(`${token_id} ${locked}`);
  }
  // Tokens were locked and unlocked, and some changed their owner.
  expect(seen.size).toBeGreaterThan(5);
  const kinds = caller.sandbox.control.effects().map(({ kind }) => kind);
  expect(kinds).toContain('transfer_from');
  // A pause of a year is simulated in bounded time.
  caller.clock.advance(365 * 86_400_000);
  expect(balances()).not.toEqual(after);
});
