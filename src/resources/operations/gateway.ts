/**
 * The paths of the service that the interface documents, as the gateway serves them to apps: in the
 * service's own words, with its numbers as JSON numbers. The document of the API, its page and the
 * typed client show them, and limits of keys read from them which members a write has.
 */
import {
  address,
  count,
  document,
  type Field,
  type Fields,
  flag,
  hash,
  id,
  json,
  list,
  nullable,
  object,
  optional,
  text,
} from '../fields.ts';
import { type Resource, resource } from '../resource.ts';
import { type Kind, operationData } from './operation.ts';

export interface GatewayPath {
  readonly method: 'get' | 'post' | 'put';
  readonly path: string;
  readonly summary: string;
  /** What the path adds to what all of its kind share. */
  readonly description?: string;
  /** Of a write. */
  readonly kind?: Exclude<Kind, 'other'>;
  /** The service needs the token of a signed-in user, not the client's, which the gateway has. */
  readonly needsUser?: true;
  readonly params?: Fields;
  readonly query?: Fields;
  readonly body?: { readonly type: 'form' | 'json'; readonly fields: Fields };
  /** What the service answers. */
  readonly answer: Fields;
  /** How it refuses. */
  readonly refusal: Resource;
}

/** What an app may send beside what the service describes. */
export const gatewayHeaders = {
  'Idempotency-Key': optional(
    text(
      'Up to 255 printable characters, as they are or as a quoted string with the escapes \\" ' +
        'and \\\\, which is the same key; the same request with the same key gets the first answer',
    ),
  ),
  'Tallyhook-Reference': optional(text('Your name of the write, up to 255 printable characters')),
  Prefer: optional(
    text('respond-async: a write that cannot be sent now is queued and answered with 202'),
  ),
  'Tallyhook-Expires': optional(text('Until when it may wait, RFC 3339')),
};

/** What the gateway adds to the answer of a write. */
export const gatewayAnswerHeaders = {
  'Tallyhook-Operation': optional(text('The id of the recorded write')),
  'Tallyhook-Outcome': optional(text('Its state')),
  'Idempotency-Replayed': optional(text('true for the answer to an earlier request')),
};

/** The key of a request that brings a token of its own. */
export const userKeyHeaders = {
  'Tallyhook-Key': optional(text('The key, when Authorization has a token of your own')),
};

/** The answer to a write that was queued. */
export const queuedOperation = resource('QueuedOperation', {
  id: id('op'),
  ...operationData.fields,
});

const whole = (description?: string) => count(description, { min: 0 });

export const nftRefusal = resource('ServiceNftRefusal', {
  status: count('400, 401, 404, 422 or 500; the status of the response may be 200'),
  error: list(document({ message: text(), field: text(), validation: text() })),
});

export const accountRefusal = resource('ServiceRefusal', {
  status: text('406, or 500 for an error of the service'),
  error: document({ code: text('Such as 198 for a balance that is too low'), message: text() }),
});

export const authorizationRefusal = resource('ServiceAuthorizationRefusal', {
  status: count(),
  error: document({
    code: count(),
    message: text(),
    detail: text('Such as invalid_token or invalid_grant'),
    data: json(),
    errors: json(),
  }),
});

const nftToken = resource('ServiceToken', {
  contract_id: count(),
  token_id: count(),
  token_owner: address(),
  token_uri: text(),
  token_metadata: text('JSON text that never changes; may be empty'),
  token_extradata: text('JSON text that its owner may change; may be empty'),
  token_creator: address(),
  token_created_at: text('Without a time zone: YYYY-MM-DD HH:MM:SS'),
  token_owned_at: text('When its owner changed last, in the same form'),
  token_is_locked: count('1 while it is registered on a market'),
  status: count('0 pending, 1 complete, 2 in progress, 3 failed'),
  last_tx_hash: hash(),
});

const wallet = resource('ServiceWallet', {
  token_addr: address(),
  amt_token: count('Balance in service tokens'),
  status: count('1 normal, 2 suspended, 3 user request, 9 withdrawn'),
});

const accessToken = resource('ServiceAccessToken', {
  access_token: text(),
  token_type: text(),
  expires_in: count(),
  app_no: count(),
  refresh_token: optional(text('Of a user, as are those below')),
  scope: optional(text()),
  member_no: optional(count()),
  nickname: optional(text()),
});

const maintenance = {
  status: text('READY: announced; INACTIVE: down; ACTIVE: normal'),
  start: nullable(text('Without a time zone: yyyy-MM-dd HH:mm:ss')),
  end: nullable(text()),
  message: nullable(text()),
};

const contract = { contractId: whole('NFT contract') };
const token = { ...contract, tokenId: whole('NFT token') };
const metaData = optional(text('JSON text that never changes, at most 1,000 characters'));
const extraData = optional(text('JSON text, at most 500 characters'));
const minted = { tokenURI: text('Where its metadata is'), metaData, extraData };
const toAddr = address('Who gets it, 42 characters');
const fromAddr = address('Who gives it, 42 characters');
const reasonType = text('Why, as the service names reasons');
const amount = whole('Service tokens, more than 0');
const feeAmount = whole('Service tokens that the service keeps');
const txHash = { tx_hash: hash('Of the chain') };
const numbers = { tx_app_no: count('App number'), tx_log_no: count('Transaction number') };

/** In the envelope of the service. */
const inData = (fields: Fields | { name: string; fields: Fields }): Fields => ({
  status: count(),
  data: object(fields as Fields) as Field<never, unknown>,
});

const nft = { refusal: nftRefusal } as const;
const payment = { method: 'post', refusal: accountRefusal, answer: inData(numbers) } as const;
const NFT = '/v1/chain/erc721/{contractId}';
const TOKEN = '/v1/app/token';

/** Those of the interface, but for the page on which users sign in. */
export const GATEWAY_PATHS: readonly GatewayPath[] = [
  {
    ...payment,
    path: `${TOKEN}/operations/{operationNo}/give`,
    kind: 'give',
    summary: 'Give tokens of an operator wallet to a user',
    params: { operationNo: whole('Operator wallet that pays') },
    body: { type: 'json', fields: { toAddr, amount, reasonType } },
  },
  {
    ...payment,
    path: `${TOKEN}/operations/receive-from`,
    kind: 'receive_from',
    summary: 'Deduct tokens from a user into an operator wallet',
    body: { type: 'json', fields: { fromAddr, amount, feeAmount, reasonType } },
  },
  {
    ...payment,
    path: `${TOKEN}/accounts/transfer`,
    kind: 'transfer',
    summary: 'Transfer tokens between users',
    body: { type: 'json', fields: { fromAddr, toAddr, amount, feeAmount, reasonType } },
  },
  {
    method: 'get',
    path: `${TOKEN}/account`,
    summary: 'Read the wallet of an address, or of the signed-in user',
    description: 'Without `addr` it needs the token of a user, and makes their wallet if needed.',
    query: { addr: optional(address('42 characters')) },
    answer: inData(wallet),
    refusal: accountRefusal,
  },
  {
    ...nft,
    method: 'post',
    path: `${NFT}/mint`,
    kind: 'mint',
    summary: 'Mint an NFT with a number that you choose',
    params: contract,
    body: { type: 'form', fields: { toAddr, tokenId: token.tokenId, ...minted } },
    answer: inData(txHash),
  },
  {
    ...nft,
    method: 'post',
    path: `${NFT}/mint-sequential`,
    kind: 'mint_sequential',
    summary: 'Mint an NFT with a number that the service chooses',
    params: contract,
    body: { type: 'form', fields: { toAddr, ...minted } },
    answer: inData({ ...txHash, tokenId: count('The number of the new token') }),
  },
  {
    ...nft,
    method: 'post',
    path: `${NFT}/burn`,
    kind: 'burn',
    summary: 'Burn an NFT',
    params: contract,
    body: { type: 'form', fields: { tokenId: token.tokenId } },
    answer: inData(txHash),
  },
  {
    ...nft,
    method: 'put',
    path: `${NFT}/tokens/{tokenId}/set-extra-data`,
    kind: 'set_extra_data',
    needsUser: true,
    summary: 'Change the extra data of an NFT',
    params: token,
    body: { type: 'form', fields: { extraData } },
    answer: inData(txHash),
  },
  {
    ...nft,
    method: 'post',
    path: `${NFT}/transfer-from`,
    kind: 'transfer_from',
    needsUser: true,
    summary: 'Change the owner of an NFT',
    params: contract,
    body: { type: 'form', fields: { fromAddr, toAddr, tokenId: token.tokenId } },
    answer: inData(txHash),
  },
  {
    ...nft,
    method: 'get',
    path: `${NFT}/tokens`,
    summary: 'List the NFTs of a contract',
    params: contract,
    query: {
      ownerAddr: optional(address('42 characters')),
      creatorAddr: optional(address('42 characters')),
      isLocked: optional(flag()),
      valid: optional(flag('`true` leaves out tokens that are being processed')),
      page: optional(count(undefined, { min: 1 })),
      perPage: optional(count(undefined, { min: 1 })),
    },
    answer: inData({
      total: count(),
      perPage: count(),
      page: count(),
      lastPage: count(),
      data: list(object(nftToken)),
    }),
  },
  {
    ...nft,
    method: 'get',
    path: `${NFT}/tokens/{tokenId}`,
    summary: 'Read an NFT',
    params: token,
    answer: inData(nftToken),
  },
  {
    method: 'post',
    path: '/v1/oauth/token',
    summary: 'Get an access token of the service',
    description: 'Your own `client_id:client_secret` stand in Authorization as Basic.',
    body: {
      type: 'form',
      fields: {
        grant_type: text('client_credentials, authorization_code or refresh_token'),
        code: optional(text('Of authorization_code')),
        redirect_uri: optional(text('Of authorization_code, as it is registered')),
        refresh_token: optional(text('Of refresh_token')),
      },
    },
    answer: accessToken.fields,
    refusal: authorizationRefusal,
  },
  {
    method: 'get',
    path: '/v1/oauth/check_token',
    summary: 'Check an access token of the service',
    query: { token: text('The access token') },
    answer: {
      active: flag(),
      grant_type: text(),
      app_no: count(),
      client_id: text(),
      exp: count('When it expires'),
      scope: optional(text()),
      member_no: optional(count()),
      nickname: optional(text()),
    },
    refusal: authorizationRefusal,
  },
  {
    method: 'get',
    path: '/v1/system/maintenance',
    summary: 'Read the maintenance status of the service',
    answer: inData(maintenance),
    refusal: authorizationRefusal,
  },
];

/** Those that need no key: the authorization of the service itself. */
export function isOpen({ path }: GatewayPath): boolean {
  return path.startsWith('/v1/oauth/') || path.startsWith('/v1/system/');
}

/** The members of the body of a write. */
export function membersOfKind(kind: Exclude<Kind, 'other'>): readonly string[] {
  const fields = GATEWAY_PATHS.find((one) => one.kind === kind)?.body?.fields ?? {};
  return Object.keys(fields);
}
