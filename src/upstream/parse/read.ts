/**
 * Classifies the answer to a read. Pure. A read is conclusive only when the complete answer holds
 * the requested record, or when the service's own error shape names what was requested and says
 * that it is absent. Every other answer has a cause: a 404 of a framework or a proxy, or one that
 * names nothing, may as well come from a route that is missing for a moment.
 */
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import { isTlsFault } from '../../resources/faults.ts';
import type { ExchangeResult } from '../http/exchange.ts';

import { type Envelope, type ErrorItem, parseEnvelope, recordIn } from './envelope.ts';
import { classifyExchange, rateSignalOf } from './outcome.ts';
import {
  type MaintenanceRecord,
  maintenanceRecord,
  type TokenCheckRecord,
  type TokenPage,
  type TokenRecord,
  tokenCheckRecord,
  tokenPage,
  tokenRecord,
  type WalletRecord,
  walletRecord,
} from './records.ts';

/** Why a poll is inconclusive. */
export const INCONCLUSIVE_CAUSES = [
  'maintenance',
  'throttled',
  /** No answer: the service was not reached, the connection was reset, or the deadline passed. */
  'unreachable',
  /** An answer that is truncated, too large, not JSON, or not the requested record. */
  'unreadable',
  /** The service refused our credentials. */
  'unauthorized',
  /** The service refused for a reason other than absence. */
  'refused',
  /** The service failed: 5xx, 500/999, 500/499. */
  'error',
  /** An absence, while nothing that is known to exist was answered. */
  'unconfirmed',
  /** No request was made: no slot came in time, the signal aborted, or the client is closed. */
  'budget',
] as const;
export type InconclusiveCause = (typeof INCONCLUSIVE_CAUSES)[number];

/** The result of one poll. Both instants are those of the request, without waiting for budget. */
export type Observation<T> = { startedAt: Instant; endedAt: Instant } & (
  | { result: 'seen'; record: T; raw: Json }
  | { result: 'absent'; status: number; message: string }
  | {
      result: 'inconclusive';
      cause: InconclusiveCause;
      /** Of `unreachable`: what happened, such as `tls_expired`. */
      reason?: string | undefined;
      retryAt?: Instant | undefined;
      /** No request was made, for lack of budget or of a client token. */
      isUnsent?: true;
    }
);

/** How the answers of one endpoint are read. */
export interface RecordParser<T> {
  /** The record, or undefined when it is not the requested one. */
  parse: (data: Json) => T | undefined;
  /** True for a refusal that says that the target does not exist. */
  isAbsence: (refusal: Envelope & { shape: 'error' }) => boolean;
}

const never = () => false;

/** Codes of section 7.2: the wallet is not found, or it is withdrawn or under sanction. */
const WALLET_ABSENT = new Set(['398', '199']);

export function walletParser(addr: string): RecordParser<WalletRecord> {
  return {
    parse: (data) => {
      const { data: wallet } = walletRecord.safeParse(data);
      return wallet && addressKey(wallet.addr) === addressKey(addr) ? wallet : undefined;
    },
    isAbsence: ({ status, code, items }) =>
      status === 406 && items.length === 0 && WALLET_ABSENT.has(code),
  };
}

/** Statuses of section 7.1 with which an absent token may read; the interface does not show it. */
const TOKEN_ABSENT = new Set([400, 404, 406, 422]);

export function tokenParser(contractId: bigint, tokenId: bigint): RecordParser<TokenRecord> {
  return {
    parse: (data) => {
      const { data: token } = tokenRecord.safeParse(data);
      return token?.contractId === contractId && token.tokenId === tokenId ? token : undefined;
    },
    isAbsence: ({ status, items }) =>
      TOKEN_ABSENT.has(status) && items.some((item) => isTokenAbsent(status, item)),
  };
}

export function pageParser(contractId: bigint): RecordParser<TokenPage> {
  return {
    parse: (data) => {
      const { data: page } = tokenPage.safeParse(data);
      return page?.tokens.every((token) => token.contractId === contractId) ? page : undefined;
    },
    isAbsence: never,
  };
}

export const maintenanceParser: RecordParser<MaintenanceRecord> = {
  parse: (data) => maintenanceRecord.safeParse(data).data,
  isAbsence: never,
};

export const tokenCheckParser: RecordParser<TokenCheckRecord> = {
  parse: (data) => tokenCheckRecord.safeParse(data).data,
  isAbsence: never,
};

/** The wallet with this address in the body of an answer to an app; undefined if it has none. */
export function readWallet(body: Uint8Array, addr: string): WalletRecord | undefined {
  return readRecord(body, walletParser(addr));
}

/** Like `readWallet`, for a token. */
export function readToken(
  body: Uint8Array,
  contractId: bigint,
  tokenId: bigint,
): TokenRecord | undefined {
  return readRecord(body, tokenParser(contractId, tokenId));
}

function readRecord<T>(body: Uint8Array, parser: RecordParser<T>): T | undefined {
  const envelope = parseEnvelope(body);
  return envelope.shape === 'success' ? parser.parse(envelope.data) : undefined;
}

export function classifyRead<T>(
  exchanged: ExchangeResult,
  parser: RecordParser<T>,
): Observation<T> {
  const { startedAt, endedAt } = exchanged;
  const times = { startedAt, endedAt };
  const inconclusive = (cause: InconclusiveCause, retryAt?: Instant): Observation<T> => ({
    ...times,
    result: 'inconclusive',
    cause,
    retryAt,
  });
  const signal = rateSignalOf(exchanged);
  if (signal.kind === 'throttled' || signal.kind === 'maintenance')
    return inconclusive(signal.kind, signal.retryAt);
  if (exchanged.end !== 'answered')
    return { ...times, result: 'inconclusive', ...failureOf(exchanged) };
  const envelope = parseEnvelope(exchanged.answer.body);
  if (envelope.shape === 'error' && exchanged.answer.status < 500 && parser.isAbsence(envelope)) {
    const { status, message } = envelope;
    return { ...times, result: 'absent', status, message };
  }
  const raw = exchanged.answer.status < 300 ? recordIn(envelope) : undefined;
  if (raw === undefined) return inconclusive(failureCause(exchanged));
  const record = parser.parse(raw);
  return record === undefined
    ? inconclusive('unreadable')
    : { ...times, result: 'seen', record, raw };
}

/** The same with what happened, if there is no answer. */
export function failureOf(exchanged: ExchangeResult) {
  const cause = failureCause(exchanged);
  const reason = 'cause' in exchanged ? exchanged.cause : undefined;
  return { cause, reason: cause === 'unreachable' ? reason : undefined };
}

/** Why an exchange brought no record. */
function failureCause(exchanged: ExchangeResult): InconclusiveCause {
  const outcome = classifyExchange(exchanged, 'read');
  switch (outcome.class) {
    case 'not_sent':
      return 'unreachable';
    case 'rejected':
      return outcome.refuses ? 'unauthorized' : 'refused';
    case 'unknown':
      if (['reset', 'timeout', 'aborted'].includes(outcome.cause) || isTlsFault(outcome.cause))
        return 'unreachable';
      return outcome.cause === 'server_error' ? 'error' : 'unreadable';
    default:
      return 'unreadable';
  }
}

/** Whether an item names the token and says that it is absent. A 404 says so by itself. */
function isTokenAbsent(status: number, { field, message, validation }: ErrorItem): boolean {
  const isField = /^token_?id$/i.test(field);
  if (isField && (status === 404 || /^exists?$/i.test(validation))) return true;
  const isNamed = isField || /(?<!\baccess[ _-]?)\b(token|nft)\b/i.test(message);
  return isNamed && saysAbsent(message);
}

function saysAbsent(message: string): boolean {
  return /\b(not (found|exist)|does ?n[o']t exist|no such|unknown)\b/i.test(message);
}
