/**
 * Types of the service client: requests, results and causes. Every union is closed, so that a
 * missing case does not compile.
 */
import type { Instant } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';

/** The purpose of a poll, in the order in which waiting polls are served. */
export type Priority = 'unknown' | 'pending' | 'steady';

/**
 * Traffic whose deadlines are kept apart: our own polls, reads of apps, writes of apps, and
 * requests for the managed client token.
 */
export type TrafficClass = 'polls' | 'app-read' | 'app-write' | 'client-token';

/** What survives a restart, one row for each class. */
export interface QuotaState {
  name: TrafficClass;
  /** Until when the service asked this class to send nothing. */
  blockedUntil: Instant | null;
  /**
   * The rate of polls right after the last throttling or outage, in requests per second of all
   * daemons together, the instant from which it rises, and how long it would rise from zero. Null
   * before the first one, and for other traffic.
   */
  rate: number | null;
  risesFrom: Instant | null;
  riseMs: number | null;
  /** When a person last removed the deadlines; those received before it are void. */
  clearedAt: Instant | null;
}

/** Where the quota is stored; another stage owns the table. */
export interface QuotaStore {
  load(): Promise<QuotaState[]>;
  /** Keeps the later deadline, and the later throttling with its rate. */
  save(state: QuotaState): Promise<void>;
  /** Removes the deadlines of all classes, and lets the rate rise from now on. */
  clear(at: Instant): Promise<void>;
}

/** Why a poll is inconclusive. */
export type InconclusiveCause =
  | 'maintenance'
  | 'throttled'
  /** No answer: the service was not reached, the connection was reset, or the deadline passed. */
  | 'unreachable'
  /** An answer that is truncated, too large, not JSON, or not the requested record. */
  | 'unreadable'
  /** The service refused our credentials. */
  | 'unauthorized'
  /** The service refused for a reason other than absence. */
  | 'refused'
  /** The service failed: 5xx, 500/999, 500/499. */
  | 'error'
  /** An absence, while nothing that is known to exist was answered. */
  | 'unconfirmed'
  /** No request was made: no slot came in time, the signal aborted, or the client is closed. */
  | 'budget';

/** The result of one poll. Both instants are those of the request, without waiting for budget. */
export type Observation<T> = { startedAt: Instant; endedAt: Instant } & (
  | { result: 'seen'; record: T; raw: Json }
  | { result: 'absent'; status: number; message: string }
  | {
      result: 'inconclusive';
      cause: InconclusiveCause;
      retryAt?: Instant | undefined;
      /** No request was made, for lack of budget or of a client token. */
      isUnsent?: true;
    }
);

/** Why it is certain that no byte of a request left. */
export type NotSentCause =
  | 'name_lookup'
  | 'connection_refused'
  | 'connect_timeout'
  | 'tls'
  /** Any other failure before the connection was established. */
  | 'not_connected'
  /** The deadline passed before the first byte. */
  | 'deadline'
  /** `mayStillSend` returned false. */
  | 'withdrawn'
  | 'aborted'
  /** The request cannot be written as HTTP. */
  | 'invalid_request'
  /** No managed client token could be fetched. */
  | 'no_client_token'
  /** Too many requests of apps are open. */
  | 'busy';

/** Why the outcome of a request that left is not known. */
export type UnknownCause =
  | 'reset'
  | 'timeout'
  | 'aborted'
  | 'truncated'
  | 'too_large'
  | 'unreadable'
  /** 500/999, 500/499, another 5xx, or body status 500. */
  | 'server_error'
  /** A success envelope without its number or hash. */
  | 'no_number'
  /** Anything that the interface does not name, such as a redirect. */
  | 'unexpected';

/** The class of a write's answer; `parse/outcome.ts` decides. */
export type WriteOutcome =
  | {
      class: 'accepted';
      txAppNo?: bigint;
      txLogNo?: bigint;
      txHash?: string;
      tokenId?: bigint;
    }
  | {
      class: 'rejected';
      status: number;
      /** The service's own code (`199`, `invalid_grant`), or the status as text. */
      code: string;
      message: string;
      /** What of the caller is refused; absent when the request itself is. */
      refuses?: 'credential' | 'rights' | undefined;
    }
  | {
      class: 'unavailable';
      reason: 'maintenance' | 'throttled';
      retryAt?: Instant | undefined;
    }
  | { class: 'not_sent'; cause: NotSentCause }
  /** `status` is the HTTP status, if one was read. */
  | { class: 'unknown'; cause: UnknownCause; status?: number | undefined };

/** `transaction`, `nft` and `other` are writes; everything else is `read`. */
export type ForwardFamily = 'transaction' | 'nft' | 'other' | 'read';

/** One request of an app, sent unchanged. */
export interface ForwardRequest {
  method: string;
  /** Raw path and query. */
  path: string;
  host: 'base' | 'auth' | 'tx';
  /** Credentials and connection headers are left out. */
  headers: readonly (readonly [string, string])[];
  body: Uint8Array;
  /** The managed client token, the caller's own `Authorization` header, or none. */
  authorization: { managed: true } | { own: string } | 'none';
  family: ForwardFamily;
  /** After it no byte leaves and no answer is awaited. */
  deadlineAt: Instant;
  /** Called immediately before the first byte of every send; false prevents the send. */
  mayStillSend?: () => boolean;
  /** Awaited before a second send; when it rejects, the first answer stands. */
  beforeResend?: (after: 'unauthorized') => Promise<void>;
  /** Receives an answer that is larger than the client buffers; used for reads only. */
  overflow?: Overflow;
}

/**
 * Opens the stream for an answer that is larger than the client buffers.
 * @param beginning the buffered beginning of the body
 * @param stop ends the exchange when the reader is gone
 */
export type Overflow = (head: Head, beginning: Uint8Array, stop: () => void) => Sink;

export interface Head {
  status: number;
  /** In their order, duplicates kept. */
  headers: [string, string][];
}

/** Receives the rest of a body. */
export interface Sink {
  /** False when the next piece has to wait for `drained`. */
  write(piece: Uint8Array): boolean;
  /** Calls `resume` once when the sink accepts more. */
  drained(resume: () => void): void;
  end(): void;
  /** Ends the stream so that its reader sees that it is incomplete. */
  cut(): void;
}

/** The part of an answer that was read. */
export interface Answer extends Head {
  body: Uint8Array;
  /** False when the body was truncated or too large; `body` then holds its beginning. */
  complete: boolean;
}

export interface Forwarded {
  /** The last answer; absent when none was read. */
  answer?: Answer | undefined;
  outcome: WriteOutcome;
  /** Just before the first byte of the last send; when nothing left, the start of the attempt. */
  startedAt: Instant;
  endedAt: Instant;
  /** The app number of the managed token, if the service named it. */
  appNo?: bigint | undefined;
  /** True when the body was passed to `overflow`, completely or not. */
  streamed?: true | undefined;
}
