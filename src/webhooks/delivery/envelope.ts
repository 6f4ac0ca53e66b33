/**
 * From a sealed endpoint to something that can be sent: opens the seals, readies the keys, signs.
 * What was opened is kept in memory only, for as long as the endpoint's sealed texts stay the same.
 */
import type { Instant } from '../../kernel/clock.ts';
import type { Encryption } from '../../kernel/encryption.ts';
import { liveKeys, type ReadyKey, readyKey, type SigningKey } from '../endpoints/keys.ts';
import { openHeaders, openKeys } from '../endpoints/secrets.ts';
import { judgeUrl } from '../endpoints/url.ts';
import type { AllowedRanges } from './address.ts';
import type { Post } from './attempt.ts';
import { signedHeaders } from './sign.ts';

/** The columns of an endpoint that decide how it is sent to. */
export interface EncryptedEndpoint {
  endpointId: string;
  url: string;
  signing: string[];
  encryptedSecrets: string;
  encryptedHeaders: string | null;
}

interface Opened {
  from: EncryptedEndpoint;
  url: URL;
  headers: Record<string, string>;
  keys: (SigningKey & { ready: ReadyKey })[];
  secrets: string[];
}

export interface Envelopes {
  /** The request for one attempt, signed with every key that lives. @throws Failure */
  post(endpoint: EncryptedEndpoint, event: { id: string; body: string }, now: Instant): Post;
  /** A receiver's text without what only it and we should know. */
  withhold(endpoint: EncryptedEndpoint, text: string): string;
}

const OPENED_MAX = 1_000;
/** Shorter header values, such as `1`, are no secrets and would tear holes into any text. */
const SECRET_LENGTH_MIN = 6;

export function makeEnvelopes(given: {
  seal: Encryption;
  allowed: AllowedRanges;
  userAgent: string;
}): Envelopes {
  const cache = new Map<string, Opened>();
  const opened = (endpoint: EncryptedEndpoint): Opened => {
    const known = cache.get(endpoint.endpointId);
    if (known && isSame(known.from, endpoint)) return known;
    if (cache.size >= OPENED_MAX) cache.clear();
    const fresh = open(endpoint, given.seal, given.allowed);
    cache.set(endpoint.endpointId, fresh);
    return fresh;
  };
  return {
    post(endpoint, event, now) {
      const { url, headers, keys } = opened(endpoint);
      const body = Buffer.from(event.body);
      const message = { id: event.id, timestamp: Math.floor(now / 1000), body };
      const ready = liveKeys(keys, now).map((key) => key.ready);
      return {
        url,
        body,
        headers: {
          'content-type': 'application/json',
          'user-agent': given.userAgent,
          ...headers,
          ...signedHeaders(message, ready),
        },
      };
    },
    withhold(endpoint, text) {
      let rest = text;
      for (const secret of opened(endpoint).secrets) rest = rest.replaceAll(secret, '[secret]');
      return rest;
    },
  };
}

function open(endpoint: EncryptedEndpoint, seal: Encryption, allowed: AllowedRanges): Opened {
  const all = openKeys(seal, endpoint.endpointId, endpoint.encryptedSecrets);
  const keys = all
    .filter((key) => endpoint.signing.includes(key.scheme))
    .map((key) => ({ ...key, ready: readyKey(key.secret) }));
  const headers = openHeaders(seal, endpoint.endpointId, endpoint.encryptedHeaders);
  const values = [...Object.values(headers), ...all.map((key) => key.secret)];
  const secrets = values.filter((value) => value.length >= SECRET_LENGTH_MIN);
  return { from: endpoint, url: judgeUrl(endpoint.url, allowed), headers, keys, secrets };
}

function isSame(a: EncryptedEndpoint, b: EncryptedEndpoint): boolean {
  return (
    a.url === b.url &&
    a.encryptedSecrets === b.encryptedSecrets &&
    a.encryptedHeaders === b.encryptedHeaders &&
    a.signing.join() === b.signing.join()
  );
}
