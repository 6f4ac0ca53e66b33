/**
 * The managed client token: fetched once, shared by all who ask at the same time, renewed in the
 * background ahead of its end, and fetched again once when the service refuses it.
 *
 * It promises: one fetch at a time; no caller waits beyond its own deadline; the token and the
 * secret are never written anywhere, failures are told by their kind only.
 */
import { backoffMs } from '../../kernel/backoff.ts';
import { after, type Clock, type Instant } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { Random } from '../../kernel/random.ts';
import type { Answer, InconclusiveCause } from '../types.ts';

/** Why there is no token; `answer` is what the service said to the fetch, when it was temporary. */
export interface TokenFailure {
  cause: InconclusiveCause;
  retryAt?: Instant;
  answer?: Answer;
}
export type TokenGot = Granted | { failure: TokenFailure };
/** A token, and the number of the app that it acts for, when the service told it. */
export interface Granted {
  token: string;
  appNo?: bigint | undefined;
}
/** One fetch: an access token and its `expires_in` as it came, or why there is none. */
export type TokenFetched =
  | (Granted & { expiresIn: bigint | undefined; startedAt: Instant })
  | { failure: TokenFailure };

export interface ClientToken {
  /** A token that is good as far as known. Never rejects. */
  get(deadlineAt: Instant, signal?: AbortSignal): Promise<TokenGot>;
  /**
   * Another token than the one that the service refused. Undefined when a fetch cannot help,
   * because the one it refused was itself fetched after a refusal a moment ago.
   */
  replace(
    refused: string,
    deadlineAt: Instant,
    signal?: AbortSignal,
  ): Promise<TokenGot | undefined>;
}

export interface ClientTokenOptions {
  /** Fetches a token within its own deadline. Must not reject. */
  issue: () => Promise<TokenFetched>;
  clock: Clock;
  random: Random;
  log: Log;
}

const DAY_MS = 24 * 3_600_000;
const UNITS: readonly { name: string; ms: bigint }[] = [
  { name: 's', ms: 1000n },
  { name: 'ms', ms: 1n },
  { name: 'min', ms: 60_000n },
  { name: 'h', ms: 3_600_000n },
];
/** How far from 24 hours a lifetime may be and still count as that. */
const TOLERANCE_MS = BigInt(DAY_MS / 10);
/** A token is not used in its last seconds, which a request may need to arrive. */
const MARGIN_MS = 30_000;
const LIFETIME_MIN_MS = 60_000;
/** A second refusal within this time is not the token's fault. */
const REPLACE_EVERY_MS = 5000;
const COOL_BASE_MS = 1000;
const COOL_CAP_MS = 30_000;

/**
 * The lifetime that `expires_in` means. Its unit is not shown: the one is taken that makes it the
 * 24 hours that the interface promises. When none does, seconds, and `sure` is false.
 */
export function lifetimeOf(expiresIn: bigint | undefined): { ms: number; sure: boolean } {
  const value = expiresIn ?? 0n;
  const near = (ms: bigint) => {
    const off = value * ms - BigInt(DAY_MS);
    return off <= TOLERANCE_MS && -off <= TOLERANCE_MS;
  };
  const unit = UNITS.find(({ ms }) => near(ms));
  if (unit) return { ms: Number(value * unit.ms), sure: true };
  const seconds = value > BigInt(DAY_MS / 1000) ? DAY_MS : Number(value) * 1000;
  return { ms: Math.max(seconds, LIFETIME_MIN_MS), sure: false };
}

export function makeClientToken(options: ClientTokenOptions): ClientToken {
  return new ManagedToken(options);
}

class ManagedToken implements ClientToken {
  readonly #options: ClientTokenOptions;
  #current: (Granted & { renewAt: Instant; endsAt: Instant }) | undefined;
  #fetching: Promise<TokenGot> | undefined;
  #failures = 0;
  #coolUntil: Instant = 0;
  #lastFailure: TokenFailure = { cause: 'unreachable' };
  #replacedAt: Instant = Number.NEGATIVE_INFINITY;
  #warned = false;

  constructor(options: ClientTokenOptions) {
    this.#options = options;
  }

  async get(deadlineAt: Instant, signal?: AbortSignal): Promise<TokenGot> {
    const now = this.#options.clock.now();
    const current = this.#current;
    if (current && now < current.endsAt) {
      if (now >= current.renewAt && now >= this.#coolUntil) void this.#fetch();
      return { token: current.token, appNo: current.appNo };
    }
    if (!this.#fetching && now < this.#coolUntil) return { failure: this.#lastFailure };
    return waitBounded(this.#fetch(), deadlineAt - now, signal);
  }

  async replace(
    refused: string,
    deadlineAt: Instant,
    signal?: AbortSignal,
  ): Promise<TokenGot | undefined> {
    if (this.#current?.token === refused) {
      const now = this.#options.clock.now();
      if (now - this.#replacedAt < REPLACE_EVERY_MS) return undefined;
      this.#replacedAt = now;
      this.#current = undefined;
    }
    return this.get(deadlineAt, signal);
  }

  #fetch(): Promise<TokenGot> {
    this.#fetching ??= this.#fetchOnce().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetchOnce(): Promise<TokenGot> {
    const { issue, clock, random, log } = this.#options;
    const fetched = await issue();
    if ('failure' in fetched) {
      const { failure } = fetched;
      const cool = backoffMs(this.#failures, COOL_BASE_MS, COOL_CAP_MS, random);
      this.#failures += 1;
      this.#lastFailure = failure;
      this.#coolUntil = Math.max(clock.now() + cool, failure.retryAt ?? 0);
      log.warn({ cause: failure.cause, failures: this.#failures }, 'no client token');
      return { failure };
    }
    const { token, appNo, expiresIn, startedAt } = fetched;
    const { ms, sure } = lifetimeOf(expiresIn);
    if (!sure && !this.#warned)
      log.warn({ lifetimeMs: ms }, 'expires_in fits no unit: taken as seconds, renewed early');
    this.#warned = !sure;
    this.#failures = 0;
    this.#coolUntil = 0;
    const endsAt = startedAt + Math.max(ms - MARGIN_MS, ms / 2);
    this.#current = { token, appNo, endsAt, renewAt: startedAt + ms * (sure ? 0.9 : 0.5) };
    return { token, appNo };
  }
}

/** The promise, or a failure when the time is over or the signal aborts first. */
function waitBounded(
  promise: Promise<TokenGot>,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<TokenGot> {
  return new Promise((resolve) => {
    const done = (got: TokenGot) => {
      stop();
      signal?.removeEventListener('abort', giveUp);
      resolve(got);
    };
    const giveUp = () => done({ failure: { cause: 'unreachable' } });
    const stop = after(Math.max(0, ms), giveUp);
    if (signal?.aborted) return giveUp();
    signal?.addEventListener('abort', giveUp, { once: true });
    promise.then(done, giveUp);
  });
}
