/**
 * Builds the signed request or message for one attempt. Decrypted secrets are cached in memory
 * only, until the endpoint's encrypted columns change.
 */
import type { Clock, Instant } from '../../../kernel/clock.ts';
import { must } from '../../../kernel/errors.ts';
import type { Encryption } from '../../encryption.ts';
import { type UrlRules, validateUrl } from '../../endpoints/address.ts';
import { type AuthSettings, type OAuth2Settings, secretsOfAuth } from '../../endpoints/auth.ts';
import { type DestinationSettings, secretsIn } from '../../endpoints/destination.ts';
import {
  decryptAuth,
  decryptDestination,
  decryptHeaders,
  decryptKeys,
} from '../../endpoints/secrets.ts';
import {
  activeKeys,
  type ParsedKey,
  parseKey,
  type SigningKey,
  signedHeaders,
} from '../../endpoints/signing.ts';
import type { ClaimedEndpoint, Job } from '../queue.ts';
import type { WebhookRequest } from './attempt.ts';
import { RecentlyUsed } from './recently-used.ts';
import { makeRedaction } from './redaction.ts';
import { remembered } from './remembered.ts';

type EncryptedEndpoint = Pick<
  ClaimedEndpoint,
  | 'endpointId'
  | 'url'
  | 'signing'
  | 'encryptedSecrets'
  | 'encryptedHeaders'
  | 'encryptedDestination'
  | 'encryptedAuth'
>;

interface DecryptedEndpoint {
  source: EncryptedEndpoint;
  url: URL;
  headers: Record<string, string>;
  /** Undefined for HTTP. */
  destination: DestinationSettings | undefined;
  auth: AuthSettings | undefined;
  keys: (SigningKey & { parsed: ParsedKey })[];
  redact: (text: string) => string;
}

/** An event as a broker gets it. */
export interface Message {
  /** The id of the event. */
  id: string;
  type: string;
  /** The subject of the event: messages with one key stay in order. */
  key: string;
  /** Those of Standard Webhooks, and the content type. */
  headers: Record<string, string>;
  body: Buffer;
}

export interface RequestBuilder {
  /** Signs with every active key. @throws Failure `url_refused`, `decryption_failed` */
  build(
    endpoint: EncryptedEndpoint,
    event: { id: string; body: Uint8Array },
    now: Instant,
  ): WebhookRequest;
  /** How a token for the endpoint is got. */
  oauth2Of(endpoint: EncryptedEndpoint): OAuth2Settings | undefined;
  /** A message with the same headers and body. @throws Failure `decryption_failed` */
  message(
    job: Pick<Job, 'delivery' | 'endpoint'>,
    now: Instant,
  ): { settings: DestinationSettings; message: Message };
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
  const cache = new RecentlyUsed<string, DecryptedEndpoint>(CACHED_MAX);
  const decrypted = (endpoint: EncryptedEndpoint): DecryptedEndpoint => {
    const cached = cache.get(endpoint.endpointId);
    if (cached && isSame(cached.source, endpoint)) return cached;
    const fresh = decrypt(endpoint, encryption, rules);
    cache.set(endpoint.endpointId, fresh);
    return fresh;
  };
  const signed = (
    { keys }: DecryptedEndpoint,
    { id, body }: { id: string; body: Uint8Array },
    now: Instant,
  ) => {
    const message = { id, timestamp: Math.floor(wallClock.now() / 1000), body };
    const parsed = activeKeys(keys, now).map((key) => key.parsed);
    return signedHeaders(message, parsed);
  };
  return {
    build(endpoint, event, now) {
      const known = decrypted(endpoint);
      return {
        url: known.url,
        body: event.body,
        tls: known.auth?.tls,
        headers: {
          'content-type': 'application/json',
          'user-agent': userAgent,
          ...known.headers,
          ...signed(known, event, now),
        },
      };
    },
    oauth2Of: (endpoint) => decrypted(endpoint).auth?.oauth2,
    message({ delivery, endpoint }, now) {
      const known = decrypted(endpoint);
      const { eventId: id, eventType: type } = delivery;
      const body = must(delivery.body, 'body of a message');
      const headers = { 'content-type': 'application/json', ...signed(known, { id, body }, now) };
      const key = delivery.subject ?? endpoint.subjects?.[id] ?? id;
      const settings = must(known.destination, 'destination of a message');
      return { settings, message: { id, type, key, headers, body } };
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
  const destination = decryptDestination(encryption, endpointId, endpoint.encryptedDestination);
  const all = decryptKeys(encryption, endpointId, encryptedSecrets);
  const keys = all
    .filter((key) => signing.includes(key.scheme))
    .map((key) => ({ ...key, parsed: parseKey(key.secret) }));
  const headers = decryptHeaders(encryption, endpointId, encryptedHeaders);
  const url = destination ? new URL(endpoint.url) : validateUrl(endpoint.url, rules);
  const auth = decryptAuth(encryption, endpointId, endpoint.encryptedAuth);
  if (destination?.kind === 'sqs') validateUrl(destination.queueUrl, rules);
  if (auth?.oauth2) validateUrl(auth.oauth2.tokenUrl, rules);
  const secrets = [
    ...Object.values(headers),
    ...(destination ? secretsIn(destination) : []),
    ...secretsOfAuth(auth),
  ];
  const redact = makeRedaction({ keys: all.map((key) => key.secret), headers: secrets, url });
  return { source: endpoint, url, headers, destination, auth, keys, redact: remembered(redact) };
}

function isSame(a: EncryptedEndpoint, b: EncryptedEndpoint): boolean {
  return (
    a.url === b.url &&
    a.encryptedSecrets === b.encryptedSecrets &&
    a.encryptedHeaders === b.encryptedHeaders &&
    a.encryptedDestination === b.encryptedDestination &&
    a.encryptedAuth === b.encryptedAuth &&
    a.signing.join() === b.signing.join()
  );
}
