/**
 * The words of this stage: what may be asked of the service, and everything that asking can end in.
 * Types only. Every union is closed, so that a caller who forgets a case does not compile.
 */
import type { Instant } from '../kernel/clock.ts';
import type { Json } from '../kernel/json.ts';

/** What a look is for; the order in which looks that wait are let through. */
export type Priority = 'unknown' | 'pending' | 'steady';

/** Whose deadlines are kept apart: our own looks, reads of apps, writes of apps. */
export type TrafficClass = 'polls' | 'app-read' | 'app-write';

/** What must survive a restart, one row for each class. */
export interface QuotaState {
  name: TrafficClass;
  /** Until when the service asked this class to be silent. */
  blockedUntil: Instant | null;
  /** Requests per second that the control allows all daemons together; 0 for app traffic. */
  rate: number;
  /** CUBIC: the rate at the last throttling, and the instant from which it recovers. */
  lastMax: number | null;
  throttledAt: Instant | null;
}

/** The place where quota is kept; the table belongs to another stage. */
export interface QuotaKeeper {
  load(): Promise<QuotaState[]>;
  /** Called when a deadline is drawn, and at most every ten seconds while the rate grows. */
  save(state: QuotaState): Promise<void>;
}

/** Why a look says nothing about its object. */
export type InconclusiveCause =
  | 'maintenance'
  | 'throttled'
  /** No answer: not reached, reset, or too late. */
  | 'unreachable'
  /** An answer that is cut, too large, not JSON, or not the record that was asked for. */
  | 'unreadable'
  /** Our credentials are not good enough. */
  | 'unauthorized'
  /** The service said no, for another reason than absence. */
  | 'refused'
  /** The service failed: 5xx, 500/999, 500/499. */
  | 'error'
  /** No request was made: our own budget had no room in time, the signal aborted, or we stop. */
  | 'budget';

/** How one look ended. Both instants belong to the request itself, not to waiting for budget. */
export type Observation<T> = { startedAt: Instant; endedAt: Instant } & (
  | { result: 'seen'; record: T; raw: Json }
  | { result: 'absent'; status: number; message: string }
  | { result: 'inconclusive'; cause: InconclusiveCause; retryAt?: Instant }
);

/** Why it is certain that no byte of a request left. */
export type NotSentCause =
  | 'name_lookup'
  | 'connection_refused'
  | 'connect_timeout'
  | 'tls'
  /** Any other failure before the connection stood. */
  | 'not_connected'
  /** The deadline passed before the first byte. */
  | 'deadline'
  /** `mayStillSend` said no. */
  | 'withdrawn'
  | 'aborted'
  /** The request cannot be written as HTTP. */
  | 'invalid_request'
  /** The managed client token could not be had. */
  | 'no_client_token'
  /** More requests of apps are open than the setting allows. */
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

/** What an exchange means for a write; the table in `outcome.ts` decides. */
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
      /** The whole numbers in the message, in their order; left out when there are none. */
      figures?: bigint[];
    }
  | { class: 'unavailable'; reason: 'maintenance' | 'throttled'; retryAt?: Instant }
  | { class: 'not_sent'; cause: NotSentCause }
  /** `status` is the HTTP status, as far as one was read. */
  | { class: 'unknown'; cause: UnknownCause; status?: number };

/** `transaction`, `nft` and `other` are writes; `read` is everything else that an app asks. */
export type ForwardFamily = 'transaction' | 'nft' | 'other' | 'read';

/** One request of an app, to be sent as it is. */
export interface ForwardRequest {
  method: string;
  /** Raw path and query; sent without being touched. */
  path: string;
  host: 'base' | 'auth' | 'tx';
  /** `content-type`, `accept` and the like. Credentials and connection headers are left out. */
  headers: readonly (readonly [string, string])[];
  body: Uint8Array;
  /** The managed client token, the caller's own `Authorization` header, or none. */
  authorization: { managed: true } | { own: string } | 'none';
  family: ForwardFamily;
  /** After it no byte leaves, and no answer is waited for. */
  deadlineAt: Instant;
  /** Asked immediately before the first byte of every send; false: it is not sent. */
  mayStillSend?: () => boolean;
  /** Awaited before a second send; when it rejects, the first answer stands. */
  beforeResend?: (after: 'unauthorized') => Promise<void>;
  signal?: AbortSignal;
  /** Where an answer goes on that is larger than what is kept; only for what changes nothing. */
  overflow?: Overflow;
}

/** Opens the way on for an answer that does not fit: its head, and the beginning of its body. */
export type Overflow = (head: Head, begun: Uint8Array, stop: () => void) => Sink;

export interface Head {
  status: number;
  /** As they came, duplicates kept. */
  headers: [string, string][];
}

/** Takes the rest of a body, as fast as its reader does. */
export interface Sink {
  /** False when the next piece has to wait for `drained`. */
  write(piece: Uint8Array): boolean;
  /** Calls once when there is room again. */
  drained(go: () => void): void;
  /** All is written. */
  end(): void;
  /** It ends here, unfinished, and whoever reads must see that. */
  cut(): void;
}

/** What was read of an answer. */
export interface Answer extends Head {
  body: Uint8Array;
  /** False when the body was cut or larger than what is kept; `body` then is its beginning. */
  complete: boolean;
}

export interface Forwarded {
  /** The last answer. Absent when none was read. */
  answer?: Answer;
  outcome: WriteOutcome;
  /** Just before the first byte of the last send; when nothing left, when it was tried. */
  startedAt: Instant;
  endedAt: Instant;
  /** How many times bytes left: 0, 1, or 2 after a 401 on the managed token. */
  sends: number;
  /** The app number of the managed token that was used, when the service told it. */
  appNo?: bigint;
  /** True when the body went on to `overflow`; whether it ended well is told there. */
  streamed?: true;
}
