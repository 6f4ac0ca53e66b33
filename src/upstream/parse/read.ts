/**
 * Classifies the answer to a read. Pure. A read is conclusive only when the complete answer holds
 * the requested record or says that it is absent; every other answer has a cause.
 */
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { ExchangeResult } from '../http/exchange.ts';
import type { InconclusiveCause, Observation } from '../types.ts';
import { type Envelope, parseEnvelope, recordIn } from './envelope.ts';
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

/** How the answers of one endpoint are read. */
export interface RecordParser<T> {
  /** The record, or undefined when it is not the requested one. */
  parse: (data: Json) => T | undefined;
  /** True for a refusal that says that the target does not exist. */
  isAbsence: (refusal: Envelope & { shape: 'error' }) => boolean;
}

const never = () => false;

/** Section 7.2 has a code for an absent wallet. */
export function walletParser(addr: string): RecordParser<WalletRecord> {
  return {
    parse: (data) => {
      const { data: wallet } = walletRecord.safeParse(data);
      return wallet && addressKey(wallet.addr) === addressKey(addr) ? wallet : undefined;
    },
    isAbsence: ({ status, code }) => status === 406 && code === '398',
  };
}

/** The interface does not show how an absent token reads: by 404, by 422, or by its message. */
export function tokenParser(contractId: bigint, tokenId: bigint): RecordParser<TokenRecord> {
  return {
    parse: (data) => {
      const { data: token } = tokenRecord.safeParse(data);
      return token?.contractId === contractId && token.tokenId === tokenId ? token : undefined;
    },
    isAbsence: ({ status, message }) =>
      status === 404 || status === 422 || ([400, 406].includes(status) && mentionsAbsence(message)),
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
  if (exchanged.end !== 'answered') return inconclusive(failureCause(exchanged));
  const envelope = parseEnvelope(exchanged.answer.body);
  if (envelope.shape === 'error' && parser.isAbsence(envelope)) {
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

/** Why an exchange brought no record. */
export function failureCause(exchanged: ExchangeResult): InconclusiveCause {
  const outcome = classifyExchange(exchanged, 'read');
  switch (outcome.class) {
    case 'not_sent':
      return 'unreachable';
    case 'rejected':
      return outcome.refuses ? 'unauthorized' : 'refused';
    case 'unknown':
      if (['reset', 'timeout', 'aborted'].includes(outcome.cause)) return 'unreachable';
      return outcome.cause === 'server_error' ? 'error' : 'unreadable';
    default:
      return 'unreadable';
  }
}

function mentionsAbsence(message: string): boolean {
  return /\b(not (found|exist)|does ?n[o']t exist|no such|unknown token)/i.test(message);
}
