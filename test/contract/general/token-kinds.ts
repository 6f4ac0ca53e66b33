/**
 * Section 5, rule 3: the kind of token that each resource endpoint accepts.
 */
import {
  accountBy,
  burn,
  dataOf,
  listTokens,
  mint,
  mintSequential,
  ownAccount,
  pay,
  readToken,
  refusedNft,
  refusedPayment,
  setExtraData,
  transferFrom,
} from '../client/endpoints.ts';
import type { Reply } from '../client/reply.ts';
import type { As, Service } from '../client/service.ts';
import { type EndpointName, EXTRA, sample, sharedReply } from '../client/shared-replies.ts';
import { newTokenId, nonce, TOKEN_URI, unknownAddress, wallet } from '../client/test-data.ts';
import { body } from '../payments/transactions.ts';
import { type Statement, statement } from '../statement.ts';

interface Endpoint {
  takes: 'client' | 'user';
  refused: (reply: Reply) => void;
  /** Sends a request that is valid except for its credentials. */
  call: (service: Service, as: As) => Promise<Reply>;
}

const nft = (reply: Reply): void => refusedNft(reply, 401n);
const app = (reply: Reply): void => void refusedPayment(reply, '401');
const form = async (service: Service) => ({ toAddr: await wallet(service), tokenURI: TOKEN_URI });
const sampleId = async (service: Service) => (await sample(service)).id;

const payment = (kind: 'give' | 'receive-from' | 'transfer'): Endpoint => ({
  takes: 'client',
  refused: app,
  call: async (service, as) => pay(service, kind, await body(service, kind), as),
});

const ENDPOINTS: Record<EndpointName, Endpoint> = {
  'NFT mint': {
    takes: 'client',
    refused: nft,
    call: async (s, as) => mint(s, { ...(await form(s)), tokenId: String(newTokenId()) }, as),
  },
  'NFT mint-sequential': {
    takes: 'client',
    refused: nft,
    call: async (s, as) => mintSequential(s, await form(s), as),
  },
  'NFT burn': {
    takes: 'client',
    refused: nft,
    call: async (s, as) => burn(s, { tokenId: String(await sampleId(s)) }, as),
  },
  'NFT list': { takes: 'client', refused: nft, call: (s, as) => listTokens(s, {}, as) },
  'NFT read': {
    takes: 'client',
    refused: nft,
    call: async (s, as) => readToken(s, await sampleId(s), as),
  },
  'account by addr': {
    takes: 'client',
    refused: app,
    call: async (s, as) => accountBy(s, await wallet(s), as),
  },
  give: payment('give'),
  'receive-from': payment('receive-from'),
  transfer: payment('transfer'),
  'NFT set-extra-data': {
    takes: 'user',
    refused: nft,
    call: async (s, as) => setExtraData(s, await sampleId(s), { extraData: EXTRA }, as),
  },
  'NFT transfer-from': {
    takes: 'user',
    refused: nft,
    call: async (s, as) => {
      const tokenId = String(await sampleId(s));
      const parties = { fromAddr: await wallet(s), toAddr: unknownAddress() };
      return transferFrom(s, { ...parties, tokenId }, as);
    },
  },
  'own wallet lookup': { takes: 'user', refused: app, call: (s, as) => ownAccount(s, as) },
};

const REQUESTS = Object.entries(ENDPOINTS) as [EndpointName, Endpoint][];

export const TOKEN_KINDS: Statement[] = REQUESTS.flatMap(([name, { takes, refused, call }]) => {
  const other = takes === 'client' ? 'user' : 'client';
  return [
    statement('4', `${name} answers JSON {status: 200, data: object}`, async (service) => {
      dataOf(await sharedReply(service, name));
    }),
    statement('5', `${name} takes a ${takes} token`, async (service) => {
      dataOf(await sharedReply(service, name));
    }),
    statement('5', `${name} refuses a ${other} token`, async (service) =>
      refused(await call(service, other)),
    ),
    statement('5', `${name} refuses a request without Authorization`, async (service) =>
      refused(await call(service, 'anonymous')),
    ),
    statement('5', `${name} refuses a token that was never issued`, async (service) =>
      refused(await call(service, { bearer: nonce() })),
    ),
  ];
});
