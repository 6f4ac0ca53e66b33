/** Certificates made by openssl for one test file: an authority, and what it signs. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Certificate {
  /** Paths of PEM files. */
  certFile: string;
  keyFile: string;
  cert: string;
  key: string;
}

interface Wanted {
  /** In the certificate, such as `DNS:localhost` or `IP:127.0.0.1`. */
  names?: string;
  /** Such as 20200101000000Z. */
  from?: string;
  until?: string;
  /** Such as clientAuth; by default any. */
  usage?: string;
  /** Not by the authority. */
  isSelfSigned?: boolean;
}

export interface Authority {
  certFile: string;
  issue(name: string, wanted?: Wanted): Promise<Certificate>;
  /** The file of a list of revocations that has this certificate and all before it. */
  revoke(certificate: Certificate): Promise<string>;
  /** The file of its key, encrypted with a password. */
  encryptKey(certificate: Certificate, password: string): Promise<string>;
}

/** Trusts what an authority has signed, in this process. */
export async function trust({ certFile }: Authority): Promise<void> {
  setDefaultCACertificates([...getCACertificates(), await readFile(certFile, 'utf8')]);
}

const CONFIG = `
[ca]
default_ca = own
[own]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
`;
const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** @param folder exists, and is removed with what is in it */
export async function makeAuthority(folder: string): Promise<Authority> {
  const openssl = (...args: string[]) => run('openssl', args, { cwd: folder });
  await writeFile(join(folder, 'ca.cnf'), CONFIG);
  await writeFile(join(folder, 'index.txt'), '');
  await writeFile(join(folder, 'serial'), '1000\n');
  const own = ['-keyout', 'ca.key', '-out', 'ca.crt', '-days', '30', '-subj', '/CN=Authority'];
  await openssl('req', '-x509', ...CURVE, ...own);
  return {
    certFile: join(folder, 'ca.crt'),
    async issue(name, wanted = {}) {
      const { names = 'DNS:localhost,IP:127.0.0.1', isSelfSigned = false } = wanted;
      const { from = '20200101000000Z', until = '20991231000000Z' } = wanted;
      const [key, request, cert] = ['key', 'csr', 'crt'].map((kind) => `${name}.${kind}`) as [
        string,
        string,
        string,
      ];
      const usage = wanted.usage ? ['-addext', `extendedKeyUsage=${wanted.usage}`] : [];
      const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${names}`, ...usage];
      await openssl('req', '-new', ...CURVE, '-keyout', key, '-out', request, ...subject);
      const signer = isSelfSigned
        ? ['-selfsign', '-keyfile', key]
        : ['-keyfile', 'ca.key', '-cert', 'ca.crt'];
      const dates = ['-startdate', from, '-enddate', until];
      const files = ['-in', request, '-out', cert, '-notext'];
      await openssl('ca', '-batch', '-config', 'ca.cnf', ...signer, ...dates, ...files);
      return {
        certFile: join(folder, cert),
        keyFile: join(folder, key),
        cert: await readFile(join(folder, cert), 'utf8'),
        key: await readFile(join(folder, key), 'utf8'),
      };
    },
    async revoke({ certFile }) {
      const own = ['ca', '-config', 'ca.cnf', '-keyfile', 'ca.key', '-cert', 'ca.crt'];
      await openssl(...own, '-revoke', certFile);
      await openssl(...own, '-gencrl', '-crldays', '30', '-out', 'revoked.crl');
      return join(folder, 'revoked.crl');
    },
    async encryptKey({ keyFile }, password) {
      const out = `${keyFile}.encrypted`;
      await openssl('ec', '-aes128', '-in', keyFile, '-out', out, '-passout', `pass:${password}`);
      return out;
    },
  };
}
