/**
 * Why a request has no answer: stable codes of faults, and their words for people. Those of TLS are
 * the same towards Postgres, the service and the receivers of webhooks; Node's own codes follow the
 * texts of OpenSSL, which change with its versions. Plain data that the browser loads too.
 */
import type { ProxyFault } from '../kernel/http/proxy-failure.ts';
import { TOKEN_FAULTS } from './delivery/auth.ts';
import { BROKER_FAULTS } from './delivery/destination.ts';

/** The first whose pattern fits Node's code. Words are about the other side. */
const TLS = [
  {
    fault: 'tls_expired',
    words: 'its certificate has expired, or the clock of this machine is wrong',
    codes: /^CERT_HAS_EXPIRED$/,
  },
  {
    fault: 'tls_not_yet_valid',
    words: 'its certificate is not valid yet, or the clock of this machine is wrong',
    codes: /^CERT_NOT_YET_VALID$/,
  },
  {
    fault: 'tls_wrong_host',
    words: 'its certificate is for another name',
    codes: /^(ERR_TLS_CERT_ALTNAME_\w+|HOSTNAME_MISMATCH)$/,
  },
  {
    fault: 'tls_unknown_ca',
    words: 'its certificate is self-signed, or its authority or an intermediate is unknown here',
    codes: /^(DEPTH_ZERO_)?SELF_SIGNED_CERT|^CERT_UNTRUSTED$|^UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)/,
  },
  {
    // Alerts are what the other side says of us.
    fault: 'tls_client_certificate',
    words: 'it demands a client certificate, or refuses the one that it got',
    codes: /_ALERT_(\w+_)?(CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)/,
  },
  {
    fault: 'tls_protocol',
    words:
      'it accepts no version of TLS or cipher that this machine has, or, before TLS 1.3, ' +
      'demands a client certificate',
    codes:
      /_(PROTOCOL_VERSION|HANDSHAKE_FAILURE|\w+_SECURITY|UNSUPPORTED_PROTOCOL|TOO_LOW|CIPHER)$/,
  },
  {
    fault: 'tls_absent',
    words: 'it does not speak TLS there',
    codes: /^ERR_SSL_(WRONG_VERSION|HTTPS?_|PACKET_LENGTH|UNKNOWN_PROTOCOL|RECORD_LAYER_FAILURE)/,
  },
  {
    fault: 'tls_certificate',
    words: 'its certificate is revoked, too weak, or not for a server',
    codes: /CERT|CRL|^ERR_SSL_(CA_MD|CA_KEY|EE_KEY)_|^INVALID_(CA|PURPOSE)$/,
  },
  { fault: 'tls_failed', words: 'the TLS handshake failed', codes: /SSL|TLS/ },
] as const;

export type TlsFault = (typeof TLS)[number]['fault'];
export const TLS_FAULTS: readonly TlsFault[] = TLS.map(({ fault }) => fault);

/**
 * Undefined for what is no fault of TLS. An error whose code is one of ours is that one; that of a
 * fetch has the fault as its cause.
 */
export function tlsFaultOf(error: unknown, depth = 0): TlsFault | undefined {
  if (!(error instanceof Error) || depth > CAUSES_MAX) return undefined;
  const code = 'code' in error ? String(error.code) : '';
  if (isTlsFault(code)) return code;
  const found = TLS.find(({ codes }) => codes.test(code));
  return found?.fault ?? tlsFaultOf(error.cause, depth + 1);
}

const CAUSES_MAX = 4;

export function isTlsFault(code: string): code is TlsFault {
  return TLS.some(({ fault }) => fault === code);
}

/** The error of a handshake, with a code: one that ends without a reason failed, too. */
export function failedHandshake(error: Error | null): Error {
  if (error && tlsFaultOf(error)) return error;
  return Object.assign(new Error('TLS', { cause: error }), { code: 'tls_failed' });
}

interface Closable {
  on(event: 'error', listener: (error: Error) => void): unknown;
  destroy(error: Error): unknown;
}

/**
 * Ends a connection with its first error. The alert of TLS 1.3 that a client certificate is missing
 * comes after the handshake and before the end, which undici would report instead.
 */
export function endWithError<S extends Closable>(socket: S): S {
  socket.on('error', (error) => socket.destroy(error));
  return socket;
}

/** Why a forward proxy opened no tunnel. */
const PROXY: Readonly<Record<ProxyFault, string>> = {
  proxy_unreachable: 'the forward proxy does not answer',
  proxy_tls: 'the TLS handshake with the forward proxy failed',
  proxy_timeout: 'the forward proxy opened no tunnel in time',
  proxy_auth: 'the forward proxy wants another login',
  proxy_refused: 'the forward proxy does not allow the target',
  proxy_target_unreachable: 'the forward proxy did not reach the target',
  proxy_closed: 'the forward proxy cut the connection',
  proxy_unreadable: 'the forward proxy answered something that is not HTTP',
};
export const PROXY_FAULTS = Object.keys(PROXY) as ProxyFault[];

/** By the code that the API has. */
export const FAULT_WORDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(TLS.map(({ fault, words }) => [fault, words])),
  timeout: 'no answer in time',
  connect_timeout: 'no connection in time',
  refused: 'the connection was refused',
  connection_refused: 'the connection was refused',
  unreachable: 'the address cannot be reached',
  reset: 'the connection was cut',
  dns: 'the name was not found',
  name_lookup: 'the name was not found',
  blocked_address: 'the address is not allowed',
  unreadable: 'the answer is not HTTP',
  ...PROXY,
  ...BROKER_FAULTS,
  ...TOKEN_FAULTS,
};

/** What a failed request is told with: a fault of TLS in words, else the error's code or name. */
export function problemText(error: unknown): string {
  const fault = tlsFaultOf(error);
  if (fault) return faultText(fault);
  const { code, name } = error as { code?: unknown; name: string };
  return typeof code === 'string' ? code : name;
}

/** Such as `tls_expired: its certificate has expired`; a code without words stands alone. */
export function faultText(code: string): string {
  const words = FAULT_WORDS[code];
  return words === undefined ? code : `${code}: ${words}`;
}
