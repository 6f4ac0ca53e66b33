/**
 * Sign-in of people by OpenID Connect: the authorization code flow with PKCE (RFC 7636). It ends in
 * a session of an ordinary key of the person, with an expiry; so two persons are two owners, and
 * every decision and audit entry names them.
 */
import { Hono } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import * as client from 'openid-client';
import { isUnavailable, logOutage } from '../db/sqlstate.ts';
import type { Clock, Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { incomingOf, type TrustedProxies } from '../kernel/http/trusted-proxies.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import type { Audit, Keys, Sessions } from '../keys/keys.ts';
import type { Scope } from '../resources/admin/key.ts';
import { tlsFaultOf } from '../resources/faults.ts';
import { type Claims, personOf, type SignInRule } from './person.ts';
import { keepSession } from './session.ts';

export interface SignInSettings extends SignInRule {
  issuer: string;
  clientId: string;
  /** Undefined for a public client. */
  clientSecret: string | undefined;
  /** The address of `/sign-in/callback` as browsers reach it; registered with the issuer. */
  redirectUrl: string;
  /** How long a sign-in lasts. */
  keyMs: number;
}

export interface SignInDeps {
  settings: SignInSettings;
  keys: Pick<Keys, 'create'>;
  sessions: Pick<Sessions, 'begin'>;
  audit: Pick<Audit, 'begin' | 'end'>;
  clock: Clock;
  log: Log;
  trusted: TrustedProxies;
  encryption: {
    encrypt(text: string, context: string): string;
    decrypt(text: string, context: string): string;
  };
  /** The page, which takes these values over. */
  page: (values: Record<string, string>) => string;
  headers: () => Record<string, string>;
  /** Under which the browser reaches `/sign-in`; may be empty. */
  basePath: string;
}

/** What the browser keeps, encrypted, until the person comes back. */
interface Pending {
  verifier: string;
  state: string;
  nonce: string;
  to: string;
  until: number;
}

const COOKIE = 'tallyhook_sign_in';
/** What is encrypted for one purpose cannot be used for another. */
const CONTEXT = 'console.sign_in';
const PENDING_MS = 600_000;
const TIMEOUT_S = 10;

/** Serves `/sign-in`, which leads to the issuer, and `/sign-in/callback`. */
export function makeSignIn(deps: SignInDeps): Hono {
  const { settings, clock, log, encryption, page, headers } = deps;
  const path = `${deps.basePath}/sign-in`;
  const discover = discoverer(settings);
  const app = new Hono();
  app.get('/sign-in', async (c) => {
    const pending: Pending = {
      verifier: client.randomPKCECodeVerifier(),
      state: client.randomState(),
      nonce: client.randomNonce(),
      to: pathOf(c.req.query('to')),
      until: clock.now() + PENDING_MS,
    };
    let url: URL;
    try {
      url = client.buildAuthorizationUrl(await discover(), {
        redirect_uri: settings.redirectUrl,
        scope: settings.requested.join(' '),
        state: pending.state,
        nonce: pending.nonce,
        code_challenge_method: 'S256',
        code_challenge: await client.calculatePKCECodeChallenge(pending.verifier),
      });
    } catch (err) {
      log.warn({ err, issuer: settings.issuer }, 'sign-in: the issuer does not answer');
      return c.body(page({ problem: 'The sign-in service does not answer.' }), 502, headers());
    }
    setCookie(c, COOKIE, encryption.encrypt(JSON.stringify(pending), CONTEXT), {
      path,
      httpOnly: true,
      sameSite: 'Lax',
      maxAge: PENDING_MS / 1_000,
      secure: settings.redirectUrl.startsWith('https:'),
    });
    return c.redirect(url.href, 302);
  });
  app.get('/sign-in/callback', async (c) => {
    const cookie = getCookie(c, COOKIE);
    deleteCookie(c, COOKIE, { path });
    const secret = { ...headers(), 'cache-control': 'no-store' };
    try {
      const pending = pendingOf(deps, cookie);
      const answer = new URL(settings.redirectUrl);
      answer.search = new URL(c.req.url).search;
      const claims = await claimsOf(await discover(), answer, pending);
      const incoming = incomingOf(c);
      const address = incoming && deps.trusted.addressOf(incoming);
      const { secret: key, expiresAt } = await createKey(deps, claims, address);
      keepSession(deps, c, deps.sessions.begin(key, expiresAt).cookie);
      // A redirect of the issuer comes from another site, from which the cookie is not sent.
      return c.body(page({ to: pending.to }), 200, secret);
    } catch (err) {
      if (isUnavailable(err)) {
        logOutage(log, err);
        const problem = 'The database is unavailable. Try again.';
        return c.body(page({ problem }), 503, { ...secret, 'retry-after': '2' });
      }
      const known = err instanceof Failure;
      const code = known ? err.code : (tlsFaultOf(err) ?? (err as { code?: unknown }).code);
      log.warn({ code, err: known ? undefined : err }, 'sign-in refused');
      const problem = known ? err.detail : undefined;
      return c.body(page({ problem: problem ?? 'The sign-in failed. Try again.' }), 403, secret);
    }
  });
  return app;
}

/** The issuer's own description, asked for once; again after a failure. */
function discoverer(settings: SignInSettings): () => Promise<client.Configuration> {
  let found: Promise<client.Configuration> | undefined;
  return () => {
    const { issuer, clientId, clientSecret } = settings;
    const server = new URL(issuer);
    // Only an issuer on this machine; the settings refuse other plain addresses.
    const execute = server.protocol === 'http:' ? [client.allowInsecureRequests] : [];
    const authentication = clientSecret === undefined ? client.None() : undefined;
    const options = { execute, timeout: TIMEOUT_S };
    found ??= client
      .discovery(server, clientId, clientSecret, authentication, options)
      .catch((error: unknown) => {
        found = undefined;
        throw error;
      });
    return found;
  };
}

async function claimsOf(
  configuration: client.Configuration,
  answer: URL,
  { verifier, state, nonce }: Pending,
): Promise<Claims> {
  const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce };
  const tokens = await client.authorizationCodeGrant(configuration, answer, {
    ...checks,
    idTokenExpected: true,
  });
  return tokens.claims() ?? {};
}

/** @throws Failure `forbidden` when the browser did not begin a sign-in lately */
function pendingOf({ encryption, clock }: SignInDeps, cookie: string | undefined): Pending {
  const again = () => new Failure('forbidden', 'The sign-in took too long. Try again.');
  if (cookie === undefined) throw again();
  let pending: Pending;
  try {
    pending = JSON.parse(encryption.decrypt(cookie, CONTEXT));
  } catch {
    throw again();
  }
  if (pending.until < clock.now()) throw again();
  return pending;
}

/** @throws Failure `forbidden` for a person without a scope */
async function createKey(
  deps: SignInDeps,
  claims: Claims,
  address: string | undefined,
): Promise<{ secret: string; expiresAt: Instant }> {
  const { settings, keys, audit, clock } = deps;
  const { owner, scopes } = personOf(claims, settings);
  const expiresAt = clock.now() + settings.keyMs;
  const made = await keys.create({ name: 'console', owner, scopes: scopes as Scope[], expiresAt });
  const detail = { scopes: [...scopes] };
  const entry = {
    owner: made.key.owner,
    keyId: made.key.id,
    clientAddress: address ?? null,
    action: 'GET /sign-in/callback',
    detail,
  };
  await audit.end(await audit.begin(entry), 'done');
  return { secret: made.secret, expiresAt };
}

/** A path of this origin to come back to. */
function pathOf(to: string | undefined): string {
  return to !== undefined && /^\/(?![/\\])[^\\\s]*$/.test(to) ? to : '/';
}
