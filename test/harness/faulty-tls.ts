/** A TLS server on loopback for each fault that a handshake can have. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import {
  createSecureContext,
  setDefaultCACertificates,
  TLSSocket,
  type TlsOptions,
} from 'node:tls';
import { afterAll, beforeAll } from 'vitest';
import type { TlsFault } from '../../src/resources/faults.ts';
import { type Authority, type Certificate, makeAuthority } from './certificates.ts';
import { useFolder } from './folder.ts';
import { listen } from './listen.ts';

/** How each server behaves; those that share a fault come to it in another way. */
export const FAULTY: readonly (readonly [what: string, fault: TlsFault])[] = [
  ['expired', 'tls_expired'],
  ['not yet valid', 'tls_not_yet_valid'],
  ['of another name', 'tls_wrong_host'],
  ['self-signed', 'tls_unknown_ca'],
  ['of an unknown authority', 'tls_unknown_ca'],
  ['of a client', 'tls_certificate'],
  ['TLS 1.1', 'tls_protocol'],
  ['client certificates only', 'tls_client_certificate'],
  ['plain', 'tls_absent'],
  ['an alert', 'tls_failed'],
];

/** Starts them for the tests of a file; the authority is trusted in this process. */
export function useFaultyServers(behave: Behaviour = (socket, secure) => secure(socket)) {
  const folder = useFolder();
  const started: ChildProcess[] = [];
  const servers: Server[] = [];
  const ports = new Map<string, number>();
  beforeAll(async () => {
    const authority = await makeAuthority(folder);
    setDefaultCACertificates([readFileSync(authority.certFile, 'utf8')]);
    const strict = spawnStrict(await authority.issue('strict'), folder);
    started.push(strict.process);
    const relay = { relaysTo: await strict.port };
    const options = { ...(await optionsOf(authority, folder)), 'client certificates only': relay };
    for (const [what, own] of Object.entries(options)) {
      const server = createServer((socket) => {
        socket.on('error', () => {});
        behave(socket, (raw) => secured(raw, own));
      });
      servers.push(server);
      ports.set(what, await listen(server));
    }
  });
  afterAll(() => {
    for (const server of servers) server.close();
    for (const one of started) one.kill();
  });
  return { folder, portOf: (what: string) => ports.get(what) ?? 0 };
}

/** What a server does with a new connection before the handshake. */
type Behaviour = (socket: Socket, secure: (socket: Socket) => void) => void;

type Options = TlsOptions | { sends: string | Buffer } | { relaysTo: number };

function secured(raw: Socket, options: Options): void {
  if ('sends' in options) {
    raw.once('data', () => raw.end(options.sends));
    return;
  }
  if ('relaysTo' in options) {
    const far = connect(options.relaysTo, '127.0.0.1');
    far.on('error', () => raw.destroy());
    raw.pipe(far).pipe(raw);
    return;
  }
  const secureContext = createSecureContext(options);
  const socket = new TLSSocket(raw, { ...options, isServer: true, secureContext });
  socket.on('error', () => {});
  socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
}

/** Node's own server closes the connection without an alert. */
function spawnStrict({ certFile, keyFile }: Certificate, folder: string) {
  const files = ['-cert', certFile, '-key', keyFile, '-CAfile', join(folder, 'ca.crt')];
  const args = ['s_server', '-accept', '127.0.0.1:0', '-Verify', '1', '-verify_return_error'];
  const child = spawn('openssl', [...args, ...files], { stdio: ['pipe', 'pipe', 'ignore'] });
  const port = new Promise<number>((resolve) => {
    let text = '';
    child.stdout.on('data', (part: Buffer) => {
      text += part;
      const found = /^ACCEPT .*:(\d+)$/m.exec(text)?.[1];
      if (found) resolve(Number(found));
    });
  });
  return { process: child, port };
}

async function optionsOf(authority: Authority, folder: string): Promise<Record<string, Options>> {
  const elsewhere = join(folder, 'elsewhere');
  mkdirSync(elsewhere);
  const unknown = serverOf(await (await makeAuthority(elsewhere)).issue('unknown'));
  const other = await authority.issue('root', { isSelfSigned: true });
  const issue = async (...input: Parameters<Authority['issue']>) =>
    serverOf(await authority.issue(...input));
  const good = await issue('good');
  return {
    good,
    expired: await issue('expired', { until: '20210101000000Z' }),
    'not yet valid': await issue('early', { from: '20980101000000Z' }),
    'of another name': await issue('other', { names: 'DNS:other.example' }),
    'self-signed': serverOf(other),
    'of an unknown authority': unknown,
    'of a client': await issue('client', { usage: 'clientAuth' }),
    'TLS 1.1': { ...good, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' },
    plain: { sends: 'HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n' },
    // Fatal, internal_error.
    'an alert': { sends: Buffer.from([21, 3, 3, 0, 2, 2, 80]) },
  };
}

function serverOf({ cert, key }: Certificate): TlsOptions {
  return { cert, key };
}
