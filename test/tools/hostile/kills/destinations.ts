/** Where the events of a run with kills go, and what came there: HTTP receivers, and brokers. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after } from '../../../../src/kernel/clock.ts';
import type { Random } from '../../../../src/kernel/random.ts';
import { type Broker, type StartBroker, snakeOf } from '../../../brokers/broker.ts';
import { startKafka } from '../../../brokers/kafka.ts';
import { startNats } from '../../../brokers/nats.ts';
import { startRabbitmq } from '../../../brokers/rabbitmq.ts';
import { startSqs } from '../../../brokers/sqs.ts';
import { listen } from '../../../harness/listen.ts';
import { Seen } from '../seen.ts';
import { httpServer } from '../server.ts';

/** An event as it came: one of several attempts, or one message of a log. */
export interface Arrival {
  id: string;
  body: string;
  /** In milliseconds of `monotonicMs`; undefined of a message that a broker has stored. */
  atMs: number | undefined;
  /** False if it was refused, so that it has to come again. */
  isAccepted: boolean;
}

export interface Destination {
  name: string;
  /** What `POST /api/endpoints` is given, beside what all have. */
  endpoint: { ordering: 'none' | 'subject' } & Record<string, unknown>;
  /** It stores one message of an id, however many come. */
  removesRepeats: boolean;
  /** In the order in which they came or are stored. To be called once, when all have come. */
  arrivals(): Promise<readonly Arrival[]>;
  /** Ends it as a crash does, and starts it again. */
  restart?(): Promise<void>;
  close(): Promise<void>;
}

/** The ordered one refuses the first attempt of one event in so many. */
const REFUSED_EVERY = 20;
/** Answers come after up to this, so that a kill finds attempts in flight. */
const ANSWERS_WITHIN_MS = 100;

export async function openReceivers(random: Random): Promise<Destination[]> {
  return [
    await httpDestination('HTTP', random, { ordering: 'none', refusedEvery: 0 }),
    await httpDestination('HTTP in order', random, {
      ordering: 'subject',
      refusedEvery: REFUSED_EVERY,
    }),
  ];
}

interface BrokerKind {
  name: string;
  start: StartBroker;
  removesRepeats: boolean;
  /** False of one that keeps what it has in memory. */
  restarts: boolean;
}

/** What docs/destinations.md says of them. */
const BROKER_KINDS: readonly BrokerKind[] = [
  { name: 'Kafka', start: startKafka, removesRepeats: false, restarts: true },
  { name: 'NATS', start: startNats, removesRepeats: true, restarts: true },
  { name: 'RabbitMQ', start: startRabbitmq, removesRepeats: false, restarts: true },
  { name: 'SQS', start: startSqs, removesRepeats: true, restarts: false },
];

/**
 * @param folder of what the brokers store
 * @param programs see ../../../brokers/broker.ts
 */
export async function openBrokers(folder: string, programs: string): Promise<Destination[]> {
  const opened: Destination[] = [];
  try {
    for (const kind of BROKER_KINDS) {
      const own = join(folder, kind.name);
      await mkdir(own);
      opened.push(brokerDestination(kind, await kind.start(own, programs)));
    }
    return opened;
  } catch (error) {
    for (const { close } of opened) await close();
    throw error;
  }
}

function brokerDestination(
  { name, removesRepeats, restarts }: BrokerKind,
  broker: Broker,
): Destination {
  const restart = async () => {
    await broker.fail();
    await broker.recover();
  };
  return {
    name,
    removesRepeats,
    endpoint: { ordering: 'subject', destination: snakeOf(broker.destination) },
    async arrivals() {
      const stored = await broker.stored();
      return stored.map(({ id = '', body }) => {
        return { id, body: body.toString(), atMs: undefined, isAccepted: true };
      });
    },
    ...(restarts ? { restart } : {}),
    close: () => broker.close(),
  };
}

async function httpDestination(
  name: string,
  random: Random,
  { ordering, refusedEvery }: { ordering: 'none' | 'subject'; refusedEvery: number },
): Promise<Destination> {
  const seen = new Seen();
  const arrivals: Arrival[] = [];
  const known = new Set<string>();
  const server = httpServer(seen, ({ request, response }) => {
    const { id, body, atMs } = request;
    const isFirst = !known.has(id);
    known.add(id);
    const isRefused = isFirst && refusedEvery > 0 && known.size % refusedEvery === 0;
    // Accepted, whether or not anybody lives to read the answer.
    arrivals.push({ id, body, atMs, isAccepted: !isRefused });
    after(ANSWERS_WITHIN_MS * random.unit(), () => {
      response.writeHead(isRefused ? 500 : 200, { 'content-length': '0' }).end();
    });
  });
  const port = await listen(server);
  return {
    name,
    endpoint: { ordering, url: `http://127.0.0.1:${port}/hook` },
    removesRepeats: false,
    arrivals: async () => arrivals,
    close: () =>
      new Promise((resolve) => {
        for (const socket of seen.sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
