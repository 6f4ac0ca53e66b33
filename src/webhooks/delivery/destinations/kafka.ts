/**
 * Kafka. The subject of the event is the key, and so chooses the partition; a message is stored
 * when all replicas in sync have it. The producer is not idempotent, because its sequence would not
 * outlive the daemon: a send whose answer was lost is repeated with the same id.
 */
import { isIP } from 'node:net';
import {
  type Broker,
  type Connection,
  type ConnectionPool,
  compatibilityPartitioner,
  ProduceAcks,
  Producer,
} from '@platformatic/kafka';
import { type KafkaSettings, serverOf } from '../../endpoints/destination/destination.ts';
import type { BrokerDriver, Link } from './link.ts';
import type { Network } from './network.ts';

export const driver: BrokerDriver<KafkaSettings> = {
  open: async (settings, network, timeoutMs) => openProducer(settings, network, timeoutMs),
  faults: {
    PLT_KFK_AUTHENTICATION: 'unauthorized',
    SASL_AUTHENTICATION_FAILED: 'unauthorized',
    TOPIC_AUTHORIZATION_FAILED: 'unauthorized',
    CLUSTER_AUTHORIZATION_FAILED: 'unauthorized',
    UNKNOWN_TOPIC_OR_PARTITION: 'target_missing',
    INVALID_TOPIC_EXCEPTION: 'target_missing',
    MESSAGE_TOO_LARGE: 'too_large',
    RECORD_LIST_TOO_LARGE: 'too_large',
    PLT_KFK_PROTOCOL: 'rejected',
    PLT_KFK_TIMEOUT: 'timeout',
    PLT_KFK_NETWORK: 'reset',
  },
};
/** Bootstrap connections and those to the leaders of partitions. */
const IN_FLIGHT = 64;

function openProducer(settings: KafkaSettings, network: Network, timeoutMs: number): Link {
  const { tls = true, ca, username, password = '', mechanism = 'plain', topic } = settings;
  const servers = settings.servers.map((server) => serverOf(settings, server, network.rules));
  const producer = new Producer<string, Buffer, string, string>({
    clientId: 'tallyhook',
    bootstrapBrokers: servers,
    serializers: {
      key: textBytes,
      headerKey: textBytes,
      headerValue: textBytes,
      value: (value) => value,
    },
    acks: ProduceAcks.ALL,
    autocreateTopics: false,
    // The default one of Java's client, so that a key has the same partition with every producer.
    partitioner: compatibilityPartitioner,
    // The schedule of the delivery repeats it.
    retries: 0,
    connectTimeout: timeoutMs,
    requestTimeout: timeoutMs,
    timeout: timeoutMs,
    maxInflights: IN_FLIGHT,
    ...(tls ? { tls: { lookup: network.lookup, ...(ca ? { ca } : {}) } } : {}),
    // The name in SNI; an address is none. Certificates are checked for either.
    tlsServerName: servers.every(({ host }) => isIP(host) === 0),
    ...(username === undefined
      ? {}
      : {
          sasl: {
            mechanism: mechanism.toUpperCase() as 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512',
            username,
            password,
          },
        }),
  });
  judgeBrokers(producer.connections, network, tls);
  let isOpen = true;
  return {
    isOpen: () => isOpen,
    async send({ key, headers, body }) {
      const sent = { topic, key, value: body, headers: { ...headers, 'webhook-subject': key } };
      const { offsets = [] } = await producer.send({ messages: [sent] }).catch(refused);
      const { partition, offset } = offsets[0] ?? {};
      return { topic, partition, offset: String(offset) };
    },
    async close() {
      isOpen = false;
      await producer.close().catch(() => {});
    },
  };
}

/** The driver names no code for a topic that it does not find. */
function refused(error: Error & { code?: unknown }): never {
  const isUnknown = error.code === 'PLT_KFK_USER' && error.cause === undefined;
  throw isUnknown
    ? Object.assign(new Error('', { cause: error }), { code: 'target_missing' })
    : error;
}

type Report = (error: Error | null, connection?: Connection) => void;

/**
 * The addresses of all brokers are judged, those that the cluster names too. The driver connects
 * to names by the system's resolver, unless it uses TLS, which takes a lookup.
 */
function judgeBrokers(connections: ConnectionPool, network: Network, tls: boolean): void {
  const connect = connections.get.bind(connections) as (broker: Broker, report: Report) => void;
  const judged = (broker: Broker, report: Report) => {
    network.addressesOf(broker.host).then(
      ([address = '']) => connect({ ...broker, host: tls ? broker.host : address }, report),
      (error: Error) => report(error),
    );
  };
  connections.get = judged as typeof connections.get;
}

function textBytes(text: string | undefined): Buffer | undefined {
  return text === undefined ? undefined : Buffer.from(text);
}
