/** What the interface does not show: each switch changes what it says, and only that. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Switches, switchesSchema } from '../../src/sandbox/state/switches.ts';
import { BASIC, type Caller, type Reply, startCaller, stopAll } from './client.ts';

let caller: Caller;
let client: string;

beforeAll(async () => {
  caller = await startCaller();
});
afterAll(stopAll);
beforeEach(async () => {
  caller.clock.set(Date.UTC(2026, 0, 1));
  caller.sandbox.control.reset({});
  client = await caller.clientToken();
  const { control } = caller.sandbox;
  for (const id of [2n, 1n, 3n]) {
    control.setToken(1n, id, { owner: caller.addressOf(1) });
    caller.clock.advance(1_000);
  }
  control.setToken(1n, 2n, { owner: caller.addressOf(2) });
});

const NFT = '/v1/chain/erc721/1';
const get = (path: string) => caller.send('GET', path, { as: client });
const burn = () => caller.send('POST', `${NFT}/burn`, { as: client, form: { tokenId: '1' } });
const token = () => {
  const form = { grant_type: 'client_credentials' };
  return caller.send('POST', '/v1/oauth/token', { authorization: BASIC, form });
};
const give = (toAddr: string, reasonType = 'x') => {
  const json = { toAddr, amount: 1, reasonType };
  return caller.send('POST', '/v1/app/token/operations/1/give', { as: client, json });
};
const ids = (reply: Reply) => [0, 1, 2].map((i) => reply.at(`data.data.${i}.token_id`));
const order = async () => ids(await get(`${NFT}/tokens`));
const at = async (reply: Promise<Reply>, way: string) => (await reply).at(way);

const CASES: [Partial<Switches>, before: unknown, after: unknown, ask: () => Promise<unknown>][] = [
  [{ absent_token: 422 }, 404, 422, () => at(get(`${NFT}/tokens/9`), 'status')],
  [{ burn: 'own' }, 200, 422, () => at(burn(), 'status')],
  [{ list_order: 'token_id_desc' }, [1, 2, 3], [3, 2, 1], order],
  [{ list_order: 'created' }, [1, 2, 3], [2, 1, 3], order],
  [{ list_order: 'created_desc' }, [1, 2, 3], [3, 1, 2], order],
  [{ list_order: 'owned_desc' }, [1, 2, 3], [2, 3, 1], order],
  [{ per_page_default: 2 }, 20, 2, () => at(get(`${NFT}/tokens`), 'data.perPage')],
  [{ per_page_max: 2 }, 50, 2, () => at(get(`${NFT}/tokens?perPage=50`), 'data.perPage')],
  [{ expires_in_unit: 'ms' }, 86_400, 86_400_000, () => at(token(), 'expires_in')],
  [{ expires_in_unit: 'min' }, 86_400, 1_440, () => at(token(), 'expires_in')],
  [{ expires_in_unit: 'h' }, 86_400, 24, () => at(token(), 'expires_in')],
  [{ token_envelope: true }, undefined, 101, () => at(token(), 'data.app_no')],
  [
    { check_needs_basic: false },
    401,
    200,
    async () => (await caller.send('GET', `/v1/oauth/check_token?token=${client}`)).status,
  ],
  [{ user_request: 'allow' }, '406', 200, () => at(give(caller.addressOf(7)), 'status')],
  [{ reason_types: ['prize'] }, 200, '406', () => at(give(caller.addressOf(1)), 'status')],
  [{ scope: 'wallet nft' }, 'default', 'wallet nft', () => at(caller.login(1), 'scope')],
];

test.each(CASES)('%j', async (switches, before, after, ask) => {
  const { control } = caller.sandbox;
  // The question itself may change the world, so it is asked in two equal ones.
  const tokens = control.state().tokens;
  expect(await ask()).toEqual(before);
  for (const each of tokens) {
    caller.sandbox.world.tokens.put(`${each.contract_id}/${each.token_id}`, each);
  }
  control.setSwitches(switches);
  expect(await ask()).toEqual(after);
});

test('A share of the chain fails when that is switched on', async () => {
  caller.sandbox.control.setSwitches({ fail_share: 0.5 });
  const form = { toAddr: caller.addressOf(1), tokenURI: 'u' };
  for (let i = 0; i < 40; i += 1) {
    await caller.send('POST', `${NFT}/mint-sequential`, { as: client, form });
  }
  caller.clock.advance(10_000);
  const { tokens } = caller.sandbox.control.state();
  const statuses = tokens
    .filter(({ contract_id }) => contract_id === 1n)
    .map((each) => each.status);
  const failed = statuses.filter((status) => status === 3).length;
  expect(failed).toBeGreaterThan(8);
  expect(failed).toBeLessThan(32);
});

test('The defaults are whole, and every unknown name is refused', () => {
  expect(switchesSchema.parse({})).toMatchObject({ fee: 'on_top', time_zone: 'UTC' });
  expect(switchesSchema.safeParse({ fees: 'on_top' }).success).toBe(false);
});
