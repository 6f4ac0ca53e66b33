/**
 * Credentials of requests: HTTP Basic for the authorization host, the managed client token for the
 * others, and the one repetition after the service refused that token.
 */
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { ExchangeResult } from '../http/exchange.ts';
import { addressOf, type Host, type Transport } from '../http/transport.ts';
import { parseEnvelope, recordIn } from '../parse/envelope.ts';
import { type RateSignal, rateSignalOf } from '../parse/outcome.ts';
import { failureCause } from '../parse/read.ts';
import { accessTokenRecord } from '../parse/records.ts';
import type { ClientToken, TokenFailure, TokenFetch } from './token.ts';

/** The value of `Authorization` at the authorization host. */
export function basicCredentials(clientId: string, clientSecret: string): string {
  return `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
}

interface TokenFetchDeps {
  transport: Transport;
  auth: Host;
  basic: string;
  clock: Clock;
  timeoutMs: number;
  /** The deadline before which nothing is fetched; another daemon may have received it. */
  blockedUntil: () => Promise<Instant | undefined>;
  /** Receives what every fetch says about limits. */
  onSignal: (signal: RateSignal) => Promise<void>;
}

/** Fetches a client token (interface, section 4.4, row 1). Never rejects. */
export async function fetchClientToken(deps: TokenFetchDeps): Promise<TokenFetch> {
  const { transport, auth, basic, clock, timeoutMs, blockedUntil, onSignal } = deps;
  const retryAt = await blockedUntil();
  if (retryAt !== undefined) return { failure: { cause: 'throttled', retryAt } };
  const headers = {
    authorization: basic,
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
    'accept-encoding': 'identity',
  };
  const exchanged = await transport.exchange('app-read', {
    method: 'POST',
    ...addressOf(auth, '/v1/oauth/token'),
    headers: Object.entries(headers).flat(),
    body: Buffer.from('grant_type=client_credentials'),
    deadlineAt: clock.now() + timeoutMs,
  });
  const signal = rateSignalOf(exchanged);
  await onSignal(signal);
  const record = tokenIn(exchanged);
  if (!record) return { failure: failureOf(exchanged, signal) };
  const { accessToken: token, expiresIn, appNo } = record;
  return { token, appNo, expiresIn, startedAt: exchanged.startedAt };
}

/** The last result of `send`, and the number of the app that the token belongs to. */
type ManagedResult<T> = { result: T; appNo: bigint | undefined } | { failure: TokenFailure };

/**
 * Sends with the managed token, and once more with another one if the service refused the first.
 * @param mayResend awaited before the second send; false lets the first result stand
 */
export async function sendWithManagedToken<T>(
  token: ClientToken,
  limits: { deadlineAt: Instant; signal?: AbortSignal | undefined },
  send: (bearer: string) => Promise<T>,
  isRefused: (result: T) => boolean,
  mayResend: () => Promise<boolean>,
): Promise<ManagedResult<T>> {
  const { deadlineAt, signal } = limits;
  const issued = await token.get(deadlineAt, signal);
  if ('failure' in issued) return issued;
  const first = { result: await send(`Bearer ${issued.token}`), appNo: issued.appNo };
  if (!isRefused(first.result)) return first;
  const other = await token.replace(issued.token, deadlineAt, signal);
  if (!other || 'failure' in other || !(await mayResend())) return first;
  return { result: await send(`Bearer ${other.token}`), appNo: other.appNo };
}

function tokenIn(exchanged: ExchangeResult) {
  if (exchanged.end !== 'answered' || exchanged.answer.status >= 300) return undefined;
  return accessTokenRecord.safeParse(recordIn(parseEnvelope(exchanged.answer.body))).data;
}

function failureOf(exchanged: ExchangeResult, signal: RateSignal): TokenFailure {
  if (signal.kind === 'throttled' || signal.kind === 'maintenance') {
    const answer = exchanged.end === 'answered' ? exchanged.answer : undefined;
    return { cause: signal.kind, retryAt: signal.retryAt, answer };
  }
  const cause = failureCause(exchanged);
  return { cause: cause === 'refused' ? 'unauthorized' : cause };
}
