/** RabbitMQ, by the server of Debian. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ChannelModel, connect } from 'amqplib';
import { makeAuthority } from '../harness/certificates.ts';
import { freePort } from '../harness/listen.ts';
import { until } from '../harness/until.ts';
import { type Broker, type Program, type Stored, startProgram } from './broker.ts';

const USER = { username: 'tallyhook', password: 'password of rabbitmq' };
const QUEUE = 'events';
const EXCHANGE = 'tallyhook';

export async function startRabbitmq(folder: string): Promise<Broker> {
  const [port, distribution, epmd] = [await freePort(), await freePort(), await freePort()];
  const securePort = await freePort();
  const authority = await makeAuthority(folder);
  const certificate = await authority.issue('broker', { names: 'DNS:localhost' });
  const own = join(folder, 'rabbitmq');
  mkdirSync(own);
  writeFileSync(
    join(own, 'rabbitmq.conf'),
    `listeners.tcp.1 = 127.0.0.1:${port}
listeners.ssl.1 = 127.0.0.1:${securePort}
ssl_options.cacertfile = ${authority.certFile}
ssl_options.certfile = ${certificate.certFile}
ssl_options.keyfile = ${certificate.keyFile}
default_user = ${USER.username}
default_pass = ${USER.password}
`,
  );
  const env = {
    PATH: `/usr/lib/rabbitmq/bin:${process.env.PATH}`,
    ERL_EPMD_PORT: String(epmd),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: `tallyhook${port}@localhost`,
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_CONFIG_FILE: join(own, 'rabbitmq.conf'),
    RABBITMQ_MNESIA_BASE: join(own, 'mnesia'),
    RABBITMQ_LOG_BASE: join(own, 'log'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(own, 'plugins'),
    RABBITMQ_PID_FILE: join(own, 'pid'),
  };
  const login = `${USER.username}:${encodeURIComponent(USER.password)}`;
  const url = `amqp://${login}@127.0.0.1:${port}`;
  const start = async (): Promise<Program> => {
    const program = await startProgram(
      folder,
      ['/usr/lib/rabbitmq/bin/rabbitmq-server'],
      port,
      env,
    );
    await until(() =>
      connect(url).then(
        (up) => up.close().then(() => true),
        () => undefined,
      ),
    );
    return program;
  };
  // Erlang would start one that outlives the server.
  const names = ['epmd', '-address', '127.0.0.1', '-port', String(epmd)];
  const nameServer = await startProgram(folder, names, epmd);
  let server = await start();
  await declare(url);
  const destination = {
    kind: 'rabbitmq' as const,
    servers: [`127.0.0.1:${port}`],
    tls: false,
    exchange: EXCHANGE,
    routingKey: '{type}',
    ...USER,
  };
  const wrong = 'another password of rabbitmq';
  const seen: Stored[] = [];
  return {
    destination,
    secure: {
      ...destination,
      servers: [`localhost:${securePort}`],
      tls: true,
      ca: readFileSync(authority.certFile, 'utf8'),
    },
    wrong: {
      destination: { ...destination, password: wrong },
      secret: wrong,
      refusal: { status: null, error: 'unauthorized' },
    },
    missing: {
      destination: { ...destination, routingKey: 'bound-to-no-queue' },
      refusal: { status: null, error: 'target_missing' },
    },
    async stored() {
      const model = await connect(url);
      seen.push(...(await takeAll(model)));
      await model.close();
      return seen;
    },
    fail: () => server.end(),
    async recover() {
      server = await start();
    },
    async close() {
      await server.end();
      await nameServer.end();
    },
  };
}

async function declare(url: string): Promise<void> {
  const connection = await connect(url);
  const channel = await connection.createChannel();
  await channel.assertQueue(QUEUE, { durable: true });
  await channel.assertExchange(EXCHANGE, 'topic', { durable: true });
  for (const group of ['operation', 'token', 'wallet'])
    await channel.bindQueue(QUEUE, EXCHANGE, `${group}.#`);
  await connection.close();
}

async function takeAll(model: ChannelModel): Promise<Stored[]> {
  const channel = await model.createChannel();
  const taken: Stored[] = [];
  for (;;) {
    const message = await channel.get(QUEUE, { noAck: true });
    if (!message) return taken;
    const { headers = {}, messageId, type } = message.properties;
    const isRouted = message.fields.routingKey === type;
    taken.push({
      id: messageId,
      key: isRouted ? headers['webhook-subject'] : undefined,
      headers: headers as Record<string, string>,
      body: message.content,
    });
  }
}
