/**
 * Requests that are sent once and checked by many statements: a token with its record, one success
 * of every endpoint, payments that restore the balances.
 */

import { ensure, NotChecked } from '../statement.ts';
import {
  accountBy,
  burn,
  dataOf,
  listTokens,
  mint,
  mintSequential,
  obtain,
  ownAccount,
  type PaymentKind,
  pay,
  readToken,
  setExtraData,
  transferFrom,
} from './endpoints.ts';
import { codeGrant } from './login.ts';
import { unit } from './parameters.ts';
import type { JsonField, Reply } from './reply.ts';
import type { As, Service } from './service.ts';
import {
  balanceAfter,
  balanceOf,
  completeToken,
  freshWallet,
  newTokenId,
  otherWallet,
  settled,
  TOKEN_URI,
  userAddr,
  userToken,
  wallet,
} from './test-data.ts';

export const META = '{"kind":"contract","n":[1,2]}';
export const EXTRA = '{"level":1}';

export interface Sample {
  id: bigint;
  owner: string;
  /** The record of the single read, and all records of the first page of a list. */
  single: JsonField;
  listed: JsonField[];
}

/** A complete token with data, as returned by both reads. */
export function sample(service: Service): Promise<Sample> {
  return service.once('sample', async () => {
    const owner = await wallet(service);
    const id = await completeToken(service, { metaData: META, extraData: EXTRA });
    const single = dataOf(await readToken(service, id));
    const query = { ownerAddr: owner, perPage: '100' };
    const listed = dataOf(await listTokens(service, query)).list('data');
    ensure(listed.length > 0, `the list of ${owner} should contain its token ${id}, and is empty`);
    return { id, owner, single, listed };
  });
}

/** A token whose id is beyond 2^53. @throws NotChecked when the service refuses such ids */
export function hugeToken(service: Service): Promise<bigint> {
  return service.once('huge token', async () => {
    const id = 2n ** 53n + 1n + newTokenId() * 2n;
    const toAddr = await wallet(service);
    const reply = await mint(service, { toAddr, tokenId: String(id), tokenURI: TOKEN_URI });
    if (reply.top.integer('status') !== 200n) {
      throw new NotChecked(`the service refuses a token id beyond 2^53: ${reply.summary}`);
    }
    await settled(service, id);
    return id;
  });
}

export const PAYMENT_ADDRESSES: Record<PaymentKind, string[]> = {
  give: ['toAddr'],
  'receive-from': ['fromAddr'],
  transfer: ['fromAddr', 'toAddr'],
};

/** A valid body that moves one unit. */
export async function paymentBody(
  service: Service,
  kind: PaymentKind,
): Promise<Record<string, unknown>> {
  const funded = service.controlled ? await freshWallet(service, 100n) : await wallet(service);
  const addresses = PAYMENT_ADDRESSES[kind].map((name) => [name, funded] as const);
  if (kind === 'transfer') addresses[1] = ['toAddr', await otherWallet(service)];
  return { ...Object.fromEntries(addresses), amount: unit(service) };
}

/**
 * Sends a valid request to an endpoint. With other credentials, which the service refuses, a token
 * that is not changed serves instead of a new one.
 */
type Send = (service: Service, as?: As) => Promise<Reply>;

const mintForm = async (service: Service) => ({
  toAddr: await wallet(service),
  tokenURI: TOKEN_URI,
});

const sampleOr = async (service: Service, as: As | undefined, make: typeof userToken) =>
  as === undefined ? make(service) : (await sample(service)).id;

const payment =
  (kind: PaymentKind): Send =>
  async (service, as) =>
    as === undefined
      ? (await payments(service))[kind]
      : pay(service, kind, await paymentBody(service, kind), as);

/** The twelve endpoints with an access token, as named in section 5. */
export const ENDPOINTS = {
  'NFT mint': async (service, as) =>
    mint(service, { ...(await mintForm(service)), tokenId: String(newTokenId()) }, as),
  'NFT mint-sequential': async (service, as) =>
    mintSequential(service, await mintForm(service), as),
  'NFT burn': async (service, as) =>
    burn(service, { tokenId: String(await sampleOr(service, as, completeToken)) }, as),
  'NFT list': (service, as) => listTokens(service, {}, as),
  'NFT read': async (service, as) => readToken(service, (await sample(service)).id, as),
  'account by addr': async (service, as) => accountBy(service, await wallet(service), as),
  give: payment('give'),
  'receive-from': payment('receive-from'),
  transfer: payment('transfer'),
  'NFT set-extra-data': async (service, as) =>
    setExtraData(service, await sampleOr(service, as, userToken), { extraData: EXTRA }, as),
  'NFT transfer-from': async (service, as) => {
    const tokenId = String(await sampleOr(service, as, userToken));
    const fromAddr = as === undefined ? await userAddr(service) : await wallet(service);
    return transferFrom(service, { fromAddr, toAddr: await wallet(service), tokenId }, as);
  },
  'own wallet lookup': (service, as) => ownAccount(service, as),
} satisfies Record<string, Send>;

export type EndpointName = keyof typeof ENDPOINTS;

/** The response of an endpoint to a valid request, sent once. */
export function sharedReply(service: Service, endpoint: EndpointName): Promise<Reply> {
  return service.once(endpoint, () => ENDPOINTS[endpoint](service, undefined));
}

export interface Payments extends Record<PaymentKind, Reply> {
  /** The amount transferred and deducted; twice as much was given. */
  unit: bigint;
  /** Balances of the wallet and of the other: before, and after each step. */
  wallet: bigint[];
  other: bigint[];
}

/**
 * Gives two units to the wallet, transfers one to the other, and deducts one there and one from the
 * wallet.
 */
export function payments(service: Service): Promise<Payments> {
  return service.once('payments', async () => {
    const amount = unit(service);
    const moved = BigInt(amount);
    const [one, two] = [await wallet(service), await otherWallet(service)];
    const [w, o] = [await balanceOf(service, one), await balanceOf(service, two)];
    const give = await pay(service, 'give', { toAddr: one, amount: 2 * amount });
    if (give.top.at('error').isObject && give.top.object('error').text('code') === '297') {
      throw new NotChecked('needs a higher --amount');
    }
    const afterGive = await balanceAfter(service, one, w + 2n * moved);
    const transfer = await pay(service, 'transfer', { fromAddr: one, toAddr: two, amount });
    const afterTransfer = await balanceAfter(service, one, w + moved);
    const arrived = await balanceAfter(service, two, o + moved);
    const deduct = await pay(service, 'receive-from', { fromAddr: two, amount });
    const afterDeduct = await balanceAfter(service, two, o);
    await pay(service, 'receive-from', { fromAddr: one, amount });
    return {
      give,
      transfer,
      'receive-from': deduct,
      unit: moved,
      wallet: [w, afterGive, afterTransfer],
      other: [o, arrived, afterDeduct],
    };
  });
}

export type Grant = 'client_credentials' | 'authorization_code' | 'refresh_token';

/** The response of a grant, requested once. */
export function granted(service: Service, grant: Grant): Promise<Reply> {
  return service.once(grant, async () => {
    if (grant === 'client_credentials') return obtain(service, { grant_type: grant });
    if (grant === 'authorization_code') {
      if (!service.controlled) throw new NotChecked('needs --control');
      return codeGrant(service);
    }
    const { refresh } = await service.user();
    if (refresh === undefined) throw new NotChecked('needs --control or --refresh-token');
    return obtain(service, { grant_type: grant, refresh_token: refresh });
  });
}
