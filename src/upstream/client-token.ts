/**
 * The managed client token: one fetch at a time, shared by all callers, renewed in the background
 * before it expires, and replaced when the service refuses it; the refused request is then sent
 * once more. Neither the token nor the secret is ever logged.
 */
import { type Clock, DAY_MS, type Instant, withDeadline } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import { backoffMs } from '../kernel/retry.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import { faultText } from '../resources/faults.ts';
import type { Answer, ExchangeResult } from './http/exchange.ts';
import { addressOf, type Host, type Transport } from './http/transport.ts';
import { parseEnvelope, recordIn } from './parse/envelope.ts';
import { type RateSignal, rateSignalOf } from './parse/outcome.ts';
import { failureOf, type InconclusiveCause } from './parse/read.ts';
import { accessTokenRecord } from './parse/records.ts';

/** Why there is no token; `answer` is the service's own 429 or 503. */
export interface TokenFailure {
  cause: InconclusiveCause;
  /** As of an `Observation`. */
  reason?: string | undefined;
  retryAt?: Instant | undefined;
  answer?: Answer | undefined;
}
/** A token, and the number of its app if the service named it. */
interface IssuedToken {
  token: string;
  appNo?: bigint | undefined;
}
type TokenResult = IssuedToken | { failure: TokenFailure };
/** The result of one fetch; `expiresIn` is the service's own value. */
export type TokenFetch =
  | (IssuedToken & { expiresIn: bigint | undefined; startedAt: Instant })
  | { failure: TokenFailure };

interface ClientTokenDeps {
  /** Fetches a token within its own deadline. Must not reject. */
  fetchToken: () => Promise<TokenFetch>;
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Pick<Metrics, 'clientTokenValid'>;
}

/** Seconds, milliseconds, minutes and hours. */
const UNITS_MS = [1000n, 1n, 60_000n, 3_600_000n];
/** How far from 24 hours a lifetime may be and still count as that. */
const TOLERANCE_MS = BigInt(DAY_MS / 10);
/** A token is not used in its last seconds: a request may need them to arrive. */
const MARGIN_MS = 30_000;
const LIFETIME_MIN_MS = 60_000;
/** When two tokens are refused within this time, the cause is not the token. */
const REPLACE_EVERY_MS = 5000;
const RETRY_BASE_MS = 1000;
const RETRY_CAP_MS = 30_000;

/**
 * The lifetime that `expires_in` means. The interface does not show its unit: it is the one that
 * makes the 24 hours that the interface promises. Without such a unit it is read as seconds, and
 * `sure` is false.
 */
export function lifetimeOf(expiresIn: bigint | undefined): { ms: number; sure: boolean } {
  const value = expiresIn ?? 0n;
  const isDay = (unitMs: bigint) => {
    const off = value * unitMs - BigInt(DAY_MS);
    return off <= TOLERANCE_MS && -off <= TOLERANCE_MS;
  };
  const unitMs = UNITS_MS.find(isDay);
  if (unitMs !== undefined) return { ms: Number(value * unitMs), sure: true };
  const seconds = value > BigInt(DAY_MS / 1000) ? DAY_MS : Number(value) * 1000;
  return { ms: Math.max(seconds, LIFETIME_MIN_MS), sure: false };
}

export class ClientToken {
  readonly #deps: ClientTokenDeps;
  #current: (IssuedToken & { renewAt: Instant; endsAt: Instant }) | undefined;
  #fetching: Promise<TokenResult> | undefined;
  #failures = 0;
  #retryAt: Instant = 0;
  #lastFailure: TokenFailure = { cause: 'unreachable' };
  #replacedAt: Instant = Number.NEGATIVE_INFINITY;
  #warned = false;
  #appNo: bigint | undefined;

  constructor(deps: ClientTokenDeps) {
    this.#deps = deps;
  }

  /** The number of the app of the newest token that named one. */
  get appNo(): bigint | undefined {
    return this.#appNo;
  }

  /** A valid token; waits for it until the deadline at most. Never rejects. */
  async get(deadlineAt: Instant, signal?: AbortSignal): Promise<TokenResult> {
    const now = this.#deps.clock.now();
    const current = this.#current;
    if (current && now < current.endsAt) {
      if (now >= current.renewAt && now >= this.#retryAt) void this.#fetch();
      return { token: current.token, appNo: current.appNo };
    }
    if (!this.#fetching && now < this.#retryAt) return { failure: this.#lastFailure };
    const late = () => ({ failure: { cause: 'unreachable' } }) as const;
    return withDeadline(this.#fetch(), Math.max(0, deadlineAt - now), late, signal);
  }

  /**
   * Another token than the refused one. Undefined when a fetch cannot help, because the refused one
   * has itself just replaced another.
   */
  async replace(
    refused: string,
    deadlineAt: Instant,
    signal?: AbortSignal,
  ): Promise<TokenResult | undefined> {
    if (this.#current?.token === refused) {
      const now = this.#deps.clock.now();
      if (now - this.#replacedAt < REPLACE_EVERY_MS) return undefined;
      this.#replacedAt = now;
      this.#current = undefined;
    }
    return this.get(deadlineAt, signal);
  }

  #fetch(): Promise<TokenResult> {
    this.#fetching ??= this.#fetchOnce().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetchOnce(): Promise<TokenResult> {
    const { fetchToken, clock, random, log, metrics } = this.#deps;
    const fetched = await fetchToken();
    if ('failure' in fetched) {
      const { failure } = fetched;
      const waitMs = backoffMs(this.#failures, RETRY_BASE_MS, RETRY_CAP_MS, random);
      this.#failures += 1;
      this.#lastFailure = failure;
      this.#retryAt = Math.max(clock.now() + waitMs, failure.retryAt ?? 0);
      const reason = failure.reason && faultText(failure.reason);
      log.warn({ cause: failure.cause, reason, failures: this.#failures }, 'no client token');
      // Any other cause says nothing about the secret.
      if (failure.cause === 'unauthorized') metrics.clientTokenValid.set(0);
      return { failure };
    }
    const { token, appNo, expiresIn, startedAt } = fetched;
    metrics.clientTokenValid.set(1);
    const { ms, sure } = lifetimeOf(expiresIn);
    if (!sure && !this.#warned)
      log.warn({ lifetimeMs: ms }, 'expires_in fits no unit: read as seconds, renewed early');
    this.#warned = !sure;
    this.#appNo = appNo ?? this.#appNo;
    this.#failures = 0;
    this.#retryAt = 0;
    const endsAt = startedAt + Math.max(ms - MARGIN_MS, ms / 2);
    this.#current = { token, appNo, endsAt, renewAt: startedAt + ms * (sure ? 0.9 : 0.5) };
    return { token, appNo };
  }
}

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
  if (!record) return { failure: tokenFailureOf(exchanged, signal) };
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

function tokenFailureOf(exchanged: ExchangeResult, signal: RateSignal): TokenFailure {
  if (signal.kind === 'throttled' || signal.kind === 'maintenance') {
    const answer = exchanged.end === 'answered' ? exchanged.answer : undefined;
    return { cause: signal.kind, retryAt: signal.retryAt, answer };
  }
  const { cause, reason } = failureOf(exchanged);
  return { cause: cause === 'refused' ? 'unauthorized' : cause, reason };
}
