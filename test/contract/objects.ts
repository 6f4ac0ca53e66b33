/**
 * The contract, operator, wallets and tokens that statements work with: the ones that were named,
 * or new ones where a control surface or the interface itself can make them.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { until } from '../harness/until.ts';
import { accountBy, dataOf, mint, ownAccount, readToken } from './endpoints.ts';
import type { Place } from './reply.ts';
import type { Service } from './service.ts';
import { insist, NotChecked } from './statement.ts';

/** How long a balance, and the chain, may take; both end before the statement's own deadline. */
const BALANCE_MS = 3_000;
const CHAIN_MS = 8_000;

export const TOKEN_URI = 'https://example.com/tokens/1';

/** An address that nobody has. */
export const strangeAddress = () => `0x${randomBytes(20).toString('hex')}`;

/** A word that occurs nowhere else. */
export const nonce = () => randomBytes(12).toString('hex');

export const newTokenId = () => BigInt(randomInt(2 ** 47));

/** A new wallet. @throws NotChecked without a control surface */
export async function freshWallet(service: Service, balance = 0n, status = 1): Promise<string> {
  const addr = strangeAddress();
  await service.control.setWallet(addr, { amt_token: String(balance), status });
  return addr;
}

/** A wallet that gives, receives and owns: the named one, a new one, or the logged-in user's. */
export function wallet(service: Service): Promise<string> {
  return service.once('wallet', async () => {
    const { wallet: named, userToken } = service.options;
    if (named !== undefined) return named;
    if (service.controlled) return freshWallet(service);
    if (userToken !== undefined) return userAddr(service);
    throw new NotChecked('needs --wallet');
  });
}

/** A second wallet. */
export function otherWallet(service: Service): Promise<string> {
  return service.once('other wallet', async () => {
    const { other: named } = service.options;
    if (named !== undefined) return named;
    if (service.controlled) return freshWallet(service);
    throw new NotChecked('needs --other');
  });
}

/** The wallet of the logged-in user. */
export function userAddr(service: Service): Promise<string> {
  return service.once('user wallet', async () =>
    dataOf(await ownAccount(service)).text('token_addr'),
  );
}

export async function balanceOf(service: Service, addr: string): Promise<bigint> {
  return dataOf(await accountBy(service, addr)).integer('amt_token');
}

/** The balance once it is what is expected, or the last one when it never was. */
export async function balanceAfter(service: Service, addr: string, expected: bigint) {
  let last = 0n;
  await until(
    async () => {
      last = await balanceOf(service, addr);
      return last === expected ? true : undefined;
    },
    { deadlineMs: service.options.patienceMs ?? BALANCE_MS },
  );
  return last;
}

/** Mints a token and waits until the chain has settled it. @returns its id */
export async function completeToken(
  service: Service,
  fields: { to?: string; id?: bigint; metaData?: string; extraData?: string; uri?: string } = {},
): Promise<bigint> {
  const { to, id = newTokenId(), uri, ...data } = fields;
  const toAddr = to ?? (await wallet(service));
  const form = { toAddr, tokenId: String(id), tokenURI: uri ?? TOKEN_URI, ...data };
  const hash = dataOf(await mint(service, form)).text('tx_hash');
  await settled(service, id, hash);
  return id;
}

/**
 * The record of a token when the chain has settled what was last asked for.
 * @param hash of the last write, since a read may lag behind it
 */
export async function settled(service: Service, id: bigint, hash?: string): Promise<Place> {
  const record = await until(
    async () => {
      const reply = await readToken(service, id);
      if (reply.status !== 200 || reply.top.integer('status') !== 200n) return undefined;
      const place = reply.top.object('data');
      if (hash !== undefined && place.text('last_tx_hash') !== hash) return undefined;
      return [1n, 3n].includes(place.integer('status')) ? place : undefined;
    },
    { deadlineMs: service.options.patienceMs ?? CHAIN_MS },
  );
  if (!record) throw new NotChecked('the chain did not settle a write in time');
  insist(record.integer('status') === 1n, `the write failed on the chain: ${record.told}`);
  return record;
}

/** A token of the logged-in user that is complete. */
export async function userToken(service: Service): Promise<bigint> {
  return completeToken(service, { to: await userAddr(service) });
}
