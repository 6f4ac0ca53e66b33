/** One function for each endpoint of sections 4.1 to 4.4, and checks of their error shapes. */

import { ensure, equal } from '../statement.ts';
import { contract, operator, reason } from './parameters.ts';
import type { Reply } from './reply.ts';
import type { As, Service } from './service.ts';

type Fields = Record<string, string>;

async function nft(service: Service, method: string, below: string, sending: object) {
  const path = `/v1/chain/erc721/${await contract(service)}${below}`;
  return service.send('base', method, path, sending);
}

export const mint = (service: Service, form: Fields, as: As = 'client') =>
  nft(service, 'POST', '/mint', { form, as });

export const mintSequential = (service: Service, form: Fields, as: As = 'client') =>
  nft(service, 'POST', '/mint-sequential', { form, as });

export const burn = (service: Service, form: Fields, as: As = 'client') =>
  nft(service, 'POST', '/burn', { form, as });

export const setExtraData = (service: Service, id: bigint, form: Fields, as: As = 'user') =>
  nft(service, 'PUT', `/tokens/${id}/set-extra-data`, { form, as });

export const transferFrom = (service: Service, form: Fields, as: As = 'user') =>
  nft(service, 'POST', '/transfer-from', { form, as });

export const listTokens = (service: Service, query: Fields = {}, as: As = 'client') =>
  nft(service, 'GET', '/tokens', { query, as });

export const readToken = (service: Service, id: bigint | string, as: As = 'client') =>
  nft(service, 'GET', `/tokens/${id}`, { as });

export const ownAccount = (service: Service, as: As = 'user') =>
  service.send('base', 'GET', '/v1/app/token/account', { as });

export const accountBy = (service: Service, addr: string, as: As = 'client') =>
  service.send('base', 'GET', '/v1/app/token/account', { as, query: { addr } });

/** The three payments, by the path that follows `/v1/app/token/`. */
export type PaymentKind = 'give' | 'receive-from' | 'transfer';

/** The path of a payment; `give` names the operator wallet that pays. */
export async function paymentPath(service: Service, kind: PaymentKind): Promise<string> {
  if (kind === 'transfer') return '/v1/app/token/accounts/transfer';
  const below = kind === 'give' ? `${await operator(service)}/give` : kind;
  return `/v1/app/token/operations/${below}`;
}

/** Sends text unchanged, or an object with defaults; undefined removes a field. */
export async function pay(
  service: Service,
  kind: PaymentKind,
  body: string | object,
  as: As = 'client',
): Promise<Reply> {
  const fee = kind === 'give' ? {} : { feeAmount: 0 };
  const json = typeof body === 'string' ? body : { ...fee, reasonType: reason(service), ...body };
  return service.send('tx', 'POST', await paymentPath(service, kind), { json, as });
}

/** POST /v1/oauth/token */
export const obtain = (service: Service, form: Fields, as: As = 'app') =>
  service.send('auth', 'POST', '/v1/oauth/token', { form, as });

export const checkToken = (service: Service, token: string, as: As = 'app') =>
  service.send('auth', 'GET', '/v1/oauth/check_token', { query: { token }, as });

export const maintenance = (service: Service) =>
  service.send('auth', 'GET', '/v1/system/maintenance', { as: 'anonymous' });

/** The data in the success envelope of base and transaction endpoints. */
export function dataOf(reply: Reply) {
  equal(`the HTTP code of ${reply.summary}`, reply.status, 200);
  equal(`status in ${reply.summary}`, reply.top.integer('status'), 200n);
  return reply.top.object('data');
}

/** An error of section 7.1: HTTP 200, one of these statuses in the body. */
export function refusedNft(reply: Reply, ...statuses: bigint[]): void {
  equal(`the HTTP code of ${reply.summary}`, reply.status, 200);
  const status = reply.top.integer('status');
  ensure(
    statuses.includes(status),
    `expected a refusal with body status ${statuses.join(' or ')}; received ${reply.summary}`,
  );
  ensure(reply.top.list('error').length > 0, `error should not be empty: ${reply.summary}`);
}

/** An error of section 7.2 with one of these codes. @returns its message */
export function refusedPayment(reply: Reply, ...codes: string[]): string {
  reply.top.text('status');
  const error = reply.top.object('error');
  ensure(
    codes.includes(error.text('code')),
    `expected a refusal with code ${codes.join(' or ')}; received ${reply.summary}`,
  );
  return error.text('message');
}

/** An error of section 7.3: HTTP 400 with that detail. */
export function refusedAuthorization(reply: Reply, detail: string): void {
  equal(`the HTTP code of ${reply.summary}`, reply.status, 400);
  equal(`error.detail in ${reply.summary}`, reply.top.object('error').text('detail'), detail);
}
