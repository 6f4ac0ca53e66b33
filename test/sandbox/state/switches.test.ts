/** Each switch changes the behaviour that it names. */
import { beforeEach, expect, it } from 'vitest';
import type { Switches } from '../../../src/sandbox/state/switches.ts';
import { BASIC, type Reply, useCaller } from '../client.ts';

const caller = useCaller();

beforeEach(() => {
  const { control } = caller.sandbox;
  for (const id of [2n, 1n, 3n]) {
    control.setToken(1n, id, { owner: caller.addressOf(1) });
    caller.clock.advance(1_000);
  }
  control.setToken(1n, 2n, { owner: caller.addressOf(2) });
});

const NFT = '/v1/chain/erc721/1';
const get = (path: string) => caller.send('GET', path, { as: caller.client });
const burn = () =>
  caller.send('POST', `${NFT}/burn`, { as: caller.client, form: { tokenId: '1' } });
const token = () => {
  const form = { grant_type: 'client_credentials' };
  return caller.send('POST', '/v1/oauth/token', { authorization: BASIC, form });
};
const give = (memberNo: number) => {
  const json = { toAddr: caller.addressOf(memberNo), amount: 1, reasonType: 'x' };
  return caller.send('POST', '/v1/app/token/operations/1/give', { as: caller.client, json });
};
const check = (authorization = '') =>
  caller.send('GET', `/v1/oauth/check_token?token=${caller.client}`, { authorization });
const expired = () => {
  caller.clock.set(caller.clock.now() + 86_400_000);
  return check(BASIC);
};
const ids = (reply: Reply) => [0, 1, 2].map((i) => reply.at(`data.data.${i}.token_id`));
const order = async () => ids(await get(`${NFT}/tokens`));
const at = async (reply: Promise<Reply>, path: string) => (await reply).at(path);
const httpStatus = async (reply: Promise<Reply>) => (await reply).status;

const CASES: [
  Partial<Switches>,
  before: unknown,
  after: unknown,
  request: () => Promise<unknown>,
][] = [
  [{ absent_token: 422 }, 404, 422, () => at(get(`${NFT}/tokens/9`), 'status')],
  [{ burn: 'own' }, 200, 422, () => at(burn(), 'status')],
  [{ list_order: 'token_id_desc' }, [1, 2, 3], [3, 2, 1], order],
  [{ list_order: 'created' }, [1, 2, 3], [2, 1, 3], order],
  [{ list_order: 'created_desc' }, [1, 2, 3], [3, 1, 2], order],
  [{ list_order: 'owned_desc' }, [1, 2, 3], [2, 3, 1], order],
  [{ per_page_default: 2 }, 20, 2, () => at(get(`${NFT}/tokens`), 'data.perPage')],
  [{ per_page_max: 2 }, 100, 2, () => at(get(`${NFT}/tokens?perPage=5000`), 'data.perPage')],
  [{ expires_in_unit: 'ms' }, 86_400, 86_400_000, () => at(token(), 'expires_in')],
  [{ expires_in_unit: 'min' }, 86_400, 1_440, () => at(token(), 'expires_in')],
  [{ expires_in_unit: 'h' }, 86_400, 24, () => at(token(), 'expires_in')],
  [{ token_envelope: true }, undefined, 101, () => at(token(), 'data.app_no')],
  [{ check_needs_basic: false }, 401, 200, () => httpStatus(check())],
  [
    { check_expired: 'invalid_token' },
    undefined,
    'invalid_token',
    () => at(expired(), 'error.detail'),
  ],
  [{ user_request: 'allow' }, '406', 200, () => at(give(7), 'status')],
  [{ error_http: 'ok' }, 406, 200, () => httpStatus(give(7))],
  [{ reason_types: ['prize'] }, 200, '406', () => at(give(1), 'status')],
  [{ scope: 'wallet nft' }, 'default', 'wallet nft', () => at(caller.login(1), 'scope')],
];

it.each(CASES)(
  'The switch %j changes what the service answers',
  async (switches, before, after, request) => {
    const { control, world } = caller.sandbox;
    const { tokens } = control.state();
    expect(await request()).toEqual(before);
    // The first request may have changed a token.
    for (const each of tokens) world.tokens.put(`${each.contract_id}/${each.token_id}`, each);
    control.setSwitches(switches);
    expect(await request()).toEqual(after);
  },
);

it('The switch fail_share makes that share of the chain writes fail', async () => {
  caller.sandbox.control.setSwitches({ fail_share: 0.5 });
  const form = { toAddr: caller.addressOf(1), tokenURI: 'u' };
  for (let i = 0; i < 40; i += 1) {
    await caller.send('POST', `${NFT}/mint-sequential`, { as: caller.client, form });
  }
  caller.clock.advance(10_000);
  const failed = caller.sandbox.control.state().tokens.filter(({ status }) => status === 3).length;
  expect(failed).toBeGreaterThan(8);
  expect(failed).toBeLessThan(32);
});
