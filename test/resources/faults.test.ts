/** Codes of Node and OpenSSL, and the fault of TLS that each is. */
import { expect, it } from 'vitest';
import {
  FAULT_WORDS,
  failedHandshake,
  TLS_FAULTS,
  tlsFaultOf,
} from '../../src/resources/faults.ts';

const coded = (code: string, cause?: Error) => Object.assign(new Error('x', { cause }), { code });

it.each([
  ['CERT_HAS_EXPIRED', 'tls_expired'],
  ['CERT_NOT_YET_VALID', 'tls_not_yet_valid'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_wrong_host'],
  ['HOSTNAME_MISMATCH', 'tls_wrong_host'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_unknown_ca'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls_unknown_ca'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls_unknown_ca'],
  ['UNABLE_TO_GET_ISSUER_CERT', 'tls_unknown_ca'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls_unknown_ca'],
  ['CERT_REVOKED', 'tls_certificate'],
  ['UNABLE_TO_GET_CRL', 'tls_certificate'],
  ['INVALID_PURPOSE', 'tls_certificate'],
  ['ERR_SSL_CA_MD_TOO_WEAK', 'tls_certificate'],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'tls_client_certificate'],
  ['ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE', 'tls_client_certificate'],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'tls_client_certificate'],
  ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'tls_protocol'],
  ['ERR_SSL_UNSUPPORTED_PROTOCOL', 'tls_protocol'],
  ['ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE', 'tls_protocol'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_absent'],
  ['ERR_SSL_HTTP_REQUEST', 'tls_absent'],
  ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', 'tls_failed'],
  ['ERR_TLS_HANDSHAKE_TIMEOUT', 'tls_failed'],
  ['tls_absent', 'tls_absent'],
  ['ECONNRESET', undefined],
  ['ECONNREFUSED', undefined],
  ['UND_ERR_CONNECT_TIMEOUT', undefined],
  ['28P01', undefined],
])('%s is %s, also as the cause of an error', (code, fault) => {
  expect(tlsFaultOf(coded(code))).toBe(fault);
  expect(tlsFaultOf(new TypeError('fetch failed', { cause: coded(code) }))).toBe(fault);
});

it('A handshake that ends without a fault of TLS failed', () => {
  expect(tlsFaultOf(failedHandshake(coded('ECONNRESET')))).toBe('tls_failed');
  expect(tlsFaultOf(failedHandshake(null))).toBe('tls_failed');
  expect(tlsFaultOf(failedHandshake(coded('CERT_HAS_EXPIRED')))).toBe('tls_expired');
});

it('Every fault of TLS has words', () => {
  expect(TLS_FAULTS.filter((fault) => !FAULT_WORDS[fault])).toEqual([]);
});
