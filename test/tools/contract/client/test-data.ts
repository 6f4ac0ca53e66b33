/**
 * Wallets and tokens for statements: those that the options name, or new ones where a control
 * surface or the interface can create them.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { until } from '../../../harness/until.ts';
import { ensure, NotChecked } from '../statement.ts';
import { accountBy, dataOf, mint, ownAccount, readToken } from './endpoints.ts';
import type { JsonField } from './reply.ts';
import type { Service } from './service.ts';

/** How long a balance and the chain may take; both are below the deadline of a check. */
const BALANCE_MS = 3_000;
const CHAIN_MS = 8_000;

export const TOKEN_URI = 'https://example.com/tokens/1';

/** An address without a wallet. */
export const unknownAddress = () => `0x${randomBytes(20).toString('hex')}`;

/** A unique text. */
export const nonce = () => randomBytes(12).toString('hex');

export const newTokenId = () => BigInt(randomInt(2 ** 47));

/** A new wallet. @throws NotChecked without a control surface */
export async function freshWallet(service: Service, balance = 0n, status = 1): Promise<string> {
  const addr = unknownAddress();
  await service.control.setWallet(addr, { amt_token: String(balance), status });
  return addr;
}

/** A wallet that sends, receives and owns: from the options, new, or the logged-in user's. */
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

/** The balance once it has the expected value, or the last one read before the deadline. */
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
 * The record of a token once the chain has settled the last write.
 * @param hash of the last write, since a read may lag behind it
 */
export async function settled(service: Service, id: bigint, hash?: string): Promise<JsonField> {
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
  ensure(record.integer('status') === 1n, `the write failed on the chain: ${record.summary}`);
  return record;
}

/** A token of the logged-in user that is complete. */
export async function userToken(service: Service): Promise<bigint> {
  return completeToken(service, { to: await userAddr(service) });
}
