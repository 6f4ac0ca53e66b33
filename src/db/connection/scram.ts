/**
 * The client of SCRAM-SHA-256 (RFC 5802, 7677) with the channel binding `tls-server-end-point` (RFC
 * 5929), which proves that TLS ends at the server that knows the password. The driver's own has no
 * channel binding.
 */
import { createHash, createHmac, pbkdf2, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { assert } from '../../kernel/errors.ts';
import { coded } from './messages.ts';

export const SCRAM_FAILED = 'SCRAM_FAILED';

const derive = promisify(pbkdf2);
const ITERATIONS_MAX = 10_000_000;

/** What is said of channel binding: bound; the server has none though we have; without TLS. */
export type Binding = { certificate: Buffer } | 'unavailable' | 'none';

export interface Scram {
  mechanism: 'SCRAM-SHA-256' | 'SCRAM-SHA-256-PLUS';
  first: string;
  /** @throws Error for what is not the answer to `first` */
  final(serverFirst: string): Promise<string>;
  /** @throws Error for a server that does not know the password */
  verify(serverFinal: string): void;
}

export function startScram(password: string, nonce: string, binding: Binding): Scram {
  const isBound = typeof binding === 'object';
  const header = isBound ? 'p=tls-server-end-point,,' : binding === 'unavailable' ? 'y,,' : 'n,,';
  const bare = `n=,r=${nonce}`;
  let expected: Buffer | undefined;
  return {
    mechanism: isBound ? 'SCRAM-SHA-256-PLUS' : 'SCRAM-SHA-256',
    first: header + bare,
    async final(serverFirst) {
      const { r = '', s = '', i = '' } = attributesOf(serverFirst);
      const iterations = Number(i);
      if (!r.startsWith(nonce) || r === nonce || !(iterations >= 1 && iterations <= ITERATIONS_MAX))
        throw coded(SCRAM_FAILED, 'the answer of the server is not SCRAM');
      const digest = isBound ? digestOf(binding.certificate) : undefined;
      const channel = Buffer.concat([Buffer.from(header), digest ?? Buffer.alloc(0)]);
      const withoutProof = `c=${channel.toString('base64')},r=${r}`;
      const signed = [bare, serverFirst, withoutProof].join(',');
      const salt = Buffer.from(s, 'base64');
      const salted = await derive(password.normalize('NFKC'), salt, iterations, 32, 'sha256');
      const key = hmac(salted, 'Client Key');
      const signature = hmac(sha256(key), signed);
      expected = hmac(hmac(salted, 'Server Key'), signed);
      const proof = key.map((byte, n) => byte ^ (signature[n] ?? 0));
      return `${withoutProof},p=${Buffer.from(proof).toString('base64')}`;
    },
    verify(serverFinal) {
      const given = Buffer.from(attributesOf(serverFinal).v ?? '', 'base64');
      if (!expected || given.length !== expected.length || !timingSafeEqual(given, expected))
        throw coded(SCRAM_FAILED, 'the server does not know the password');
    },
  };
}

function attributesOf(message: string): Record<string, string> {
  return Object.fromEntries(message.split(',').map((part) => [part.slice(0, 1), part.slice(2)]));
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}

/** Signature algorithms as DER has them, and the hash that the binding takes instead. */
const HASHES: Record<string, string> = {
  '2a864886f70d010104': 'sha256', // RSA with MD5
  '2a864886f70d010105': 'sha256', // RSA with SHA-1
  '2a864886f70d01010b': 'sha256',
  '2a864886f70d01010c': 'sha384',
  '2a864886f70d01010d': 'sha512',
  '2a8648ce3d0401': 'sha256', // ECDSA with SHA-1
  '2a8648ce3d040302': 'sha256',
  '2a8648ce3d040303': 'sha384',
  '2a8648ce3d040304': 'sha512',
};

/** Whether the binding is defined for a certificate: its signature names one hash. */
export function canBind(certificate: Buffer): boolean {
  return hashOf(certificate) !== undefined;
}

function digestOf(certificate: Buffer): Buffer {
  const hash = hashOf(certificate);
  assert(hash, 'a hash');
  return createHash(hash).update(certificate).digest();
}

/** Certificate ::= SEQUENCE { tbsCertificate, SEQUENCE { OBJECT IDENTIFIER, … }, … } */
function hashOf(certificate: Buffer): string | undefined {
  const whole = elementAt(certificate, 0);
  const signed = elementAt(certificate, whole.start);
  const algorithm = elementAt(certificate, signed.end);
  const name = elementAt(certificate, algorithm.start);
  return HASHES[certificate.subarray(name.start, name.end).toString('hex')];
}

/** Where the content of the DER element at an offset starts and ends. */
function elementAt(bytes: Buffer, offset: number): { start: number; end: number } {
  const short = bytes[offset + 1] ?? 0;
  const more = short < 0x80 ? 0 : short & 0x7f;
  const start = offset + 2 + more;
  const length = more === 0 || more > 4 ? short : bytes.readUIntBE(offset + 2, more);
  return { start, end: start + length };
}
