/**
 * What we ask the service ourselves: one method for each thing, all through the budget, on their
 * own lane, never repeated. The next look is the retry.
 */
import type { Clock } from '../kernel/clock.ts';
import type { Metrics } from '../kernel/metrics.ts';
import { sendManaged } from './auth/credentials.ts';
import type { ClientToken, TokenFailure } from './auth/token.ts';
import type { Exchanged } from './http/exchange.ts';
import { type Host, target } from './http/hosts.ts';
import type { Transport } from './http/transport.ts';
import { isUnauthorized, judge } from './parse/outcome.ts';
import {
  classifyRead,
  maintenanceReading,
  pageReading,
  type Reading,
  tokenCheckReading,
  tokenReading,
  walletReading,
} from './parse/read.ts';
import type {
  MaintenanceRecord,
  TokenCheckRecord,
  TokenPage,
  TokenRecord,
  WalletRecord,
} from './parse/records.ts';
import type { Budget } from './rate/budget.ts';
import { learn, lessonOf } from './rate/learning.ts';
import type { Quota } from './rate/quota.ts';
import type { Observation, Priority } from './types.ts';

/** Filters of a token list (interface, section 4.1, row 6). */
export interface TokensQuery {
  ownerAddr?: string;
  creatorAddr?: string;
  isLocked?: boolean;
  valid?: boolean;
  page?: number;
  perPage?: number;
}

/** Looks wait for budget by themselves; `signal` ends the wait and the request. None rejects. */
export interface Reads {
  /** The wallet with this address. @returns `absent` for 406/398 */
  account(
    addr: string,
    priority: Priority,
    signal?: AbortSignal,
  ): Promise<Observation<WalletRecord>>;
  /** One token. @returns `absent` for a rejection that says so (404, 422, or in words) */
  token(
    contractId: bigint,
    tokenId: bigint,
    priority: Priority,
    signal?: AbortSignal,
  ): Promise<Observation<TokenRecord>>;
  /** One page of a contract's tokens. */
  tokens(
    contractId: bigint,
    query: TokensQuery,
    priority: Priority,
    signal?: AbortSignal,
  ): Promise<Observation<TokenPage>>;
  /** The maintenance status; asked without credentials, before any other look that waits. */
  maintenance(signal?: AbortSignal): Promise<Observation<MaintenanceRecord>>;
  /** What the service says of our own client token. */
  checkToken(signal?: AbortSignal): Promise<Observation<TokenCheckRecord>>;
}

export interface ReadsDeps {
  transport: Transport;
  token: ClientToken;
  budget: Budget;
  quota: Quota;
  hosts: { base: Host; auth: Host };
  basic: string;
  clock: Clock;
  metrics: Metrics;
  timeoutMs: number;
}

interface Question<T> {
  host: 'base' | 'auth';
  path: string;
  credentials: 'client' | 'basic' | 'none';
  reading: Reading<T>;
}

export function makeReads(options: ReadsDeps): Reads {
  const { token, clock, timeoutMs } = options;
  const client = <T>(path: string, reading: Reading<T>): Question<T> => ({
    host: 'base',
    path,
    credentials: 'client',
    reading,
  });
  return {
    account(addr, priority, signal) {
      const path = `/v1/app/token/account?${new URLSearchParams({ addr })}`;
      return read(options, client(path, walletReading(addr)), priority, signal);
    },
    token(contractId, tokenId, priority, signal) {
      const path = `/v1/chain/erc721/${contractId}/tokens/${tokenId}`;
      return read(options, client(path, tokenReading(contractId, tokenId)), priority, signal);
    },
    tokens(contractId, query, priority, signal) {
      const path = `/v1/chain/erc721/${contractId}/tokens${queryText(query)}`;
      return read(options, client(path, pageReading(contractId)), priority, signal);
    },
    maintenance(signal) {
      const path = '/v1/system/maintenance';
      const reading = maintenanceReading;
      const question = { host: 'auth', path, credentials: 'none', reading } as const;
      return read(options, question, 'unknown', signal);
    },
    async checkToken(signal) {
      const startedAt = clock.now();
      const got = await token.get(startedAt + timeoutMs, signal);
      if ('failure' in got) return withoutToken(got.failure, startedAt, clock);
      const path = `/v1/oauth/check_token?${new URLSearchParams({ token: got.token })}`;
      const reading = tokenCheckReading;
      const question = { host: 'auth', path, credentials: 'basic', reading } as const;
      return read(options, question, 'steady', signal);
    },
  };
}

async function read<T>(
  options: ReadsDeps,
  question: Question<T>,
  priority: Priority,
  signal: AbortSignal | undefined,
): Promise<Observation<T>> {
  const { budget, metrics } = options;
  const release = await budget.take(priority, signal);
  if (!release) return withoutTurn(options);
  try {
    const polled = await ask(options, question, signal);
    const result = polled.result === 'inconclusive' ? polled.cause : polled.result;
    metrics.upstreamRequests.inc({ class: 'polls', result });
    return polled;
  } finally {
    release();
  }
}

async function ask<T>(
  options: ReadsDeps,
  question: Question<T>,
  signal: AbortSignal | undefined,
): Promise<Observation<T>> {
  const { transport, token, budget, hosts, basic, clock, timeoutMs } = options;
  const { host, path, credentials, reading } = question;
  const triedAt = clock.now();
  const within = { deadlineAt: triedAt + timeoutMs, ...(signal ? { signal } : {}) };
  const send = async (authorization?: string): Promise<Exchanged> => {
    const headers = ['accept', 'application/json', 'accept-encoding', 'identity'];
    if (authorization) headers.push('authorization', authorization);
    const request = { method: 'GET', ...target(hosts[host], path), headers, ...within };
    const exchanged = await transport.exchange('polls', request);
    await learn(budget, 'polls', lessonOf(exchanged, clock.now()));
    return exchanged;
  };
  if (credentials !== 'client')
    return classifyRead(await send(credentials === 'basic' ? basic : ''), reading, clock.now());
  const isRefused = (exchanged: Exchanged) =>
    isUnauthorized(judge(exchanged, 'read', exchanged.endedAt));
  const mayResend = async () => {
    budget.charge();
    return true;
  };
  const managed = await sendManaged(token, within, send, isRefused, mayResend);
  if ('failure' in managed) return withoutToken(managed.failure, triedAt, clock);
  return classifyRead(managed.last, reading, clock.now());
}

function withoutToken<T>(failure: TokenFailure, startedAt: number, clock: Clock): Observation<T> {
  const { cause, retryAt } = failure;
  const until = retryAt === undefined ? {} : { retryAt };
  return { startedAt, endedAt: clock.now(), result: 'inconclusive', cause, ...until };
}

/** Nothing was asked: the service wants silence, or the budget had no room. */
function withoutTurn<T>({ clock, quota }: ReadsDeps): Observation<T> {
  const now = clock.now();
  const retryAt = quota.blockedUntil('polls');
  const none = { startedAt: now, endedAt: now, result: 'inconclusive' } as const;
  return retryAt === undefined
    ? { ...none, cause: 'budget' }
    : { ...none, cause: 'throttled', retryAt };
}

function queryText(query: TokensQuery): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) params.append(name, String(value));
  return params.size > 0 ? `?${params}` : '';
}
