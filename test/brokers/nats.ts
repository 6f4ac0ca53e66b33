/** NATS JetStream, by the server of Debian. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { makeAuthority } from '../harness/certificates.ts';
import { freePort } from '../harness/listen.ts';
import { type Broker, type Stored, startProgram } from './broker.ts';

const USER = { username: 'tallyhook', password: 'password of nats' };
const STREAM = 'EVENTS';

export async function startNats(folder: string): Promise<Broker> {
  const port = await freePort();
  const authority = await makeAuthority(folder);
  const own = await authority.issue('broker', { names: 'DNS:localhost' });
  const file = join(folder, 'nats.conf');
  writeFileSync(
    file,
    `listen: 127.0.0.1:${port}
jetstream { store_dir: "${join(folder, 'nats')}" }
tls { cert_file: "${own.certFile}", key_file: "${own.keyFile}" }
allow_non_tls: true
authorization { user: "${USER.username}", password: "${USER.password}" }
`,
  );
  const start = () => startProgram(folder, ['/usr/sbin/nats-server', '-c', file], port);
  let server = await start();
  const withConnection = async <T>(act: (connection: NatsConnection) => Promise<T>) => {
    const login = { user: USER.username, pass: USER.password, tls: null };
    const connection = await connect({ servers: `127.0.0.1:${port}`, ...login });
    return act(connection).finally(() => connection.close());
  };
  await withConnection(async (connection) => {
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: STREAM, subjects: ['events.>'] });
  });
  const servers = [`127.0.0.1:${port}`];
  const destination = {
    kind: 'nats',
    servers,
    tls: false,
    subject: 'events.{type}',
    ...USER,
  } as const;
  const wrong = 'another password of nats';
  const seen: Stored[] = [];
  return {
    destination: { ...destination, servers },
    secure: {
      ...destination,
      servers: [`localhost:${port}`],
      tls: true,
      ca: readFileSync(authority.certFile, 'utf8'),
    },
    wrong: {
      destination: { ...destination, servers, password: wrong },
      secret: wrong,
      refusal: { status: null, error: 'unauthorized' },
    },
    missing: {
      destination: { ...destination, servers, subject: 'nothing.{type}' },
      refusal: { status: null, error: 'target_missing' },
    },
    async stored() {
      seen.push(...(await withConnection((connection) => readStream(connection, seen.length + 1))));
      return seen;
    },
    fail: () => server.end(),
    async recover() {
      server = await start();
    },
    close: () => server.end(),
  };
}

async function readStream(connection: NatsConnection, from: number): Promise<Stored[]> {
  const manager = await jetstreamManager(connection);
  const { state } = await manager.streams.info(STREAM);
  const stored: Stored[] = [];
  const stream = await jetstream(connection).streams.get(STREAM);
  for (let seq = from; seq <= state.last_seq; seq++) {
    const message = await stream.getMessage({ seq });
    const headers: Record<string, string | undefined> = {};
    for (const name of message?.header.keys() ?? []) headers[name] = message?.header.get(name);
    const type = JSON.parse(message?.string() ?? '{}').type;
    const isOnItsSubject = message?.subject === `events.${type}`;
    stored.push({
      id: headers['Nats-Msg-Id'],
      key: isOnItsSubject ? headers['webhook-subject'] : undefined,
      headers,
      body: Buffer.from(message?.data ?? []),
    });
  }
  return stored;
}
