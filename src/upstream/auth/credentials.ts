/**
 * How we prove who we are: HTTP Basic for the authorization host, the managed client token for the
 * rest, and the rule for a token that the service refuses.
 */
import type { Clock, Instant } from '../../kernel/clock.ts';
import type { Json } from '../../kernel/json.ts';
import type { Exchanged } from '../http/exchange.ts';
import { type Host, target } from '../http/hosts.ts';
import type { Transport } from '../http/transport.ts';
import { readEnvelope } from '../parse/envelope.ts';
import { judge } from '../parse/outcome.ts';
import { accessTokenRecord } from '../parse/records.ts';
import { type Lesson, lessonOf } from '../rate/learning.ts';
import type { Answer, InconclusiveCause } from '../types.ts';
import type { ClientToken, TokenFailure, TokenFetched } from './token.ts';

/** The value of `Authorization` at the authorization host. */
export function basicCredentials(clientId: string, clientSecret: string): string {
  return `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
}

export interface TokenFetchOptions {
  transport: Transport;
  auth: Host;
  basic: string;
  clock: Clock;
  timeoutMs: number;
  /** Told what every fetch teaches about limits. */
  onLesson: (lesson: Lesson) => Promise<void>;
}

/** Fetches a client token (interface, section 4.4, row 1). Never rejects. */
export async function fetchClientToken(options: TokenFetchOptions): Promise<TokenFetched> {
  const { transport, auth, basic, clock, timeoutMs, onLesson } = options;
  const exchanged = await transport.exchange('app-read', {
    method: 'POST',
    ...target(auth, '/v1/oauth/token'),
    headers: [
      'authorization',
      basic,
      'content-type',
      'application/x-www-form-urlencoded',
      'accept',
      'application/json',
      'accept-encoding',
      'identity',
    ],
    body: Buffer.from('grant_type=client_credentials'),
    deadlineAt: clock.now() + timeoutMs,
  });
  const lesson = lessonOf(exchanged, clock.now());
  await onLesson(lesson);
  const record = tokenIn(exchanged);
  if (!record) return { failure: failureOf(exchanged, lesson) };
  const { accessToken: token, expiresIn, appNo } = record;
  return { token, appNo, expiresIn, startedAt: exchanged.startedAt };
}

/** What the service said, how many times bytes left for it, and the app that the token is of. */
export type Managed<T> =
  | { last: T; sends: number; appNo?: bigint | undefined }
  | { failure: TokenFailure };

/**
 * Sends with the managed token, and once more with another one when the service refused the first.
 * @param mayResend awaited before the second send; false lets the first answer stand
 */
export async function sendManaged<T>(
  token: ClientToken,
  within: { deadlineAt: Instant; signal?: AbortSignal | undefined },
  send: (bearer: string) => Promise<T>,
  isRefused: (answered: T) => boolean,
  mayResend: () => Promise<boolean>,
): Promise<Managed<T>> {
  const got = await token.get(within.deadlineAt, within.signal);
  if ('failure' in got) return got;
  const first = await send(`Bearer ${got.token}`);
  const { appNo } = got;
  if (!isRefused(first)) return { last: first, sends: 1, appNo };
  const other = await token.replace(got.token, within.deadlineAt, within.signal);
  if (!other || 'failure' in other || !(await mayResend())) return { last: first, sends: 1, appNo };
  return { last: await send(`Bearer ${other.token}`), sends: 2, appNo: other.appNo };
}

function tokenIn(exchanged: Exchanged) {
  if (exchanged.end !== 'answered' || exchanged.answer.status >= 300) return undefined;
  return accessTokenRecord.safeParse(recordIn(exchanged.answer)).data;
}

/** The authorization host answers bare records; in the envelope they are read as well. */
function recordIn(answer: Answer): Json | undefined {
  const said = readEnvelope(answer.body);
  if (said.shape === 'success') return said.data;
  return said.shape === 'json' ? said.value : undefined;
}

function failureOf(exchanged: Exchanged, lesson: Lesson): TokenFailure {
  if (lesson.kind === 'throttled' || lesson.kind === 'maintenance') {
    const { kind: cause, retryAt } = lesson;
    const answer = exchanged.end === 'answered' ? { answer: exchanged.answer } : {};
    return { cause, ...(retryAt === undefined ? {} : { retryAt }), ...answer };
  }
  return { cause: causeOf(exchanged) };
}

function causeOf(exchanged: Exchanged): InconclusiveCause {
  const outcome = judge(exchanged, 'read', exchanged.endedAt);
  if (outcome.class === 'rejected') return 'unauthorized';
  if (outcome.class === 'accepted') return 'unreadable';
  if (outcome.class !== 'unknown') return 'unreachable';
  const lost = ['reset', 'timeout', 'aborted'].includes(outcome.cause);
  return lost ? 'unreachable' : outcome.cause === 'server_error' ? 'error' : 'unreadable';
}
