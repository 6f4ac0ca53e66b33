/** Same seed, same requests, same clock: the same bytes, hashes and headers included. */
import { afterAll, expect, test } from 'vitest';
import { type Caller, REDIRECT, startCaller, stopAll } from './client.ts';

afterAll(stopAll);

/** A day in the life of a sandbox: every answer, headers included. */
async function day(caller: Caller): Promise<string[]> {
  const seen: string[] = [];
  const send: Caller['send'] = async (...args) => {
    const reply = await caller.send(...args);
    seen.push(`${reply.status} ${JSON.stringify([...reply.headers])} ${reply.text}`);
    return reply;
  };
  const as = await caller.clientToken();
  const user = String((await caller.login(1)).at('access_token'));
  seen.push(as, user);
  const [ada, ben] = [caller.addressOf(1), caller.addressOf(2)];
  const form = { toAddr: ada, tokenURI: 'u' };
  for (let i = 0; i < 8; i += 1) {
    await send('POST', '/v1/chain/erc721/1/mint-sequential', { as, form });
    caller.clock.advance(1_700);
    await send('GET', '/v1/chain/erc721/1/tokens', { as });
  }
  const move = { fromAddr: ada, toAddr: ben, tokenId: '1' };
  await send('POST', '/v1/chain/erc721/1/transfer-from', { as: user, form: move });
  const json = { fromAddr: ada, toAddr: ben, amount: 7, feeAmount: 1, reasonType: 'x' };
  await send('POST', '/v1/app/token/accounts/transfer', { as, json });
  await send('POST', '/v1/app/token/accounts/transfer', { as, json: { ...json, amount: 1e9 } });
  caller.clock.advance(3_600_000);
  await send('GET', '/v1/chain/erc721/1/tokens', { as });
  await send('GET', '/v1/app/token/account', { as: user });
  await send('GET', '/nothing', { as });
  const query = `response_type=code&client_id=app&redirect_uri=${REDIRECT}`;
  await send('GET', `/v1/oauth/authorize?${query}`);
  return seen;
}

const LIVELY = {
  switches: { settle_sigma: 1, fail_share: 0.4 },
  settleMs: 4_000,
  backgroundTraffic: true,
};

test('Two worlds of one seed answer the same bytes', async () => {
  const one = await day(await startCaller(LIVELY));
  const two = await day(await startCaller(LIVELY));
  expect(two).toEqual(one);
  expect(new Set(one.map((text) => text.slice(0, 3)))).toContain('406');
});

test('A reset world answers the same bytes again; another seed answers others', async () => {
  const caller = await startCaller(LIVELY);
  const one = await day(caller);
  caller.clock.set(Date.UTC(2026, 0, 1));
  caller.sandbox.control.reset({});
  expect(await day(caller)).toEqual(one);
  expect(await day(await startCaller({ ...LIVELY, seed: 2 }))).not.toEqual(one);
});
