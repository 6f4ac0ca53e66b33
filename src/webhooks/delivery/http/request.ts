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
import type { ClaimedEndpoint } from '../queue.ts';
import type { WebhookRequest } from './attempt.ts';
import { makeRedaction } from './redaction.ts';
import { remembered } from './remembered.ts';

type EncryptedEndpoint = Pick<
  ClaimedEndpoint,
  'endpointId' | 'url' | 'signing' | 'encryptedSecrets' | 'encryptedHeaders'
>;

interface DecryptedEndpoint {
  source: EncryptedEndpoint;
  url: URL;
  headers: Record<string, string>;
  keys: (SigningKey & { parsed: ParsedKey })[];
  redact: (text: string) => string;
}

export interface RequestBuilder {
  /** Signs with every active key. @throws Failure `url_refused`, `decryption_failed` */
  build(
    endpoint: EncryptedEndpoint,
    event: { id: string; body: Uint8Array },
    now: Instant,
  ): WebhookRequest;
  /** Replaces the endpoint's secrets in a text of a response; see `makeRedaction`. */
  redact(endpoint: EncryptedEndpoint, text: string): string;
}

const CACHED_MAX = 1_000;

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
      const { id, body } = event;
      const message = { id, timestamp: Math.floor(wallClock.now() / 1000), body };
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
    redact: (endpoint, text) => decrypted(endpoint).redact(text),
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
  const secrets = all.map((key) => key.secret);
  const redact = makeRedaction({ keys: secrets, headers: Object.values(headers), url });
  return { source: endpoint, url, headers, keys, redact: remembered(redact) };
}

function isSame(a: EncryptedEndpoint, b: EncryptedEndpoint): boolean {
  return (
    a.url === b.url &&
    a.encryptedSecrets === b.encryptedSecrets &&
    a.encryptedHeaders === b.encryptedHeaders &&
    a.signing.join() === b.signing.join()
  );
}
