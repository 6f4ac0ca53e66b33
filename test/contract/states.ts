/** Section 3: states that tokens can be in, and the moves that the interface names. */
import { until } from '../harness/until.ts';
import {
  checkToken,
  dataOf,
  listTokens,
  mint,
  obtain,
  ownAccount,
  readToken,
} from './endpoints.ts';
import { logIn } from './login.ts';
import { contract } from './named.ts';
import { completeToken, newTokenId, TOKEN_URI, wallet } from './objects.ts';
import type { Reply } from './reply.ts';
import type { Service } from './service.ts';
import { insist, type Statement, same, statement } from './statement.ts';

export const DAY_MS = 86_400_000;
/** Keeps clear of the very end of a token's life. */
const MARGIN_MS = 60_000;

const TOKEN_STATES = [
  [0, 'Pending'],
  [1, 'Complete'],
  [2, 'Progress'],
  [3, 'Fail'],
] as const;

async function put(service: Service, change: object): Promise<Reply> {
  const id = await completeToken(service);
  await service.control.setToken(await contract(service), id, change);
  return readToken(service, id);
}

const STATES: Statement[] = [
  ...TOKEN_STATES.map(([status, name]) =>
    statement('3', `NFT token status has the state ${name} (${status})`, async (service) => {
      const record = dataOf(await put(service, { status }));
      same('status', record.integer('status'), BigInt(status));
    }),
  ),
  statement('3', 'A mint that the chain carries out becomes Complete (1)', async (service) => {
    const record = dataOf(await readToken(service, await completeToken(service)));
    same('status', record.integer('status'), 1n);
  }),
  statement('3', 'A mint that is being processed is Pending (0) or Progress (2)', (service) =>
    service.control.withSwitches({ settle_median_ms: 600_000 }, async () => {
      const id = newTokenId();
      const toAddr = await wallet(service);
      dataOf(await mint(service, { toAddr, tokenId: String(id), tokenURI: TOKEN_URI }));
      const status = dataOf(await readToken(service, id)).integer('status');
      insist([0n, 2n].includes(status), `status should be 0 or 2 and is ${status}`);
    }),
  ),
  statement('3', 'A mint that the chain does not carry out becomes Fail (3)', async (service) => {
    await service.control.failNext();
    const id = newTokenId();
    const toAddr = await wallet(service);
    dataOf(await mint(service, { toAddr, tokenId: String(id), tokenURI: TOKEN_URI }));
    const failed = await until(async () => {
      const record = dataOf(await readToken(service, id));
      return record.integer('status') === 3n ? true : undefined;
    });
    insist(failed, `token ${id} should be in the state Fail (3), and never is`);
  }),
  statement('3', 'NFT token lock has the state Locked (1)', async (service) => {
    const record = dataOf(await put(service, { locked: true }));
    same('token_is_locked', record.integer('token_is_locked'), 1n);
  }),
  statement('3', 'NFT token lock has the state Unlocked (0)', async (service) => {
    const record = dataOf(await readToken(service, await completeToken(service)));
    same('token_is_locked', record.integer('token_is_locked'), 0n);
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
      same('amt_token of a new wallet', record.integer('amt_token'), 0n);
    },
  ),
  statement('3', 'A wallet that was created stays the same at the next look', async (service) => {
    const member = await service.control.addMember('Returner');
    const as = { bearer: (await logIn(service, member)).access };
    const first = dataOf(await ownAccount(service, as)).text('token_addr', 42);
    same('token_addr', dataOf(await ownAccount(service, as)).text('token_addr'), first);
  }),
];

async function isActive(service: Service, token: string): Promise<boolean> {
  const reply = await checkToken(service, token);
  if (reply.status === 200) return reply.record.flag('active');
  same(`the HTTP code of ${reply.told}`, reply.status, 400);
  same('error.detail', reply.top.object('error').text('detail'), 'invalid_token');
  return false;
}

async function newClientToken(service: Service): Promise<string> {
  const reply = await obtain(service, { grant_type: 'client_credentials' });
  return reply.record.text('access_token');
}

/** Tokens that were issued and are now a little less, or a little more, than a day old. */
async function aged(
  service: Service,
  work: (client: string, user: string, refresh: string) => Promise<void>,
  ms: number,
) {
  // The clock is asked for first, so that nothing happens where there is none.
  const { control } = service;
  await control.state();
  const client = await newClientToken(service);
  const user = await logIn(service);
  await service.passTime(ms);
  await work(client, user.access, user.refresh ?? '');
}

const LIFE: Statement[] = [
  statement('5', 'An access token is valid until 24 hours after it is issued', (service) =>
    aged(
      service,
      async (client, user) => {
        same('a client token before 24 hours is active', await isActive(service, client), true);
        same('a user token before 24 hours is active', await isActive(service, user), true);
        dataOf(await listTokens(service, {}, { bearer: client }));
        dataOf(await ownAccount(service, { bearer: user }));
      },
      DAY_MS - MARGIN_MS,
    ),
  ),
  statement('5', 'An access token expires 24 hours after it is issued', (service) =>
    aged(
      service,
      async (client, user) => {
        const read = await listTokens(service, {}, { bearer: client });
        same(`the body status of ${read.told}`, read.top.integer('status'), 401n);
        const own = await ownAccount(service, { bearer: user });
        same('the code', own.top.object('error').text('code'), '401');
      },
      DAY_MS,
    ),
  ),
  statement('8', 'The access token lifetime is 24 hours', async (service) => {
    const aDayOld = { token: '' };
    await aged(
      service,
      async (client) => {
        same('the token is active a minute before', await isActive(service, client), true);
        aDayOld.token = client;
      },
      DAY_MS - MARGIN_MS,
    );
    await service.passTime(2 * MARGIN_MS);
    same('the token is active a minute after', await isActive(service, aDayOld.token), false);
  }),
  statement('3', 'check_token reports a token of 24 hours inactive or invalid', (service) =>
    aged(
      service,
      async (client, user) => {
        same('an expired client token is active', await isActive(service, client), false);
        same('an expired user token is active', await isActive(service, user), false);
      },
      DAY_MS,
    ),
  ),
  statement('3', 'A refresh token obtains a new access token after the old expired', (service) =>
    aged(
      service,
      async (_client, user, refresh) => {
        const form = { grant_type: 'refresh_token', refresh_token: refresh };
        const access = (await obtain(service, form)).record.text('access_token');
        insist(access !== user, 'the refreshed access token should be a new one');
        same('the new access token is active', await isActive(service, access), true);
        dataOf(await ownAccount(service, { bearer: access }));
      },
      DAY_MS,
    ),
  ),
];

export const STATE_MOVES: Statement[] = [...STATES, ...WALLET];
/** These let a day pass, so they come last. */
export const TOKEN_LIFE: Statement[] = LIFE;
