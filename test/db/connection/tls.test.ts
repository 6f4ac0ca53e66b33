/** TLS towards Postgres: a real one with generated certificates, and servers with each fault. */
import { appendFile, chown, copyFile, readFile, stat, writeFile } from 'node:fs/promises';
import { connect as connectTcp, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { reach } from '../../../src/db/access/reach.ts';
import { connect, type Db } from '../../../src/db/connect.ts';
import { isUnavailable, toDatabaseError } from '../../../src/db/sqlstate.ts';
import { FAULT_WORDS } from '../../../src/resources/faults.ts';
import { type Authority, type Certificate, makeAuthority } from '../../harness/certificates.ts';
import { FAULTY, useFaultyServers } from '../../harness/faulty-tls.ts';
import { useFolder } from '../../harness/folder.ts';
import { listen } from '../../harness/listen.ts';
import { endProcesses, open, query, removeFolders, temporaryFolder } from '../embedded-server.ts';

/** Who may log in, and how; the last line is for everybody else. */
const RULES = `
hostssl   all tls_only   127.0.0.1/32 scram-sha-256
hostnossl all plain_only 127.0.0.1/32 scram-sha-256
hostssl   all with_cert  127.0.0.1/32 scram-sha-256 clientcert=verify-ca
host      all hashed     127.0.0.1/32 md5
host      all clear      127.0.0.1/32 password
host      all postgres,ada,reader 127.0.0.1/32 scram-sha-256
`;
const LOGINS = ['tls_only', 'plain_only', 'with_cert', 'clear', 'ada', 'reader'];

const folder = useFolder();
let authority: Authority;
let client: Certificate;
let serverCertificate: Certificate;
let stranger: Certificate;
let port: number;
/** Ends TLS with a certificate of its own and passes on what it reads. */
let eavesdropper: Server;
let eavesdropperPort: number;

beforeAll(async () => {
  authority = await makeAuthority(folder);
  client = await authority.issue('with_cert');
  stranger = await authority.issue('stranger', { isSelfSigned: true });
  const own = await authority.issue('server', { names: 'DNS:localhost' });
  serverCertificate = own;
  const server = await open({ directory: join(await temporaryFolder(), 'data') });
  port = Number(new URL(server.url).port);
  for (const login of LOGINS)
    await query(server.url, `create role ${login} login password '${login}'`);
  await query(server.url, 'alter role reader set default_transaction_read_only = on');
  await query(
    server.url,
    `do $$ begin set local password_encryption = 'md5';
      create role hashed login password 'hashed'; end $$`,
  );
  const { uid, gid } = await stat(server.dataFolder);
  const copied = {
    'server.crt': own.certFile,
    'server.key': own.keyFile,
    'root.crt': authority.certFile,
  };
  for (const [name, from] of Object.entries(copied)) {
    const to = join(server.dataFolder, name);
    await copyFile(from, to);
    await chown(to, uid, gid);
  }
  await writeFile(join(server.dataFolder, 'pg_hba.conf'), RULES);
  await query(server.url, "alter system set ssl_ca_file = 'root.crt'");
  await query(server.url, 'alter system set ssl = on');
  await query(server.url, 'select pg_reload_conf()');
  eavesdropper = createServer((near) => {
    near.on('error', () => {});
    near.once('data', (request: Buffer) => {
      const far = connectTcp(port, '127.0.0.1', () => far.write(request));
      far.once('data', (answer: Buffer) => {
        // The handshake of the client begins when it has the answer.
        near.write(answer);
        const own = { cert: stranger.cert, key: stranger.key };
        const inner = new TLSSocket(near, { isServer: true, ...own });
        const outer = connectTls({ socket: far, rejectUnauthorized: false });
        for (const socket of [inner, outer]) socket.on('error', () => inner.destroy());
        inner.pipe(outer).pipe(inner);
      });
    });
  });
  eavesdropperPort = await listen(eavesdropper);
});
afterAll(async () => {
  eavesdropper.close();
  await endProcesses();
  await removeFolders();
});

/** The version of TLS of a connection, `plain`, or the code of its failure. */
async function tried(url: string): Promise<string> {
  const db = connect({ url, max: 1 });
  try {
    const [row] = await db.sql<{ version: string | null }[]>`
      select version from pg_stat_ssl where pid = pg_backend_pid()`;
    return row?.version ?? 'plain';
  } catch (error) {
    return codeOf(error);
  } finally {
    await db.end(0);
  }
}

function codeOf(error: unknown): string {
  const { code } = toDatabaseError(error) as { code: string };
  return code;
}

function urlOf(user: string, query: string, host = `localhost:${port}`): string {
  const files = { CA: authority.certFile, CERT: client.certFile, KEY: client.keyFile };
  const others = { OTHER: stranger.certFile, OTHER_KEY: stranger.keyFile };
  const written = Object.entries({ ...files, ...others }).reduce(
    (text, [name, file]) => text.replace(new RegExp(`=${name}(?=&|$)`), `=${file}`),
    query,
  );
  return `postgres://${user}:${user}@${host}/postgres?${written}`;
}

const TLS = 'TLSv1.3';

describe('The mode of TLS means what libpq documents', () => {
  it.each<[user: string, query: string, found: string]>([
    ['ada', 'sslmode=disable', 'plain'],
    ['ada', 'sslmode=allow', 'plain'],
    ['ada', 'sslmode=prefer', TLS],
    ['ada', '', TLS],
    ['ada', 'sslmode=require', TLS],
    ['ada', 'sslmode=verify-ca&sslrootcert=CA', TLS],
    ['ada', 'sslmode=verify-full&sslrootcert=CA', TLS],
    ['ada', 'sslmode=verify-full', 'tls_unknown_ca'],
    ['ada', 'sslrootcert=system', 'tls_unknown_ca'],
    // With authorities every mode verifies.
    ['ada', 'sslmode=require&sslrootcert=OTHER', 'tls_unknown_ca'],
    ['ada', 'sslmode=prefer&sslrootcert=OTHER', 'plain'],
    ['tls_only', 'sslmode=allow&sslrootcert=OTHER', 'tls_unknown_ca'],
    ['ada', 'sslmode=require&sslnegotiation=direct', TLS],
    ['ada', 'sslmode=require&ssl_max_protocol_version=TLSv1.2', 'TLSv1.2'],
    ['ada', 'sslmode=require&sslsni=0', TLS],
    // The second way of allow and prefer, when the server refuses the first.
    ['tls_only', 'sslmode=disable', '28000'],
    ['tls_only', 'sslmode=allow', TLS],
    ['plain_only', 'sslmode=prefer', 'plain'],
    ['plain_only', 'sslmode=require', '28000'],
    ['with_cert', 'sslmode=require', 'tls_client_certificate'],
    ['with_cert', 'sslmode=require&sslcert=CERT&sslkey=KEY', TLS],
    ['with_cert', 'sslmode=require&sslcert=OTHER&sslkey=OTHER_KEY', 'tls_client_certificate'],
    [
      'with_cert',
      'sslmode=require&sslcert=CERT&sslkey=KEY&sslcertmode=disable',
      'tls_client_certificate',
    ],
  ])('for %s with %s: %s', async (user, query, found) => {
    expect(await tried(urlOf(user, query))).toBe(found);
  });

  it.each([
    ['sslmode=verify-full&sslrootcert=CA', 'tls_wrong_host'],
    ['sslmode=verify-ca&sslrootcert=CA', TLS],
    ['sslmode=verify-full&sslrootcert=CA&host=localhost&hostaddr=127.0.0.1', TLS],
  ])('of a server that is named by an address: %s: %s', async (query, found) => {
    const port_ = query.includes('hostaddr') ? `&port=${port}` : '';
    expect(await tried(urlOf('ada', query + port_, `127.0.0.1:${port}`))).toBe(found);
  });

  it.each([
    ['', 'plain'],
    ['sslmode=allow', 'plain'],
    ['sslmode=require', 'tls_absent'],
    ['sslmode=verify-full', 'tls_absent'],
    ['channel_binding=require', 'NO_CHANNEL_BINDING'],
  ])('of a server without TLS: %s: %s', async (query, found) => {
    expect(await tried(`${inject('serverUrl')}?${query}`)).toBe(found);
  });
});

describe('A password is proved', () => {
  it.each([
    ['ada', 'channel_binding=require', TLS],
    ['ada', 'channel_binding=require&sslmode=disable', 'NO_CHANNEL_BINDING'],
    ['ada', 'channel_binding=disable', TLS],
    ['ada', 'sslmode=disable', 'plain'],
    ['hashed', '', TLS],
    ['hashed', 'channel_binding=require', 'NO_CHANNEL_BINDING'],
    ['clear', '', TLS],
    ['clear', 'channel_binding=require', 'NO_CHANNEL_BINDING'],
    ['ada', 'password=wrong', '28P01'],
    ['clear', 'password=wrong', '28P01'],
  ])('of %s with %s: %s', async (user, query, found) => {
    expect(await tried(urlOf(user, query))).toBe(found);
  });

  it('only to the server that ends TLS, if the channel is bound', async () => {
    const between = `localhost:${eavesdropperPort}`;
    const at = (query: string) => tried(urlOf('ada', query, between));
    expect(await at('sslmode=require&channel_binding=disable')).toBe(TLS);
    expect(await at('sslmode=require&channel_binding=require')).not.toBe(TLS);
    expect(await at('sslmode=require')).not.toBe(TLS);
    expect(await at('sslmode=verify-full&sslrootcert=CA')).toBe('tls_unknown_ca');
  });
});

describe('Of several hosts', () => {
  it.each([
    ['ada', '', TLS],
    ['ada', 'target_session_attrs=read-write', TLS],
    ['ada', 'target_session_attrs=primary', TLS],
    ['ada', 'target_session_attrs=standby', 'NO_TARGET_SESSION'],
    ['ada', 'target_session_attrs=prefer-standby', TLS],
    ['reader', 'target_session_attrs=read-only', TLS],
    ['reader', 'target_session_attrs=read-write', 'NO_TARGET_SESSION'],
  ])('the first that answers and suits is used: %s with %s: %s', async (user, query, found) => {
    expect(await tried(urlOf(user, query, `127.0.0.1:1,localhost:${port}`))).toBe(found);
  });
});

it('Options of the session reach the server', async () => {
  const query = 'options=-c%20search_path%3Dpg_catalog%20-c%20work_mem%3D3MB&application_name=shop';
  const db = connect({ url: urlOf('ada', query), max: 1 });
  const [row] = await db.sql`select current_setting('search_path') as path,
    current_setting('work_mem') as memory, current_setting('application_name') as name`;
  expect(row).toEqual({ path: 'pg_catalog', memory: '3MB', name: 'shop' });
  await db.end();
});

it('A pool reads renewed files for its next connection, and connects again after a failure', async () => {
  const file = join(folder, 'renewed.crt');
  await writeFile(file, await readFile(stranger.certFile));
  const db: Db = connect({ url: urlOf('ada', `sslmode=verify-full&sslrootcert=${file}`), max: 1 });
  const one = () =>
    db.sql`select 1 as one`.then(
      (rows) => [...rows],
      (error) => error,
    );
  const refused = await one();
  expect([codeOf(refused), isUnavailable(refused)]).toEqual(['tls_unknown_ca', true]);
  await appendFile(file, await readFile(authority.certFile));
  expect(await one()).toEqual([{ one: 1 }]);
  await db.end();
});

it('A key may be encrypted, and needs its password', async () => {
  const file = await authority.encryptKey(client, 'open sesame');
  const files = `sslmode=require&sslcert=CERT&sslkey=${file}`;
  expect(await tried(urlOf('with_cert', `${files}&sslpassword=open%20sesame`))).toBe(TLS);
  expect(await tried(urlOf('with_cert', `${files}&sslpassword=wrong`))).toBe('TLS_FILES');
});

it('A server whose certificate is revoked is refused', async () => {
  const other = await authority.revoke(client);
  const query = (file: string) => `sslmode=verify-full&sslrootcert=CA&sslcrl=${file}`;
  expect(await tried(urlOf('ada', query(other)))).toBe(TLS);
  const own = await authority.revoke(serverCertificate);
  expect(await tried(urlOf('ada', query(own)))).toBe('tls_certificate');
});

it('One line names a file that cannot be read', async () => {
  const url = urlOf('ada', 'sslmode=verify-full&sslrootcert=/nonexistent/ca.pem');
  await expect(reach({ variable: 'DATABASE_URL', url }, 0)).rejects.toMatchObject({
    code: 'bad_setting',
    detail: 'DATABASE_URL: sslrootcert: /nonexistent/ca.pem cannot be read (ENOENT)',
  });
});

describe('One line says what is wrong with TLS and what to do', () => {
  const REQUEST = 8;
  const faulty = useFaultyServers((socket, secure) => {
    socket.once('data', (request: Buffer) => {
      if (request.length !== REQUEST) return socket.destroy();
      socket.write('S');
      return secure(socket);
    });
  });
  it.each(FAULTY)('for a server that is %s: %s', async (what, fault) => {
    const at = `127.0.0.1:${faulty.portOf(what)}`;
    const url = `postgres://ada:hush@${at}/shop?sslmode=verify-full`;
    const detail = await reach({ variable: 'DATABASE_URL', url }, 60_000).then(
      () => 'reached',
      (error) => error.detail,
    );
    expect(detail).toContain(`DATABASE_URL: ${at}: ${FAULT_WORDS[fault]}; `);
  });
});
