/**
 * What an exchange says about the object that was looked at. Pure. A look is conclusive only when
 * the record is read whole and is the one that was asked for; everything else has a cause.
 */
import { addressKey } from '../../kernel/addresses.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { Exchanged } from '../http/exchange.ts';
import { lessonOf } from '../rate/learning.ts';
import type { Answer, InconclusiveCause, Observation } from '../types.ts';
import { readEnvelope, type Said } from './envelope.ts';
import { isUnauthorized, judge } from './outcome.ts';
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

/** How one kind of look reads its answer. */
export interface Reading<T> {
  /** The record, or undefined when it is not the one that was asked for. */
  parse: (data: Json) => T | undefined;
  /** Whether a refusal says that the object is not there. */
  isAbsence: (refusal: Said & { shape: 'error' }) => boolean;
}

const never = () => false;

/** Section 7.2 has one code for a wallet that is not there. */
export function walletReading(addr: string): Reading<WalletRecord> {
  return {
    parse: (data) => {
      const { data: wallet } = walletRecord.safeParse(data);
      return wallet && addressKey(wallet.addr) === addressKey(addr) ? wallet : undefined;
    },
    isAbsence: ({ status, code }) => status === 406 && code === '398',
  };
}

/** How an unknown token reads is not shown: 404 and 422 may say so, others only in words. */
export function tokenReading(contractId: bigint, tokenId: bigint): Reading<TokenRecord> {
  return {
    parse: (data) => {
      const { data: token } = tokenRecord.safeParse(data);
      return token?.contractId === contractId && token.tokenId === tokenId ? token : undefined;
    },
    isAbsence: ({ status, message }) =>
      status === 404 || status === 422 || ([400, 406].includes(status) && saysAbsent(message)),
  };
}

export function pageReading(contractId: bigint): Reading<TokenPage> {
  return {
    parse: (data) => {
      const { data: page } = tokenPage.safeParse(data);
      return page?.tokens.every((token) => token.contractId === contractId) ? page : undefined;
    },
    isAbsence: never,
  };
}

export const maintenanceReading: Reading<MaintenanceRecord> = {
  parse: (data) => maintenanceRecord.safeParse(data).data,
  isAbsence: never,
};

export const tokenCheckReading: Reading<TokenCheckRecord> = {
  parse: (data) => tokenCheckRecord.safeParse(data).data,
  isAbsence: never,
};

/** The wallet in an answer that an app got, or undefined when it holds none of that address. */
export function readWallet(body: Uint8Array, addr: string): WalletRecord | undefined {
  return readRecord(body, walletReading(addr));
}

/** The same for a token. */
export function readToken(
  body: Uint8Array,
  contractId: bigint,
  tokenId: bigint,
): TokenRecord | undefined {
  return readRecord(body, tokenReading(contractId, tokenId));
}

function readRecord<T>(body: Uint8Array, reading: Reading<T>): T | undefined {
  const said = readEnvelope(body);
  return said.shape === 'success' ? reading.parse(said.data) : undefined;
}

/** The judgement of one look. */
export function classifyRead<T>(
  exchanged: Exchanged,
  reading: Reading<T>,
  now: Instant,
): Observation<T> {
  const { startedAt, endedAt } = exchanged;
  const inconclusive = (cause: InconclusiveCause, retryAt?: Instant): Observation<T> => ({
    startedAt,
    endedAt,
    result: 'inconclusive',
    cause,
    ...(retryAt === undefined ? {} : { retryAt }),
  });
  const lesson = lessonOf(exchanged, now);
  if (lesson.kind === 'throttled' || lesson.kind === 'maintenance')
    return inconclusive(lesson.kind, lesson.retryAt);
  if (exchanged.end !== 'answered') return inconclusive(lostCause(exchanged));
  const { answer } = exchanged;
  const said = readEnvelope(answer.body);
  if (said.shape === 'error' && reading.isAbsence(said)) {
    const { status, message } = said;
    return { startedAt, endedAt, result: 'absent', status, message };
  }
  const raw = answer.status < 300 ? recordIn(said) : undefined;
  if (raw === undefined) return inconclusive(refusalCause(exchanged, answer));
  const record = reading.parse(raw);
  return record === undefined
    ? inconclusive('unreadable')
    : { startedAt, endedAt, result: 'seen', record, raw };
}

/** Records of the authorization host come bare; what is no record does not parse later. */
function recordIn(said: Said): Json | undefined {
  if (said.shape === 'success') return said.data;
  return said.shape === 'json' ? said.value : undefined;
}

function lostCause(exchanged: Exclude<Exchanged, { end: 'answered' }>): InconclusiveCause {
  if (exchanged.end === 'not_sent') return 'unreachable';
  if (exchanged.end === 'streamed') return 'unreadable';
  return ['reset', 'timeout', 'aborted'].includes(exchanged.cause) ? 'unreachable' : 'unreadable';
}

function refusalCause(exchanged: Exchanged, answer: Answer): InconclusiveCause {
  const outcome = judge(exchanged, 'read', exchanged.endedAt);
  if (outcome.class === 'rejected')
    return isUnauthorized(outcome) || outcome.status === 403 ? 'unauthorized' : 'refused';
  if (outcome.class === 'unknown' && outcome.cause === 'server_error') return 'error';
  return answer.status >= 500 ? 'error' : 'unreadable';
}

function saysAbsent(message: string): boolean {
  return /\b(not (found|exist)|does ?n[o']t exist|no such|unknown token)/i.test(message);
}
