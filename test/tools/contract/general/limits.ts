/** Sections 1, 8 and 9: lengths of addresses and hashes, the positive amount, the prefix. */
import {
  accountBy,
  dataOf,
  listTokens,
  pay,
  refusedNft,
  refusedPayment,
  transferFrom,
} from '../client/endpoints.ts';
import { paymentText, unit } from '../client/parameters.ts';
import type { Reply } from '../client/reply.ts';
import type { Service } from '../client/service.ts';
import { sample, sharedReply } from '../client/shared-replies.ts';
import { unknownAddress, userAddr, userToken, wallet } from '../client/test-data.ts';
import { mintWith } from '../nft/mint-input.ts';
import { ensure, equal, type Statement, statement } from '../statement.ts';

type Send = (service: Service, addr: string) => Promise<Reply>;

const WRONG = ['', '0', `0x${'a'.repeat(39)}`, `0x${'a'.repeat(41)}`, 'a'.repeat(1000)];

async function transferToken(service: Service, changes: Record<string, string>) {
  const tokenId = String(await service.once('limits token', () => userToken(service)));
  const form = { fromAddr: await userAddr(service), toAddr: await wallet(service), tokenId };
  return transferFrom(service, { ...form, ...changes });
}

const NFT_FIELDS: [name: string, send: Send][] = [
  ['toAddr of mint', (s, toAddr) => mintWith(s, 'mint', { toAddr })],
  ['toAddr of mint-sequential', (s, toAddr) => mintWith(s, 'mint-sequential', { toAddr })],
  ['toAddr of transfer-from', (s, toAddr) => transferToken(s, { toAddr })],
  ['fromAddr of transfer-from', (s, fromAddr) => transferToken(s, { fromAddr })],
  ['ownerAddr', (s, ownerAddr) => listTokens(s, { ownerAddr })],
  ['creatorAddr', (s, creatorAddr) => listTokens(s, { creatorAddr })],
];

const APP_FIELDS: [name: string, send: Send][] = [
  ['addr', (s, addr) => accountBy(s, addr)],
  ['toAddr of give', (s, toAddr) => pay(s, 'give', { toAddr, amount: unit(s) })],
  [
    'fromAddr of receive-from',
    (s, fromAddr) => pay(s, 'receive-from', { fromAddr, amount: unit(s) }),
  ],
  [
    'fromAddr of transfer',
    async (s, fromAddr) =>
      pay(s, 'transfer', { fromAddr, toAddr: await wallet(s), amount: unit(s) }),
  ],
  [
    'toAddr of transfer',
    async (s, toAddr) => pay(s, 'transfer', { fromAddr: await wallet(s), toAddr, amount: unit(s) }),
  ],
];

const LENGTHS: Statement[] = [
  ...NFT_FIELDS.map(([name, send]) =>
    statement('8', `${name} has length 42: shorter and longer ones are refused`, async (s) => {
      // An empty filter may count as an absent one.
      const filter = name === 'ownerAddr' || name === 'creatorAddr';
      for (const addr of filter ? WRONG.slice(1) : WRONG) refusedNft(await send(s, addr), 400n);
    }),
  ),
  ...APP_FIELDS.map(([name, send]) =>
    statement('8', `${name} has length 42: shorter and longer ones are refused`, async (s) => {
      for (const addr of WRONG) refusedPayment(await send(s, addr), '997', '399', '398', '401');
    }),
  ),
  ...['own wallet lookup', 'account by addr'].map((name) =>
    statement('8', `token_addr has length 42 (${name})`, async (service) => {
      const endpoint = name === 'account by addr' ? name : 'own wallet lookup';
      dataOf(await sharedReply(service, endpoint)).text('token_addr', 42);
    }),
  ),
  statement('8', 'last_tx_hash has length 66', async (service) => {
    const { single, listed } = await sample(service);
    for (const record of [single, ...listed]) record.text('last_tx_hash', 66);
  }),
];

const AMOUNTS: Statement[] = [
  ['0', '299'],
  ['-1', '299'],
  ['-9007199254740993', '299'],
  ['0.5', '298'],
  ['1.000000001', '298'],
].map(([amount = '', code = '']) =>
  statement('8', `A transfer amount is a positive integer: ${amount} is ${code}`, async (s) => {
    const toAddr = await wallet(s);
    const text = paymentText(s, { toAddr }, amount);
    refusedPayment(await pay(s, 'give', text), code);
  }),
);

const GENERAL: Statement[] = [
  statement('1', 'A wallet address is a string of exactly 42 characters', async (service) => {
    const { single } = await sample(service);
    single.text('token_owner', 42);
    single.text('token_creator', 42);
    dataOf(await accountBy(service, await wallet(service))).text('token_addr', 42);
  }),
  statement('1', 'A chain transaction hash is a string of exactly 66 characters', async (s) => {
    dataOf(await sharedReply(s, 'NFT mint')).text('tx_hash', 66);
    (await sample(s)).single.text('last_tx_hash', 66);
  }),
  statement('9', 'Every endpoint path begins with /v1/', async (service) => {
    const addr = unknownAddress();
    for (const prefix of ['', '/v2']) {
      const path = `${prefix}/app/token/account`;
      const reply = await service.send('base', 'GET', path, { query: { addr } });
      ensure(reply.status !== 200 || !reply.top.at('data').present, `${path} is an endpoint`);
    }
    equal('the HTTP code of a page', (await listTokens(service)).status, 200);
  }),
];

export const LIMITS: Statement[] = [...GENERAL, ...LENGTHS, ...AMOUNTS];
