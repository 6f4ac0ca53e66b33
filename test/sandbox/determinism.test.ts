/** The same seed, requests and clock give the same bytes, in another world and after a reset. */
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { BASIC, type Caller, REDIRECT, startCaller, stopAll } from './client.ts';

afterAll(stopAll);

type Step = (caller: Caller, tokens: Tokens) => Promise<string>;
interface Tokens {
  client: string;
  user: string;
}

const bytesOf = async (...[caller, ...sent]: [Caller, ...Parameters<Caller['send']>]) => {
  try {
    const { status, headers, text } = await caller.send(...sent);
    return `${status} ${JSON.stringify([...headers])} ${text}`;
  } catch {
    return 'cut';
  }
};

const member = fc.integer({ min: 1, max: 8 });
const tokenId = fc.integer({ min: 1, max: 5 }).map(String);
const amount = fc.oneof(fc.integer({ min: -1, max: 600 }), fc.constant(0.5));
const NFT = '/v1/chain/erc721/1';
const PAY = '/v1/app/token';

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(member, tokenId).map(
    ([no, id]): Step =>
      (caller, { client: as }) => {
        const form = { toAddr: caller.addressOf(no), tokenId: id, tokenURI: 'u', extraData: '{}' };
        return bytesOf(caller, 'POST', `${NFT}/mint`, { as, form });
      },
  ),
  member.map(
    (no): Step =>
      (caller, { client: as }) => {
        const form = { toAddr: caller.addressOf(no), tokenURI: 'u' };
        return bytesOf(caller, 'POST', `${NFT}/mint-sequential`, { as, form });
      },
  ),
  fc.tuple(member, tokenId).map(
    ([no, id]): Step =>
      (caller, { user: as }) => {
        const form = { fromAddr: caller.addressOf(1), toAddr: caller.addressOf(no), tokenId: id };
        return bytesOf(caller, 'POST', `${NFT}/transfer-from`, { as, form });
      },
  ),
  tokenId.map(
    (id): Step =>
      (caller, { client: as }) =>
        bytesOf(caller, 'POST', `${NFT}/burn`, { as, form: { tokenId: id } }),
  ),
  fc.tuple(member, member, amount, amount).map(([from, to, some, fee]): Step => {
    return (caller, { client: as }) => {
      const json = {
        fromAddr: caller.addressOf(from),
        toAddr: caller.addressOf(to),
        amount: some,
        feeAmount: fee,
        reasonType: 'x',
      };
      return bytesOf(caller, 'POST', `${PAY}/accounts/transfer`, { as, json });
    };
  }),
  fc.tuple(member, amount).map(
    ([no, some]): Step =>
      (caller, { client: as }) => {
        const json = { toAddr: caller.addressOf(no), amount: some, reasonType: 'x' };
        return bytesOf(caller, 'POST', `${PAY}/operations/1/give`, { as, json });
      },
  ),
  fc.constantFrom('/tokens', '/tokens?perPage=2&page=2', '/tokens?valid=true', '/tokens/1').map(
    (path): Step =>
      (caller, { client: as }) =>
        bytesOf(caller, 'GET', NFT + path, { as }),
  ),
  fc.constant<Step>((caller, { user: as }) => bytesOf(caller, 'GET', `${PAY}/account`, { as })),
  fc.constant<Step>((caller) => {
    const query = `response_type=code&client_id=app&redirect_uri=${REDIRECT}`;
    return bytesOf(caller, 'GET', `/v1/oauth/authorize?${query}`);
  }),
  fc.constant<Step>((caller) => {
    const form = { grant_type: 'client_credentials' };
    return bytesOf(caller, 'POST', '/v1/oauth/token', { authorization: BASIC, form });
  }),
  fc.constantFrom('lost_answer', 'dropped', 'late', 'truncated', 'shifting_pages', 'throttle').map(
    (kind): Step =>
      (caller) => {
        return bytesOf(caller, 'POST', '/_sandbox/faults', { json: { kind } });
      },
  ),
  fc.integer({ min: 1, max: 40_000 }).map(
    (ms): Step =>
      async (caller) => {
        caller.clock.advance(ms);
        return '';
      },
  ),
);

it('Two worlds of one seed, and a reset world, answer the same bytes to any requests', async () => {
  const OPTIONS = { settleMs: 4_000, backgroundTraffic: true, switches: { fail_share: 0.3 } };
  const [one, two] = [await startCaller(OPTIONS), await startCaller(OPTIONS)];
  const seed = fc.integer({ min: 0, max: 2 ** 32 - 1 });
  await fc.assert(
    fc.asyncProperty(seed, fc.array(step, { minLength: 5, maxLength: 40 }), async (n, steps) => {
      const [first, other] = await Promise.all([one, two].map((each) => answers(each, n, steps)));
      expect(other).toEqual(first);
      expect(await answers(one, n, steps)).toEqual(first);
    }),
    { numRuns: 20 },
  );
});

async function answers(caller: Caller, seed: number, steps: readonly Step[]): Promise<string[]> {
  caller.clock.set(Date.UTC(2026, 0, 1));
  caller.sandbox.control.reset({ seed });
  const client = await caller.clientToken();
  const user = String((await caller.login(1)).at('access_token'));
  const received = [client, user];
  for (const each of steps) received.push(await each(caller, { client, user }));
  return received;
}
