/**
 * How requests to a receiver are authenticated beside headers: by a token of OAuth 2 (client
 * credentials), and by a client certificate. Stored encrypted as a whole, and never shown again.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import type { Instant } from '../../../kernel/clock.ts';
import { Failure } from '../../../kernel/errors.ts';
import type { AuthKind, CLIENT_AUTHENTICATIONS } from '../../../resources/delivery/auth.ts';
import { type UrlRules, validateUrl } from '../address.ts';
import { isX509, parseCertificates } from './certificates.ts';

export interface OAuth2Settings {
  /** Obeys the address rules of receivers. */
  tokenUrl: string;
  clientId: string;
  clientSecret: string;
  scope?: string | undefined;
  audience?: string | undefined;
  /** Default basic. */
  clientAuthentication?: (typeof CLIENT_AUTHENTICATIONS)[number] | undefined;
}

export interface TlsSettings {
  /** PEM of the client's certificate and those between it and its authority. */
  certificate?: string | undefined;
  /** PEM, without a passphrase. */
  privateKey?: string | undefined;
  /** PEM of the authorities of the receiver's certificate, instead of the public ones. */
  ca?: string | undefined;
}

export interface AuthSettings {
  oauth2?: OAuth2Settings | undefined;
  tls?: TlsSettings | undefined;
}

/**
 * Checks settings whose form is right, with the URL of the receiver that they are for.
 * @throws Failure `invalid_request`, `url_refused`
 */
export function checkAuth({ oauth2, tls }: AuthSettings, url: string, rules: UrlRules): void {
  if (!oauth2 && !tls) refuse('give oauth2, tls or both; null removes it');
  if (oauth2) validateUrl(oauth2.tokenUrl, rules);
  if (tls) checkTls(tls);
  if (tls && !url.startsWith('https:')) refuse('tls needs a URL that starts with https://');
}

function checkTls({ certificate, privateKey, ca }: TlsSettings): void {
  if (ca !== undefined && !isX509(ca)) refuse('tls.ca must be certificates as PEM');
  if ((certificate === undefined) !== (privateKey === undefined))
    refuse('tls.certificate and tls.private_key are given together');
  if (certificate === undefined || privateKey === undefined) {
    if (ca === undefined) refuse('tls must have a certificate with its key, or a ca');
    return;
  }
  const [own] = parseCertificates(certificate) ?? refuse('tls.certificate must be PEM');
  if (!own?.checkPrivateKey(keyOf(privateKey)))
    refuse('tls.private_key is not the key of the first certificate');
}

function keyOf(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    return refuse('tls.private_key must be PEM without a passphrase');
  }
}

/** What may be shown of it. */
export function shownAuth(auth: AuthSettings | undefined): {
  auth: AuthKind[];
  certificateExpiresAt: Instant | null;
} {
  const { oauth2, tls } = auth ?? {};
  const [own] = parseCertificates(tls?.certificate ?? '') ?? [];
  const kinds: [AuthKind, unknown][] = [
    ['oauth2', oauth2],
    ['client_certificate', tls?.certificate],
    ['authority', tls?.ca],
  ];
  return {
    auth: kinds.filter(([, given]) => given !== undefined).map(([kind]) => kind),
    certificateExpiresAt: own?.validToDate.getTime() ?? null,
  };
}

/** The values that never may be shown. */
export function secretsOfAuth(auth: AuthSettings | undefined): string[] {
  return [auth?.oauth2?.clientSecret, auth?.tls?.privateKey].filter((one) => one !== undefined);
}

function refuse(problem: string): never {
  throw new Failure('invalid_request', `auth: ${problem}`);
}
