/**
 * Encryption of an endpoint's signing keys, extra headers, destination and authentication, and
 * their encryption again when the master key changes. Each is encrypted for its own column and
 * endpoint, so a ciphertext copied elsewhere cannot be decrypted. What can be decrypted was
 * encrypted here, and so has its form. These columns are all that the database keeps encrypted,
 * beside the canaries.
 */
import type { Db } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { jsonText } from '../../kernel/json.ts';
import type { Encryption } from '../encryption.ts';
import type { AuthSettings } from './destination/auth.ts';
import type { DestinationSettings } from './destination/destination.ts';
import type { SigningKey } from './signing.ts';
import * as store from './store.ts';

const keysContext = (endpointId: string) => `endpoints.encrypted_secrets:${endpointId}`;
const headersContext = (endpointId: string) => `endpoints.encrypted_headers:${endpointId}`;

export function encryptKeys(
  encryption: Encryption,
  endpointId: string,
  keys: readonly SigningKey[],
): string {
  return encryption.encrypt(jsonText(keys), keysContext(endpointId));
}

/** @throws Failure `decryption_failed` */
export function decryptKeys(
  encryption: Encryption,
  endpointId: string,
  encrypted: string,
): SigningKey[] {
  const text = encryption.decrypt(encrypted, keysContext(endpointId));
  return JSON.parse(text) as SigningKey[];
}

export function encryptHeaders(
  encryption: Encryption,
  endpointId: string,
  headers: Readonly<Record<string, string>>,
): string | null {
  if (Object.keys(headers).length === 0) return null;
  return encryption.encrypt(jsonText(headers), headersContext(endpointId));
}

/** @throws Failure `decryption_failed` */
export function decryptHeaders(
  encryption: Encryption,
  endpointId: string,
  encrypted: string | null,
): Record<string, string> {
  if (encrypted === null) return {};
  const text = encryption.decrypt(encrypted, headersContext(endpointId));
  return JSON.parse(text) as Record<string, string>;
}

const destinationContext = (endpointId: string) => `endpoints.encrypted_destination:${endpointId}`;

/** Null for HTTP. */
export function encryptDestination(
  encryption: Encryption,
  endpointId: string,
  settings: DestinationSettings | undefined,
): string | null {
  if (settings === undefined) return null;
  return encryption.encrypt(jsonText(settings), destinationContext(endpointId));
}

/** Undefined for HTTP. @throws Failure `decryption_failed` */
export function decryptDestination(
  encryption: Encryption,
  endpointId: string,
  encrypted: string | null,
): DestinationSettings | undefined {
  if (encrypted === null) return undefined;
  const text = encryption.decrypt(encrypted, destinationContext(endpointId));
  return JSON.parse(text) as DestinationSettings;
}

const authContext = (endpointId: string) => `endpoints.encrypted_auth:${endpointId}`;

/** Null without authentication. */
export function encryptAuth(
  encryption: Encryption,
  endpointId: string,
  auth: AuthSettings | undefined,
): string | null {
  return auth ? encryption.encrypt(jsonText(auth), authContext(endpointId)) : null;
}

/** Undefined without authentication. @throws Failure `decryption_failed` */
export function decryptAuth(
  encryption: Encryption,
  endpointId: string,
  encrypted: string | null,
): AuthSettings | undefined {
  if (encrypted === null) return undefined;
  return JSON.parse(encryption.decrypt(encrypted, authContext(endpointId))) as AuthSettings;
}

export interface ReencryptedPage {
  /** Ids of the endpoints by what happened to them. */
  changed: string[];
  unchanged: string[];
  unreadable: string[];
  /** The position of the next page; undefined at the end. */
  next: string | undefined;
}

const PAGE_MAX = 100;

/**
 * One page of endpoints, in one transaction. Repeating it changes nothing.
 * @param after the `next` of the former page; the empty string for the first
 */
export function reencryptEndpoints(
  db: Db,
  keys: { current: Encryption; both: Encryption },
  after: string,
  dryRun: boolean,
): Promise<ReencryptedPage> {
  return db.begin(async ({ orm }) => {
    const rows = await store.lockEndpoints(orm, after, PAGE_MAX);
    const page: ReencryptedPage = {
      changed: [],
      unchanged: [],
      unreadable: [],
      next: rows.length === PAGE_MAX ? rows.at(-1)?.id : undefined,
    };
    for (const row of rows) {
      const isCurrent = readWith(keys.current, row) !== undefined;
      const patch = isCurrent ? undefined : encryptedAgain(row, keys);
      if (patch && !dryRun) await store.updateEndpoint(orm, row.id, patch);
      if (patch) page.changed.push(row.id);
      else if (isCurrent) page.unchanged.push(row.id);
      else page.unreadable.push(row.id);
    }
    return page;
  });
}

/** Deletes an endpoint whose secrets are lost, with its deliveries. */
export async function deleteUnreadable(db: Db, id: string, now: Instant): Promise<void> {
  await store.deleteEndpoint(db.orm, id, now);
}

function readWith(encryption: Encryption, row: store.EndpointRow) {
  try {
    return {
      keys: decryptKeys(encryption, row.id, row.encryptedSecrets),
      headers: decryptHeaders(encryption, row.id, row.encryptedHeaders),
      destination: decryptDestination(encryption, row.id, row.encryptedDestination),
      auth: decryptAuth(encryption, row.id, row.encryptedAuth),
    };
  } catch {
    return undefined;
  }
}

function encryptedAgain(
  row: store.EndpointRow,
  { current, both }: { current: Encryption; both: Encryption },
) {
  const secrets = readWith(both, row);
  return (
    secrets && {
      encryptedSecrets: encryptKeys(current, row.id, secrets.keys),
      encryptedHeaders: encryptHeaders(current, row.id, secrets.headers),
      encryptedDestination: encryptDestination(current, row.id, secrets.destination),
      encryptedAuth: encryptAuth(current, row.id, secrets.auth),
    }
  );
}
