/**
 * `/session`: a browser signs in with a key, asks who it is, and signs out. The key is then in a
 * cookie that scripts cannot read, which all tabs have; see `keys/sessions.ts`.
 */
import { type Context, Hono } from 'hono';
import { deleteCookie, setCookie } from 'hono/cookie';
import { isoText } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { incomingOf, type TrustedProxies } from '../kernel/http/trusted-proxies.ts';
import { isObject, tryParseJson } from '../kernel/json.ts';
import {
  type Caller,
  type Keys,
  requireScope,
  SESSION_COOKIE,
  type Session,
  type Sessions,
} from '../keys/keys.ts';

export interface SessionDeps {
  sessions: Sessions;
  keys: Pick<Keys, 'authenticate'>;
  trusted: TrustedProxies;
  /** Under which the browser reaches the console; may be empty. */
  basePath: string;
  /** Of the days of reports and periods, in which the console shows the books. */
  timeZone: string;
}

/** Of a key, with the quotes and the name of its member. */
const BODY_MAX = 300;

/** Mounted beside the API, which answers what it throws. */
export function makeSessionRoutes(deps: SessionDeps): Hono {
  const { sessions } = deps;
  const app = new Hono();
  app.post('/session', async (c) => {
    const secret = await secretIn(c);
    const caller = await findCaller(deps, c, secret);
    if (!caller) throw new Failure('unauthorized');
    requireScope(caller, 'read', 'portal');
    const { session, cookie } = sessions.begin(secret, caller.expiresAt);
    keepSession(deps, c, cookie);
    return answer(deps, c, session, caller);
  });
  app.get('/session', async (c) => {
    const session = sessions.find(c);
    // Without a session: no error, which the console of a browser would show as one.
    if (!session) return c.body(null, 204);
    const caller = await findCaller(deps, c, session.secret);
    return caller ? answer(deps, c, session, caller) : end(c);
  });
  // Without the token of the session, which another tab may have begun anew: the cookie is sent by
  // pages of this site only.
  app.delete('/session', end);
  function end(c: Context): Response {
    deleteCookie(c, SESSION_COOKIE, { path: pathOf(deps) });
    return c.body(null, 204);
  }
  return app;
}

/** Sets the cookie of a session. */
export function keepSession(
  deps: Pick<SessionDeps, 'trusted' | 'basePath'>,
  c: Context,
  cookie: string,
): void {
  const incoming = incomingOf(c);
  setCookie(c, SESSION_COOKIE, cookie, {
    path: pathOf(deps),
    httpOnly: true,
    sameSite: 'Strict',
    secure: incoming !== undefined && deps.trusted.originOf(incoming).startsWith('https:'),
  });
}

function pathOf({ basePath }: Pick<SessionDeps, 'basePath'>): string {
  return basePath || '/';
}

/** Undefined when the key was revoked or has expired. @throws Failure `too_many_requests` */
function findCaller({ keys, trusted }: SessionDeps, c: Context, secret: string) {
  const incoming = incomingOf(c);
  return keys.authenticate(secret, () => incoming && trusted.addressOf(incoming));
}

/** A form of another site cannot send this type. @throws Failure `invalid_request` */
async function secretIn(c: Context): Promise<string> {
  const isJson = /^application\/json\b/i.test(c.req.header('content-type') ?? '');
  const length = Number(c.req.header('content-length') ?? Number.NaN);
  const body = isJson && length <= BODY_MAX ? tryParseJson(await c.req.text()) : undefined;
  const key = isObject(body) ? body.key : undefined;
  if (typeof key !== 'string') throw new Failure('invalid_request', 'send {"key": "thk_…"}');
  return key;
}

function answer(
  { timeZone }: SessionDeps,
  c: Context,
  { csrf, until }: Session,
  { owner, scopes }: Caller,
): Response {
  const expires = isoText(until);
  const shown = { owner, scopes, expires_at: expires, csrf_token: csrf, time_zone: timeZone };
  return c.json(shown, 200, { 'cache-control': 'no-store' });
}
