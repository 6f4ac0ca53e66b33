/**
 * Sessions of browsers. A session is a key in an encrypted cookie, which scripts cannot read and
 * other sites cannot send; it ends with the key, and all tabs have it. What changes something also
 * needs the token of the session, which the page has read from an answer.
 */

import type { Context } from 'hono';
import { getCookie } from 'hono/cookie';
import type { Clock, Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Random } from '../kernel/random.ts';

export const SESSION_COOKIE = 'tallyhook_session';
/** The header of the token. */
export const CSRF_HEADER = 'tallyhook-csrf';
/** What is encrypted for one purpose cannot be used for another. */
const CONTEXT = 'console.session';
/** A session of a key that does not expire before. */
const SESSION_MS = 43_200_000;

export interface Session {
  /** The secret of its key. */
  secret: string;
  csrf: string;
  until: Instant;
}

export interface Sessions {
  /** Begins a session of a key; the text is its cookie. */
  begin(secret: string, expiresAt?: Instant | null): { session: Session; cookie: string };
  /** The session of a request, if it has one that has not ended. */
  find(c: Context): Session | undefined;
  /**
   * The secret that a request comes with: of its header, or else of its session.
   * @throws Failure `forbidden` for a change by the session without its token
   */
  secretOf(c: Context): string;
}

export function makeSessions(deps: {
  clock: Pick<Clock, 'now'>;
  random: Random;
  encryption: {
    encrypt(text: string, context: string): string;
    decrypt(text: string, context: string): string;
  };
}): Sessions {
  const { clock, random, encryption } = deps;

  function find(c: Context): Session | undefined {
    const cookie = getCookie(c, SESSION_COOKIE);
    if (cookie === undefined) return undefined;
    try {
      const session: Session = JSON.parse(encryption.decrypt(cookie, CONTEXT));
      return session.until > clock.now() ? session : undefined;
    } catch {
      return undefined;
    }
  }

  return {
    begin(secret, expiresAt) {
      const until = Math.min(expiresAt ?? Number.POSITIVE_INFINITY, clock.now() + SESSION_MS);
      const csrf = Buffer.from(random.bytes(18)).toString('base64url');
      const session = { secret, csrf, until };
      return { session, cookie: encryption.encrypt(JSON.stringify(session), CONTEXT) };
    },
    find,
    secretOf(c) {
      const header = /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '')?.[1];
      if (header !== undefined) return header;
      const session = find(c);
      if (!session) return '';
      const isChange = c.req.method !== 'GET' && c.req.method !== 'HEAD';
      if (isChange && c.req.header(CSRF_HEADER) !== session.csrf)
        throw new Failure('forbidden', 'load the page again: the token of the session is missing');
      return session.secret;
    },
  };
}
