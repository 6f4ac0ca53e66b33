/** Section 3: the states of tokens and wallets, and the transitions that the interface shows. */
import { until } from '../../../harness/until.ts';
import {
  checkToken,
  dataOf,
  listTokens,
  mint,
  obtain,
  ownAccount,
  readToken,
} from '../client/endpoints.ts';
import { logIn } from '../client/login.ts';
import { contract } from '../client/parameters.ts';
import type { Reply } from '../client/reply.ts';
import type { Service } from '../client/service.ts';
import { completeToken, newTokenId, TOKEN_URI, wallet } from '../client/test-data.ts';
import { ensure, equal, type Statement, statement } from '../statement.ts';

export const DAY_MS = 86_400_000;
/** Distance from the exact expiry of a token. */
const MARGIN_MS = 60_000;

const TOKEN_STATES = [
  [0, 'Pending'],
  [1, 'Complete'],
  [2, 'Progress'],
  [3, 'Fail'],
] as const;

async function tokenWith(service: Service, change: object): Promise<Reply> {
  const id = await completeToken(service);
  await service.control.setToken(await contract(service), id, change);
  return readToken(service, id);
}

const STATES: Statement[] = [
  ...TOKEN_STATES.map(([status, name]) =>
    statement('3', `NFT token status has the state ${name} (${status})`, async (service) => {
      const record = dataOf(await tokenWith(service, { status }));
      equal('status', record.integer('status'), BigInt(status));
    }),
  ),
  statement('3', 'A mint that the chain carries out becomes Complete (1)', async (service) => {
    const record = dataOf(await readToken(service, await completeToken(service)));
    equal('status', record.integer('status'), 1n);
  }),
  statement('3', 'A mint that is being processed is Pending (0) or Progress (2)', (service) =>
    service.control.withSwitches({ settle_median_ms: 600_000 }, async () => {
      const id = newTokenId();
      const toAddr = await wallet(service);
      dataOf(await mint(service, { toAddr, tokenId: String(id), tokenURI: TOKEN_URI }));
      const status = dataOf(await readToken(service, id)).integer('status');
      ensure([0n, 2n].includes(status), `status should be 0 or 2 and is ${status}`);
    }),
  ),
  statement('3', 'A mint that the chain does not carry out becomes Fail (3)', async (service) => {
    await service.control.failNext();
    const id = newTokenId();
    const toAddr = await wallet(service);
    dataOf(await mint(service, { toAddr, tokenId: String(id), tokenURI: TOKEN_URI }));
    const isFailed = async () => {
      const record = dataOf(await readToken(service, id));
      return record.integer('status') === 3n ? true : undefined;
    };
    const failed = await until(isFailed, { deadlineMs: 8_000 });
    ensure(failed, `token ${id} should reach the state Fail (3)`);
  }),
  statement('3', 'NFT token lock has the state Locked (1)', async (service) => {
    const record = dataOf(await tokenWith(service, { locked: true }));
    equal('token_is_locked', record.integer('token_is_locked'), 1n);
  }),
  statement('3', 'NFT token lock has the state Unlocked (0)', async (service) => {
    const record = dataOf(await readToken(service, await completeToken(service)));
    equal('token_is_locked', record.integer('token_is_locked'), 0n);
  }),
];

const WALLET: Statement[] = [
  statement(
    '3',
    'GET account with the token of a user without a wallet creates it, then returns its record',
    async (service) => {
      const member = await service.control.addMember('Newcomer');
      const { access } = await logIn(service, member);
      const record = dataOf(await ownAccount(service, { bearer: access }));
      record.text('token_addr', 42);
      equal('amt_token of a new wallet', record.integer('amt_token'), 0n);
    },
  ),
  statement('3', 'A wallet that was created stays the same at the next read', async (service) => {
    const member = await service.control.addMember('Returner');
    const as = { bearer: (await logIn(service, member)).access };
    const first = dataOf(await ownAccount(service, as)).text('token_addr', 42);
    equal('token_addr', dataOf(await ownAccount(service, as)).text('token_addr'), first);
  }),
];

async function isActive(service: Service, token: string): Promise<boolean> {
  const reply = await checkToken(service, token);
  if (reply.status === 200) return reply.record.flag('active');
  equal(`the HTTP code of ${reply.summary}`, reply.status, 400);
  equal('error.detail', reply.top.object('error').text('detail'), 'invalid_token');
  return false;
}

async function newClientToken(service: Service): Promise<string> {
  const reply = await obtain(service, { grant_type: 'client_credentials' });
  return reply.record.text('access_token');
}

/** Issues tokens, moves the clock by `ms` and then runs `work` with them. */
async function withAgedTokens(
  service: Service,
  work: (client: string, user: string, refresh: string) => Promise<void>,
  ms: number,
) {
  // Without a control surface this throws before any token is issued.
  const { control } = service;
  await control.state();
  const client = await newClientToken(service);
  const user = await logIn(service);
  await service.passTime(ms);
  await work(client, user.access, user.refresh ?? '');
}

const LIFE: Statement[] = [
  statement('5', 'An access token is valid until 24 hours after it is issued', (service) =>
    withAgedTokens(
      service,
      async (client, user) => {
        equal('a client token before 24 hours is active', await isActive(service, client), true);
        equal('a user token before 24 hours is active', await isActive(service, user), true);
        dataOf(await listTokens(service, {}, { bearer: client }));
        dataOf(await ownAccount(service, { bearer: user }));
      },
      DAY_MS - MARGIN_MS,
    ),
  ),
  statement('5', 'An access token expires 24 hours after it is issued', (service) =>
    withAgedTokens(
      service,
      async (client, user) => {
        const read = await listTokens(service, {}, { bearer: client });
        equal(`the body status of ${read.summary}`, read.top.integer('status'), 401n);
        const own = await ownAccount(service, { bearer: user });
        equal('the code', own.top.object('error').text('code'), '401');
      },
      DAY_MS,
    ),
  ),
  statement('8', 'The access token lifetime is 24 hours', async (service) => {
    const aDayOld = { token: '' };
    await withAgedTokens(
      service,
      async (client) => {
        equal('the token is active a minute before', await isActive(service, client), true);
        aDayOld.token = client;
      },
      DAY_MS - MARGIN_MS,
    );
    await service.passTime(2 * MARGIN_MS);
    equal('the token is active a minute after', await isActive(service, aDayOld.token), false);
  }),
  statement('3', 'check_token reports a token of 24 hours inactive or invalid', (service) =>
    withAgedTokens(
      service,
      async (client, user) => {
        equal('an expired client token is active', await isActive(service, client), false);
        equal('an expired user token is active', await isActive(service, user), false);
      },
      DAY_MS,
    ),
  ),
  statement('3', 'A refresh token obtains a new access token after the old expired', (service) =>
    withAgedTokens(
      service,
      async (_client, user, refresh) => {
        const form = { grant_type: 'refresh_token', refresh_token: refresh };
        const access = (await obtain(service, form)).record.text('access_token');
        ensure(access !== user, 'the refreshed access token should be a new one');
        equal('the new access token is active', await isActive(service, access), true);
        dataOf(await ownAccount(service, { bearer: access }));
      },
      DAY_MS,
    ),
  ),
];

export const STATE_MOVES: Statement[] = [...STATES, ...WALLET];
/** These move the clock by a day, so they come last. */
export const TOKEN_LIFE: Statement[] = LIFE;
