/** Certificates that openssl makes for the names of a test. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';

export interface Certificate {
  key: string;
  cert: string;
}

/** A certificate that is its own authority. @param names such as `DNS:a.test` or `IP:127.0.0.1` */
export function makeCertificate(folder: string, names: readonly string[]): Certificate {
  const files = { key: join(folder, 'own.key'), cert: join(folder, 'own.pem') };
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-keyout', files.key, '-out', files.cert, '-days', '2', '-subj', '/CN=test'],
      ...['-addext', `subjectAltName=${names.join(',')}`],
    ],
    { stdio: 'ignore' },
  );
  return { key: readFileSync(files.key, 'utf8'), cert: readFileSync(files.cert, 'utf8') };
}

/** Trusts it in this process. */
export function trust({ cert }: Certificate): void {
  setDefaultCACertificates([...getCACertificates(), cert]);
}
