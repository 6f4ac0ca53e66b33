/**
 * Access tokens of OAuth 2 by client credentials (RFC 6749, section 4.4), one for each endpoint,
 * in memory only. Deliveries that need one at once share a request. Tokens are asked for through
 * the client of the deliveries, so its address rules, proxies and deadlines hold for them too.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock, Instant } from '../../../kernel/clock.ts';
import { jsonText } from '../../../kernel/json.ts';
import type { OAuth2Settings } from '../../endpoints/destination/auth.ts';
import { type AttemptClient, type AttemptResponse, notSent } from './attempt.ts';
import { RecentlyUsed } from './recently-used.ts';
import { makeRedaction } from './redaction.ts';
import { remembered } from './remembered.ts';

export interface Token {
  value: string;
  /** Replaces it in a text of a response. */
  redact: (text: string) => string;
}

/** A token, and whether it was asked for just now; or the response of an attempt without one. */
type Got = { token: Token; isNew: boolean } | { failed: AttemptResponse };

export interface Tokens {
  get(endpointId: string, settings: OAuth2Settings, deadlineMs: number): Promise<Got>;
  /** Called when a receiver has refused it; the next `get` asks for another one. */
  forget(endpointId: string, token: Token): void;
}

interface Known {
  settings: OAuth2Settings;
  token: Token;
  until: Instant;
}
interface Asked {
  settings: OAuth2Settings;
  got: Promise<Got>;
}

const TOKENS_MAX = 10_000;
const TOKEN_LENGTH_MAX = 12_000;
/** Of a token whose response does not say. */
const LIFETIME_S = 300;
const LIFETIME_MAX_S = 86_400;
/** The end of a token's life in which it is not used any more: its deliveries take time. */
const MARGIN_S = 30;

export function makeTokens(client: AttemptClient, clock: Clock): Tokens {
  const known = new RecentlyUsed<string, Known>(TOKENS_MAX);
  const asked = new Map<string, Asked>();
  const ask = async (endpointId: string, settings: OAuth2Settings, deadlineMs: number) => {
    const url = new URL(settings.tokenUrl);
    const response = await client.post(tokenRequest(url, settings), deadlineMs);
    const answer = response.status === 200 ? tokenIn(response.body) : undefined;
    if (!answer) return { failed: failureOf(response) };
    const { value, lifetimeS } = answer;
    const redact = remembered(makeRedaction({ keys: [], headers: [`Bearer ${value}`], url }));
    const token = { value, redact };
    known.set(endpointId, { settings, token, until: clock.now() + lifetimeS * 1_000 });
    return { token, isNew: true };
  };
  return {
    get(endpointId, settings, deadlineMs) {
      const before = known.get(endpointId);
      // By their values: those of an endpoint that was displaced are decrypted again.
      if (before && isDeepStrictEqual(before.settings, settings) && before.until > clock.now())
        return Promise.resolve({ token: before.token, isNew: false });
      const running = asked.get(endpointId);
      if (running && isDeepStrictEqual(running.settings, settings)) return running.got;
      const got = ask(endpointId, settings, deadlineMs).finally(() => {
        if (asked.get(endpointId)?.got === got) asked.delete(endpointId);
      });
      asked.set(endpointId, { settings, got });
      return got;
    },
    forget(endpointId, token) {
      if (known.get(endpointId)?.token === token) known.delete(endpointId);
    },
  };
}

function tokenRequest(url: URL, settings: OAuth2Settings) {
  const { clientId, clientSecret, scope, audience, clientAuthentication = 'basic' } = settings;
  const form = new URLSearchParams({ grant_type: 'client_credentials' });
  if (scope !== undefined) form.set('scope', scope);
  if (audience !== undefined) form.set('audience', audience);
  const headers: Record<string, string> = {
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
  };
  if (clientAuthentication === 'body') {
    form.set('client_id', clientId);
    form.set('client_secret', clientSecret);
  } else {
    const login = [clientId, clientSecret].map(formEncoded).join(':');
    headers.authorization = `Basic ${Buffer.from(login).toString('base64')}`;
  }
  return { url, headers, body: Buffer.from(form.toString()) };
}

/** As section 2.3.1 of RFC 6749 wants both parts. */
function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}

function tokenIn(body: string | null): { value: string; lifetimeS: number } | undefined {
  const answer = parsed(body);
  const { access_token: value, token_type: type = 'bearer', expires_in: expires } = answer;
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) return undefined;
  if (value.length > TOKEN_LENGTH_MAX || String(type).toLowerCase() !== 'bearer') return undefined;
  const seconds = Number(expires ?? LIFETIME_S);
  const lifetimeS = Number.isFinite(seconds) ? Math.min(seconds, LIFETIME_MAX_S) : LIFETIME_S;
  return { value, lifetimeS: Math.max(0, lifetimeS - Math.min(MARGIN_S, lifetimeS / 10)) };
}

/** What the token endpoint answers may hold secrets, so only its status and code are kept. */
function failureOf({ status, error, body, durationMs }: AttemptResponse): AttemptResponse {
  if (error === 'interrupted' || error === 'blocked_address')
    return { ...notSent(error), durationMs };
  const code = String(parsed(body).error ?? '');
  const kept = {
    token_status: status,
    token_error: error ?? (/^[\w.-]{1,60}$/.test(code) ? code : null),
  };
  return { ...notSent(faultOf(status)), durationMs, body: jsonText(kept) };
}

function faultOf(status: number | null): string {
  if (status === null || status >= 500 || status === 429) return 'token_unreachable';
  return status === 200 ? 'token_unreadable' : 'token_refused';
}

function parsed(body: string | null): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body ?? '');
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
