/**
 * Builds the signed request or message for one attempt. Decrypted secrets are cached in memory
 * only, until the endpoint's encrypted columns change.
 */
import type { Clock, Instant } from '../../../kernel/clock.ts';
import { must } from '../../../kernel/errors.ts';
import type { Encryption } from '../../encryption.ts';
import { type UrlRules, validateUrl } from '../../endpoints/address.ts';
import { type OAuth2Settings, secretsOfAuth } from '../../endpoints/destination/auth.ts';
import { type DestinationSettings, secretsIn } from '../../endpoints/destination/destination.ts';
import {
  decryptAuth,
  decryptDestination,
  decryptHeaders,
  decryptKeys,
} from '../../endpoints/secrets.ts';
import { activeKeys, parseKey, signedHeaders } from '../../endpoints/signing.ts';
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

/** An endpoint with its secrets. */
export interface DecryptedEndpoint {
  /** How a token for it is got. */
  oauth2: OAuth2Settings | undefined;
  /** Signs with every active key. */
  request(event: { id: string; body: Uint8Array }, now: Instant): WebhookRequest;
  /** A message with the same headers and body, and how its broker is reached. */
  message(
    delivery: Job['delivery'],
    now: Instant,
  ): { settings: DestinationSettings; message: Message };
  /** Replaces its secrets in a text of a response; see `makeRedaction`. */
  redact(text: string): string;
}

/** To be called once for an attempt. @throws Failure `url_refused`, `decryption_failed` */
export type Decrypt = (endpoint: EncryptedEndpoint) => DecryptedEndpoint;

const CACHED_MAX = 1_000;

interface DecryptDeps {
  encryption: Encryption;
  wallClock: Clock;
  rules: UrlRules;
  userAgent: string;
}

export function makeDecrypt(deps: DecryptDeps): Decrypt {
  const cache = new RecentlyUsed<
    string,
    { source: EncryptedEndpoint; decrypted: DecryptedEndpoint }
  >(CACHED_MAX);
  return (source) => {
    const cached = cache.get(source.endpointId);
    if (cached && isSame(cached.source, source)) return cached.decrypted;
    const decrypted = decrypt(source, deps);
    cache.set(source.endpointId, { source, decrypted });
    return decrypted;
  };
}

function decrypt(
  endpoint: EncryptedEndpoint,
  { encryption, wallClock, rules, userAgent }: DecryptDeps,
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
  const signed = ({ id, body }: { id: string; body: Uint8Array }, now: Instant) => {
    const message = { id, timestamp: Math.floor(wallClock.now() / 1000), body };
    const parsed = activeKeys(keys, now).map((key) => key.parsed);
    return signedHeaders(message, parsed);
  };
  return {
    oauth2: auth?.oauth2,
    request: (event, now) => ({
      url,
      body: event.body,
      tls: auth?.tls,
      headers: {
        'content-type': 'application/json',
        'user-agent': userAgent,
        ...headers,
        ...signed(event, now),
      },
    }),
    message({ eventId: id, eventType: type, ...delivery }, now) {
      const body = must(delivery.body, 'body of a message');
      const own = { 'content-type': 'application/json', ...signed({ id, body }, now) };
      const settings = must(destination, 'destination of a message');
      const key = delivery.eventSubject ?? id;
      return { settings, message: { id, type, key, headers: own, body } };
    },
    redact: remembered(redact),
  };
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
