/** The endpoints of the service. */
import type { World } from '../world.ts';
import { give, readAccount, receiveFrom, transfer } from './accounts.ts';
import type { Answer, Call, Family } from './call.ts';
import { readMaintenance } from './maintenance.ts';
import {
  burn,
  listTokens,
  mint,
  mintSequential,
  readToken,
  setExtraData,
  transferFrom,
} from './nft.ts';
import { authorize, checkToken, login, token } from './oauth.ts';

type Handler = (world: World, call: Call) => Answer;

export interface Route {
  /** The name that faults refer to. */
  name: string;
  family: Family;
  method: 'GET' | 'POST' | 'PUT';
  path: string;
  handle: Handler;
}

const route = (
  name: string,
  family: Family,
  method: Route['method'],
  path: string,
  handle: Handler,
): Route => ({ name, family, method, path, handle });

const CONTRACT = '/v1/chain/erc721/:contractId';
const TOKEN = `${CONTRACT}/tokens/:tokenId`;

export const ROUTES: readonly Route[] = [
  route('mint', 'nft', 'POST', `${CONTRACT}/mint`, mint),
  route('mint_sequential', 'nft', 'POST', `${CONTRACT}/mint-sequential`, mintSequential),
  route('burn', 'nft', 'POST', `${CONTRACT}/burn`, burn),
  route('set_extra_data', 'nft', 'PUT', `${TOKEN}/set-extra-data`, setExtraData),
  route('transfer_from', 'nft', 'POST', `${CONTRACT}/transfer-from`, transferFrom),
  route('tokens', 'nft', 'GET', `${CONTRACT}/tokens`, listTokens),
  route('token', 'nft', 'GET', TOKEN, readToken),
  route('account', 'account', 'GET', '/v1/app/token/account', readAccount),
  route('give', 'account', 'POST', '/v1/app/token/operations/:operationNo/give', give),
  route('receive_from', 'account', 'POST', '/v1/app/token/operations/receive-from', receiveFrom),
  route('transfer', 'account', 'POST', '/v1/app/token/accounts/transfer', transfer),
  route('oauth_token', 'oauth', 'POST', '/v1/oauth/token', token),
  route('authorize', 'oauth', 'GET', '/v1/oauth/authorize', authorize),
  route('login', 'oauth', 'POST', '/v1/oauth/authorize', login),
  route('check_token', 'oauth', 'GET', '/v1/oauth/check_token', checkToken),
  route('maintenance', 'oauth', 'GET', '/v1/system/maintenance', readMaintenance),
];

/** The error shape of a path without a route. */
export function familyOf(path: string): Family {
  if (path.startsWith('/v1/app/')) return 'account';
  return /^\/v1\/(oauth|system)(\/|$)/.test(path) ? 'oauth' : 'nft';
}
