/** Certificates and private keys as PEM, as people give them. Pure. */
import { X509Certificate } from 'node:crypto';

const PEM_CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Every certificate of a PEM text, the first one first; undefined when one cannot be read. */
export function parseCertificates(pem: string): X509Certificate[] | undefined {
  try {
    const all = pem.match(PEM_CERTIFICATES)?.map((one) => new X509Certificate(one));
    return all;
  } catch {
    return undefined;
  }
}

/** True for a PEM text with at least one certificate, all of which can be read. */
export function isX509(pem: string): boolean {
  return parseCertificates(pem) !== undefined;
}
