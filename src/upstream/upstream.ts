/**
 * The door of this stage: how to speak to the service. One typed method for each thing we ask
 * ourselves, one `forward` for what apps ask, one client token, and one budget for looks.
 *
 * It promises: a write is sent at most once for each call (twice after a 401 on the managed token),
 * a write never waits behind a look, and `not_sent` is said only with proof. It never retries a
 * read, never follows a redirect, and never writes a token or a secret anywhere.
 */
import type { Chance } from '../kernel/chance.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { Metrics } from '../kernel/metrics.ts';
import type {
  MaintenanceRecord,
  TokenCheckRecord,
  TokenPage,
  TokenRecord,
  WalletRecord,
} from './records.ts';
import type {
  Forwarded,
  ForwardRequest,
  Look,
  Priority,
  QuotaKeeper,
  TrafficClass,
} from './words.ts';

export type {
  MaintenanceRecord,
  TokenCheckRecord,
  TokenPage,
  TokenRecord,
  WalletRecord,
} from './records.ts';
export type {
  Answer,
  Forwarded,
  ForwardFamily,
  ForwardRequest,
  Look,
  LookCause,
  NotSentCause,
  Priority,
  QuotaKeeper,
  QuotaState,
  TrafficClass,
  UnknownCause,
  WriteOutcome,
} from './words.ts';

export interface UpstreamSettings {
  /** The whole of a read, from the first attempt to connect to the last byte. */
  readTimeoutMs: number;
  /** The same for a write, if its own deadline is not earlier. */
  writeTimeoutMs: number;
  connectTimeoutMs: number;
  /** The largest answer that is read, in bytes. */
  bodyBytesMax: number;
  /** The ceiling for looks, in requests per second, of all daemons together. */
  budgetPerS: number;
  /** Where looks begin when nothing was learned; doubled every ten clean seconds. */
  startRatePerS: number;
  /** Looks open at once. */
  concurrencyMax: number;
  /** The part of the budget that steady looks keep, and looks keep from app traffic; 0 to 1. */
  steadyShare: number;
  /** Looks that may wait for budget, and for how long. */
  waitingMax: number;
  waitMs: number;
  /** Requests of apps open at once; one more is `not_sent`, `busy`. */
  forwardsMax: number;
}

export interface UpstreamOptions {
  /** Origins, or origins with a path before `/v1`. */
  baseUrl: string;
  authUrl: string;
  txUrl: string;
  clientId: string;
  clientSecret: string;
  clock: Clock;
  chance: Chance;
  log: Log;
  metrics: Metrics;
  quota: QuotaKeeper;
  settings: UpstreamSettings;
}

/** Filters of a token list (interface, section 4.1, row 6). */
export interface TokensQuery {
  ownerAddr?: string;
  creatorAddr?: string;
  isLocked?: boolean;
  valid?: boolean;
  page?: number;
  perPage?: number;
}

/** What the budget for looks has to say to whoever plans them. */
export interface BudgetView {
  /** How many looks may start at this instant without waiting: 0, 1 or 2. */
  free(): number;
  /** When the next look may start at the earliest; in the past or present when one may now. */
  nextAt(): Instant;
  /** Looks per second that this daemon may make in the long run, app traffic subtracted. */
  ratePerS(): number;
  waiting(): number;
  /** Requests per second that the control allows all daemons together. */
  learnedPerS(): number;
}

/** Looks wait for budget by themselves; `signal` ends the wait and the request. None rejects. */
export interface Upstream {
  /** The wallet with this address. @returns `absent` for 406/398 */
  account(addr: string, priority: Priority, signal?: AbortSignal): Promise<Look<WalletRecord>>;
  /** One token. @returns `absent` for a rejection that says so (404, 422, or in words) */
  token(
    contractId: bigint,
    tokenId: bigint,
    priority: Priority,
    signal?: AbortSignal,
  ): Promise<Look<TokenRecord>>;
  /** One page of a contract's tokens. */
  tokens(
    contractId: bigint,
    query: TokensQuery,
    priority: Priority,
    signal?: AbortSignal,
  ): Promise<Look<TokenPage>>;
  /** The maintenance status; asked without credentials, before any other look that waits. */
  maintenance(signal?: AbortSignal): Promise<Look<MaintenanceRecord>>;
  /** What the service says of our own client token. */
  checkToken(signal?: AbortSignal): Promise<Look<TokenCheckRecord>>;
  /** Sends any request of an app, and judges what came of it. Never rejects. */
  forward(request: ForwardRequest): Promise<Forwarded>;
  /** Until when the service asked this class to be silent; undefined when it may speak now. */
  blockedUntil(cls: TrafficClass): Instant | undefined;
  budget: BudgetView;
  /** Divides the budget among that many living daemons. */
  shareAmong(daemons: number): void;
  /** Reads the kept quota again: what other daemons drew counts for us. */
  syncQuota(): Promise<void>;
  /** Ends all waiting, lets open requests finish up to their deadlines, closes connections. */
  close(): Promise<void>;
}
