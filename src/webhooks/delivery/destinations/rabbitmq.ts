/**
 * RabbitMQ, by AMQP 0-9-1. A message is persistent, and stored when the broker has confirmed it;
 * one that no queue takes is returned, and is a failure.
 */
import { connect } from 'amqplib';
import {
  placeFor,
  type RabbitmqSettings,
  serverOf,
} from '../../endpoints/destination/destination.ts';
import { type BrokerDriver, firstOf, type Link } from './link.ts';
import type { Network } from './network.ts';

/** The reply code of AMQP for a message that no queue takes. */
const NO_ROUTE = 312;

export const driver: BrokerDriver<RabbitmqSettings> = {
  open: (settings, network, timeoutMs) =>
    firstOf(settings.servers, (server) => openAt(server, settings, network, timeoutMs)),
  faults: {
    // Reply codes of AMQP: access refused, not found, precondition failed, no route.
    403: 'unauthorized',
    404: 'target_missing',
    [NO_ROUTE]: 'target_missing',
    406: 'rejected',
    530: 'target_missing',
    320: 'reset',
    IllegalOperationError: 'reset',
  },
};
const HEARTBEAT_S = 20;

async function openAt(
  server: string,
  settings: RabbitmqSettings,
  network: Network,
  timeoutMs: number,
): Promise<Link> {
  const { host, port } = serverOf(settings, server, network.rules);
  // The driver asks no lookup for an address.
  await network.addressesOf(host);
  const { tls = true, ca, username, password, vhost, exchange = '', routingKey } = settings;
  const connection = await connect(
    {
      protocol: tls ? 'amqps' : 'amqp',
      hostname: host,
      port,
      username: username ?? 'guest',
      password: password ?? 'guest',
      vhost: encodeURIComponent(vhost ?? '/'),
      heartbeat: HEARTBEAT_S,
    },
    { timeout: timeoutMs, lookup: network.lookup, ...(ca ? { ca } : {}), noDelay: true },
  ).catch(refused);
  let isOpen = true;
  let reason: Error | undefined;
  const waiting = new Map<string, (error: Error) => void>();
  const end = (error?: Error) => {
    isOpen = false;
    reason ??= error;
    for (const reject of waiting.values()) reject(reason ?? closed());
    waiting.clear();
  };
  connection.on('error', end);
  connection.on('close', end);
  const channel = await connection.createConfirmChannel().catch((error: unknown) => {
    void connection.close().catch(() => {});
    throw error;
  });
  channel.on('error', end);
  channel.on('close', () => end());
  // It comes before the confirmation.
  channel.on('return', ({ properties }) => {
    const reject = waiting.get(String(properties.correlationId));
    reject?.(Object.assign(new Error('no queue took the message'), { code: NO_ROUTE }));
  });
  let sent = 0;
  return {
    isOpen: () => isOpen,
    send({ id, type, key, headers, body }) {
      const nth = String(++sent);
      const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
      if (!isOpen) return Promise.reject(reason ?? closed());
      waiting.set(nth, reject);
      const options = {
        messageId: id,
        correlationId: nth,
        type,
        contentType: headers['content-type'],
        headers: { ...headers, 'webhook-subject': key },
        persistent: true,
        mandatory: true,
      };
      channel.publish(exchange, placeFor(routingKey, type), body, options, (error) => {
        waiting.delete(nth);
        if (error) reject(Object.assign(new Error('not confirmed'), { code: 'rejected' }));
        else resolve({ exchange, routing_key: placeFor(routingKey, type) });
      });
      return promise;
    },
    async close() {
      isOpen = false;
      await connection.close().catch(() => {});
    },
  };
}

/** The driver has the reply code of a refused login only in its text. */
function refused(error: Error): never {
  const code = /^Handshake terminated by server: (\d{3})\b/.exec(error.message)?.[1];
  throw code === undefined ? error : Object.assign(new Error('', { cause: error }), { code });
}

function closed(): Error {
  return Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' });
}
