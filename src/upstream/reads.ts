/**
 * Our own reads of the service, one method per endpoint. All pass the budget and use the
 * connections of polls. None is retried: the next poll is the retry.
 */
import type { Clock } from '../kernel/clock.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import { type ClientToken, sendWithManagedToken, type TokenFailure } from './client-token.ts';
import type { ExchangeResult } from './http/exchange.ts';
import { addressOf, type Host, type Transport } from './http/transport.ts';
import { classifyExchange, isUnauthorized, rateSignalOf } from './parse/outcome.ts';
import {
  classifyRead,
  type InconclusiveCause,
  maintenanceParser,
  type Observation,
  pageParser,
  type RecordParser,
  tokenCheckParser,
  tokenParser,
  walletParser,
} from './parse/read.ts';
import type {
  MaintenanceRecord,
  TokenCheckRecord,
  TokenPage,
  TokenRecord,
  WalletRecord,
} from './parse/records.ts';
import type { Budget } from './rate/budget.ts';
import type { Priority } from './rate/priority-queue.ts';
import type { Quota } from './rate/quota.ts';

/** Filters of a token list (interface, section 4.1, row 6). */
interface TokensQuery {
  ownerAddr?: string;
  creatorAddr?: string;
  isLocked?: boolean;
  valid?: boolean;
  page?: number;
  perPage?: number;
}

/** Each read waits for budget; `signal` ends the wait and the request. None rejects. */
export interface Reads {
  /** The wallet with this address. @returns `absent` for 406/398 and 406/199 */
  account(
    addr: string,
    priority: Priority,
    signal?: AbortSignal,
  ): Promise<Observation<WalletRecord>>;
  /** One token. @returns `absent` for a refusal that names it and says so */
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
  /** The maintenance status; sent without credentials, at the highest priority. */
  maintenance(signal?: AbortSignal): Promise<Observation<MaintenanceRecord>>;
  /** The service's record of our own client token. */
  checkToken(): Promise<Observation<TokenCheckRecord>>;
}

interface ReadsDeps {
  transport: Transport;
  token: ClientToken;
  budget: Budget;
  quota: Quota;
  hosts: { base: Host; auth: Host };
  basic: string;
  clock: Clock;
  metrics: Metrics;
  readTimeoutMs: number;
}

interface ReadRequest<T> {
  host: 'base' | 'auth';
  path: string;
  credentials: 'client' | 'basic' | 'none';
  parser: RecordParser<T>;
}

export function makeReads(deps: ReadsDeps): Reads {
  const { token, clock, readTimeoutMs } = deps;
  const client = <T>(path: string, parser: RecordParser<T>): ReadRequest<T> => ({
    host: 'base',
    path,
    credentials: 'client',
    parser,
  });
  return {
    account(addr, priority, signal) {
      const path = `/v1/app/token/account?${new URLSearchParams({ addr })}`;
      return read(deps, client(path, walletParser(addr)), priority, signal);
    },
    token(contractId, tokenId, priority, signal) {
      const path = `/v1/chain/erc721/${contractId}/tokens/${tokenId}`;
      return read(deps, client(path, tokenParser(contractId, tokenId)), priority, signal);
    },
    tokens(contractId, query, priority, signal) {
      const path = `/v1/chain/erc721/${contractId}/tokens${queryText(query)}`;
      return read(deps, client(path, pageParser(contractId)), priority, signal);
    },
    maintenance(signal) {
      const path = '/v1/system/maintenance';
      const parser = maintenanceParser;
      return read(deps, { host: 'auth', path, credentials: 'none', parser }, 'unknown', signal);
    },
    async checkToken() {
      const startedAt = clock.now();
      const issued = await token.get(startedAt + readTimeoutMs);
      if ('failure' in issued) return withoutToken(deps, issued.failure, startedAt);
      const path = `/v1/oauth/check_token?${new URLSearchParams({ token: issued.token })}`;
      const parser = tokenCheckParser;
      return read(deps, { host: 'auth', path, credentials: 'basic', parser }, 'steady');
    },
  };
}

async function read<T>(
  deps: ReadsDeps,
  request: ReadRequest<T>,
  priority: Priority,
  signal?: AbortSignal,
): Promise<Observation<T>> {
  const { budget, metrics } = deps;
  const waits = budget.free() <= 0;
  const release = await budget.acquire(priority, signal);
  if (!release) return withoutSlot(deps);
  try {
    // The caller has read the deadlines; while it waited, another daemon may have received one.
    if (waits && !(await maySendNow(deps))) return withoutSlot(deps);
    const observation = await send(deps, request, signal);
    const { result } = observation;
    metrics.upstreamRequests.inc({
      class: 'polls',
      result: result === 'inconclusive' ? observation.cause : result,
    });
    return observation;
  } finally {
    release();
  }
}

async function send<T>(
  deps: ReadsDeps,
  { host, path, credentials, parser }: ReadRequest<T>,
  signal: AbortSignal | undefined,
): Promise<Observation<T>> {
  const { transport, token, budget, hosts, basic, clock, readTimeoutMs } = deps;
  const startedAt = clock.now();
  const limits = { deadlineAt: startedAt + readTimeoutMs, signal };
  const sendOnce = async (authorization?: string): Promise<ExchangeResult> => {
    const headers = ['accept', 'application/json', 'accept-encoding', 'identity'];
    if (authorization) headers.push('authorization', authorization);
    const address = addressOf(hosts[host], path);
    const request = { method: 'GET', ...address, headers, ...limits };
    const exchanged = await transport.exchange('polls', request);
    await budget.record('polls', rateSignalOf(exchanged));
    return exchanged;
  };
  if (credentials !== 'client')
    return classifyRead(await sendOnce(credentials === 'basic' ? basic : undefined), parser);
  const isRefused = (exchanged: ExchangeResult) =>
    isUnauthorized(classifyExchange(exchanged, 'read'));
  const mayResend = async () => {
    if (!(await maySendNow(deps))) return false;
    budget.charge();
    return true;
  };
  const managed = await sendWithManagedToken(token, limits, sendOnce, isRefused, mayResend);
  if ('failure' in managed) return withoutToken(deps, managed.failure, startedAt);
  return classifyRead(managed.result, parser);
}

/** False while a deadline of polls stands, or when that cannot be read. */
async function maySendNow({ quota }: ReadsDeps): Promise<boolean> {
  const read = await quota.sync().then(
    () => true,
    () => false,
  );
  return read && quota.blockedUntil('polls') === undefined;
}

function withoutToken<T>(
  { clock }: ReadsDeps,
  { cause, reason, retryAt }: TokenFailure,
  startedAt: number,
): Observation<T> {
  const unsent = { result: 'inconclusive', isUnsent: true } as const;
  return { startedAt, endedAt: clock.now(), ...unsent, cause, reason, retryAt };
}

/** The result when nothing was sent, because of a deadline of the service or for lack of budget. */
function withoutSlot<T>({ clock, quota }: ReadsDeps): Observation<T> {
  const now = clock.now();
  const retryAt = quota.blockedUntil('polls');
  const cause: InconclusiveCause = retryAt === undefined ? 'budget' : 'throttled';
  return { startedAt: now, endedAt: now, result: 'inconclusive', isUnsent: true, cause, retryAt };
}

function queryText(query: TokensQuery): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) params.append(name, String(value));
  return params.size > 0 ? `?${params}` : '';
}
