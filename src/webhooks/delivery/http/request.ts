/**
 * Builds the signed request for one attempt. Decrypted secrets are cached in memory only, until the
 * endpoint's encrypted columns change.
 */
import type { Clock, Instant } from '../../../kernel/clock.ts';
import type { Encryption } from '../../encryption.ts';
import { type UrlRules, validateUrl } from '../../endpoints/address.ts';
import { decryptHeaders, decryptKeys } from '../../endpoints/secrets.ts';
import {
  activeKeys,
  type ParsedKey,
  parseKey,
  type SigningKey,
  signedHeaders,
} from '../../endpoints/signing.ts';
import type { ClaimedEndpoint } from '../queue-store.ts';
import type { WebhookRequest } from './attempt.ts';

type EncryptedEndpoint = Pick<
  ClaimedEndpoint,
  'endpointId' | 'url' | 'signing' | 'encryptedSecrets' | 'encryptedHeaders'
>;

interface DecryptedEndpoint {
  source: EncryptedEndpoint;
  url: URL;
  headers: Record<string, string>;
  keys: (SigningKey & { parsed: ParsedKey })[];
  /** Texts that `redact` removes. */
  secrets: string[];
}

export interface RequestBuilder {
  /** Signs with every active key. @throws Failure `url_refused`, `decryption_failed` */
  build(
    endpoint: EncryptedEndpoint,
    event: { id: string; body: string },
    now: Instant,
  ): WebhookRequest;
  /** Replaces the endpoint's secrets, header values and URL tokens in the text of a response. */
  redact(endpoint: EncryptedEndpoint, text: string): string;
}

const CACHED_MAX = 1_000;
/** Shorter values, such as `1`, are not secret, and occur in any text. */
const SECRET_LENGTH_MIN = 6;
/** Shorter parts of a path, such as `webhooks`, are names. */
const PATH_TOKEN_LENGTH_MIN = 16;

export function makeRequestBuilder(deps: {
  encryption: Encryption;
  wallClock: Clock;
  rules: UrlRules;
  userAgent: string;
}): RequestBuilder {
  const { encryption, wallClock, rules, userAgent } = deps;
  const cache = new Map<string, DecryptedEndpoint>();
  const decrypted = (endpoint: EncryptedEndpoint): DecryptedEndpoint => {
    const cached = cache.get(endpoint.endpointId);
    if (cached && isSame(cached.source, endpoint)) return cached;
    if (cache.size >= CACHED_MAX) cache.clear();
    const fresh = decrypt(endpoint, encryption, rules);
    cache.set(endpoint.endpointId, fresh);
    return fresh;
  };
  return {
    build(endpoint, event, now) {
      const { url, headers, keys } = decrypted(endpoint);
      const body = Buffer.from(event.body);
      const message = { id: event.id, timestamp: Math.floor(wallClock.now() / 1000), body };
      const parsed = activeKeys(keys, now).map((key) => key.parsed);
      return {
        url,
        body,
        headers: {
          'content-type': 'application/json',
          'user-agent': userAgent,
          ...headers,
          ...signedHeaders(message, parsed),
        },
      };
    },
    redact(endpoint, text) {
      const { secrets } = decrypted(endpoint);
      return secrets.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text);
    },
  };
}

function decrypt(
  endpoint: EncryptedEndpoint,
  encryption: Encryption,
  rules: UrlRules,
): DecryptedEndpoint {
  const { endpointId, signing, encryptedSecrets, encryptedHeaders } = endpoint;
  const all = decryptKeys(encryption, endpointId, encryptedSecrets);
  const keys = all
    .filter((key) => signing.includes(key.scheme))
    .map((key) => ({ ...key, parsed: parseKey(key.secret) }));
  const headers = decryptHeaders(encryption, endpointId, encryptedHeaders);
  const url = validateUrl(endpoint.url, rules);
  const values = [...Object.values(headers), ...all.map((key) => key.secret)];
  const secrets = [...values, ...queryValues(url)].filter(
    (value) => value.length >= SECRET_LENGTH_MIN,
  );
  const tokens = url.pathname.split('/').filter((part) => part.length >= PATH_TOKEN_LENGTH_MIN);
  // The longest first, because one may be a part of another.
  const longestFirst = [...secrets, ...tokens].sort((a, b) => b.length - a.length);
  return { source: endpoint, url, headers, keys, secrets: longestFirst };
}

/** As written in the URL, and decoded. */
function queryValues({ search, searchParams }: URL): string[] {
  const written = search.slice(1).split('&');
  return [...written.map((pair) => pair.slice(pair.indexOf('=') + 1)), ...searchParams.values()];
}

function isSame(a: EncryptedEndpoint, b: EncryptedEndpoint): boolean {
  return (
    a.url === b.url &&
    a.encryptedSecrets === b.encryptedSecrets &&
    a.encryptedHeaders === b.encryptedHeaders &&
    a.signing.join() === b.signing.join()
  );
}
