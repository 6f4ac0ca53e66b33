/** Kafka in KRaft mode, from the jars of Maven Central. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Admin, Consumer } from '@platformatic/kafka';
import { makeAuthority } from '../harness/certificates.ts';
import { freePort } from '../harness/listen.ts';
import { until } from '../harness/until.ts';
import { BROKERS, type Broker, type Stored, startProgram } from './broker.ts';

const USER = { username: 'tallyhook', password: 'password of kafka' };
const TOPIC = 'events';
const PARTITIONS = 3;
const JAVA = ['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

export async function startKafka(folder: string, programs = BROKERS): Promise<Broker> {
  const ports = {
    plain: await freePort(),
    controller: await freePort(),
    secure: await freePort(),
    elsewhere: await freePort(),
  };
  const { plain: port } = ports;
  const authority = await makeAuthority(folder);
  const { cert, key } = await authority.issue('broker', { names: 'DNS:localhost' });
  writeFileSync(join(folder, 'kafka.pem'), key + cert);
  const file = join(folder, 'kafka.properties');
  writeFileSync(file, propertiesOf(folder, ports));
  const id = ['-t', 'AAAAAAAAAAAAAAAAAAAAAQ'];
  const user = `SCRAM-SHA-512=[name="${USER.username}",password="${USER.password}"]`;
  const format = ['kafka.tools.StorageTool', 'format', ...id, '-c', file, '--add-scram', user];
  const java = [...JAVA, '-cp', `${programs}/kafka/libs/*`];
  await promisify(execFile)('java', [...java, ...format]);
  const start = () => startProgram(folder, ['java', ...java, 'kafka.Kafka', file], port);
  let server = await start();
  const servers = [`127.0.0.1:${port}`];
  const login = {
    clientId: 'test',
    bootstrapBrokers: servers,
    sasl: { mechanism: 'PLAIN' as const, ...USER },
  };
  await until(() =>
    makeTopic(login).then(
      () => true as const,
      () => undefined,
    ),
  );
  const consumer = new Consumer({ ...login, groupId: 'test' });
  const destination = { kind: 'kafka', servers, tls: false, topic: TOPIC, ...USER } as const;
  const withServers = { ...destination, servers };
  const wrong = 'another password of kafka';
  const seen: Stored[] = [];
  const offsets = Array.from({ length: PARTITIONS }, () => 0n);
  return {
    destination: withServers,
    secure: {
      ...destination,
      servers: [`localhost:${ports.secure}`],
      tls: true,
      mechanism: 'scram-sha-512',
      ca: readFileSync(authority.certFile, 'utf8'),
    },
    elsewhere: { ...destination, servers: [`127.0.0.1:${ports.elsewhere}`] },
    wrong: {
      destination: { ...withServers, password: wrong },
      secret: wrong,
      refusal: { status: null, error: 'unauthorized' },
    },
    missing: {
      destination: { ...withServers, topic: 'nothing' },
      refusal: { status: null, error: 'target_missing' },
    },
    async stored() {
      seen.push(...(await fetchFrom(consumer, offsets)));
      return seen;
    },
    fail: () => server.end(),
    async recover() {
      server = await start();
    },
    async close() {
      await consumer.close();
      await server.end();
    },
  };
}

type Ports = Record<'plain' | 'controller' | 'secure' | 'elsewhere', number>;

function propertiesOf(folder: string, ports: Ports): string {
  const { plain, controller, secure, elsewhere } = ports;
  const { username, password } = USER;
  const module = 'org.apache.kafka.common.security.plain.PlainLoginModule required';
  const user = `username="${username}" password="${password}" user_${username}="${password}"`;
  const logins = ['plain', 'elsewhere'].map(
    (name) => `listener.name.${name}.plain.sasl.jaas.config=${module} ${user};`,
  );
  const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required';
  logins.push(`listener.name.secure.scram-sha-512.sasl.jaas.config=${scram};`);
  return `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${controller}
listeners=PLAIN://127.0.0.1:${plain},SECURE://127.0.0.1:${secure},\
ELSEWHERE://127.0.0.1:${elsewhere},CONTROLLER://127.0.0.1:${controller}
advertised.listeners=PLAIN://127.0.0.1:${plain},SECURE://localhost:${secure},\
ELSEWHERE://10.0.0.1:${elsewhere}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAIN:SASL_PLAINTEXT,SECURE:SASL_SSL,\
ELSEWHERE:SASL_PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAIN
sasl.enabled.mechanisms=PLAIN
listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=PLAIN
${logins.join('\n')}
ssl.keystore.type=PEM
ssl.keystore.location=${join(folder, 'kafka.pem')}
log.dirs=${join(folder, 'kafka')}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
`;
}

async function makeTopic(login: ConstructorParameters<typeof Admin>[0]): Promise<void> {
  const admin = new Admin(login);
  try {
    await admin.createTopics({ topics: [TOPIC], partitions: PARTITIONS, replicas: 1 });
  } finally {
    await admin.close();
  }
}

/** What is stored from these offsets on, which are moved. */
async function fetchFrom(consumer: Consumer, offsets: bigint[]): Promise<Stored[]> {
  const metadata = await consumer.metadata({ topics: [TOPIC], forceUpdate: true });
  const topicId = metadata.topics.get(TOPIC)?.id ?? '';
  const taken: Stored[] = [];
  for (;;) {
    const partitions = offsets.map((fetchOffset, partition) => ({
      partition,
      currentLeaderEpoch: -1,
      fetchOffset,
      lastFetchedEpoch: -1,
      partitionMaxBytes: 1_000_000,
    }));
    const { responses } = await consumer.fetch({
      node: 1,
      topics: [{ topicId, partitions }],
      maxWaitTime: 100,
      minBytes: 1,
    });
    const found = responses.flatMap((topic) => topic.partitions);
    const before = taken.length;
    for (const { partitionIndex, records: batches = [] } of found) {
      for (const { firstOffset, records } of batches) {
        for (const record of records) {
          const offset = firstOffset + BigInt(record.offsetDelta);
          if (offset < (offsets[partitionIndex] ?? 0n)) continue;
          offsets[partitionIndex] = offset + 1n;
          taken.push(storedOf(record));
        }
      }
    }
    if (taken.length === before) return taken;
  }
}

function storedOf(record: {
  key: Buffer | null;
  value: Buffer | null;
  headers: [Buffer | null, Buffer | null][];
}): Stored {
  const headers = Object.fromEntries(
    record.headers.map(([name, value]) => [String(name), value?.toString()]),
  );
  const body = record.value ?? Buffer.alloc(0);
  return { id: headers['webhook-id'], key: record.key?.toString(), headers, body };
}
