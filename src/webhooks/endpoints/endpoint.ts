/** An endpoint as callers see it, and the keys that are shown or replaced. */
import type { Instant } from '../../kernel/clock.ts';
import type { Encryption } from '../encryption.ts';
import { decryptHeaders, decryptKeys, encryptKeys } from './secrets.ts';
import { activeKeys, publicKeyOf, type Scheme, type SigningKey } from './signing.ts';
import type * as store from './store.ts';

export const ORDERINGS = ['none', 'subject'] as const;
export type Ordering = (typeof ORDERINGS)[number];

/** An endpoint without its secrets and header values. */
export interface Endpoint {
  id: string;
  url: string;
  description: string | null;
  eventTypes: string[];
  ordering: Ordering;
  signing: Scheme[];
  ratePerS: number | null;
  headerNames: string[];
  publicKey: string | null;
  /** Active signing keys, newest first; during a rotation there are several per scheme. */
  keys: { scheme: Scheme; from: Instant; until: Instant | null }[];
  state: 'enabled' | 'disabled';
  /** gone, failing or requested while disabled. */
  stateReason: string | null;
  stateAt: Instant;
  createdBy: string;
  createdAt: Instant;
}

/** New key material, returned once. */
export interface NewSecrets {
  /** `whsec_…`; null without a new v1 key. */
  secret: string | null;
  /** `whpk_…`; null without a new v1a key. */
  publicKey: string | null;
}

export function endpointOf(row: store.EndpointRow, encryption: Encryption, now: Instant): Endpoint {
  const { encryptedSecrets, encryptedHeaders, ...rest } = row;
  const keys = activeKeys(decryptKeys(encryption, row.id, encryptedSecrets), now);
  return {
    ...rest,
    ordering: row.ordering as Ordering,
    signing: row.signing as Scheme[],
    state: row.state as Endpoint['state'],
    headerNames: Object.keys(decryptHeaders(encryption, row.id, encryptedHeaders)),
    keys: keys.map(({ scheme, from, until }) => ({ scheme, from, until })),
  };
}

export function newSecrets(keys: readonly SigningKey[]): NewSecrets {
  const v1a = keys.find((key) => key.scheme === 'v1a');
  return {
    secret: keys.find((key) => key.scheme === 'v1')?.secret ?? null,
    publicKey: v1a ? publicKeyOf(v1a.secret) : null,
  };
}

export function signingPatch(
  before: store.EndpointRow,
  made: readonly SigningKey[],
  signing: readonly Scheme[],
  encryption: Encryption,
): Partial<store.EndpointRow> {
  const old = decryptKeys(encryption, before.id, before.encryptedSecrets);
  const kept = old.filter((key) => signing.includes(key.scheme));
  const added = newSecrets(made).publicKey;
  return {
    encryptedSecrets: encryptKeys(encryption, before.id, [...made, ...kept]),
    publicKey: signing.includes('v1a') ? (added ?? before.publicKey) : null,
  };
}
