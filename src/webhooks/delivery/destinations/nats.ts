/**
 * NATS JetStream. A message is stored when its stream has acknowledged it; the stream drops one
 * whose id (`Nats-Msg-Id`) it has had within its duplicate window.
 */
import { isIP } from 'node:net';
import { jetstream } from '@nats-io/jetstream';
import { connect, headers as makeHeaders } from '@nats-io/transport-node';
import { type NatsSettings, placeFor, serverOf } from '../../endpoints/destination/destination.ts';
import { type BrokerDriver, firstOf, type Link } from './link.ts';
import type { Network } from './network.ts';

export const driver: BrokerDriver<NatsSettings> = {
  open: (settings, network, timeoutMs) =>
    firstOf(settings.servers, (server) => openAt(server, settings, network, timeoutMs)),
  faults: {
    AuthorizationError: 'unauthorized',
    UserAuthenticationExpiredError: 'unauthorized',
    PermissionViolationError: 'unauthorized',
    JetStreamNotEnabled: 'target_missing',
    NoRespondersError: 'target_missing',
    JetStreamApiError: 'rejected',
    TimeoutError: 'timeout',
    ClosedConnectionError: 'reset',
    DrainingConnectionError: 'reset',
    RequestError: 'reset',
    ConnectionError: 'reset',
  },
};

async function openAt(
  server: string,
  settings: NatsSettings,
  network: Network,
  timeoutMs: number,
): Promise<Link> {
  const { host, port } = serverOf(settings, server, network.rules);
  const addresses = await network.addressesOf(host);
  const { tls = true, ca, username, password, token, subject } = settings;
  // The driver upgrades a socket, and hands these on. A certificate would be checked for localhost.
  const checked = { host, ...(isIP(host) === 0 ? { servername: host } : {}) };
  const connection = await connect({
    servers: addresses.map(
      (address) => `${isIP(address) === 6 ? `[${address}]` : address}:${port}`,
    ),
    // The driver would connect to servers that a server names, without a check of their addresses.
    ignoreClusterUpdates: true,
    reconnect: false,
    timeout: timeoutMs,
    name: 'tallyhook',
    ...(username === undefined ? {} : { user: username, pass: password }),
    ...(token === undefined ? {} : { token }),
    tls: tls ? { ...checked, ...(ca ? { ca } : {}) } : null,
  });
  const stream = jetstream(connection, { timeout: timeoutMs });
  return {
    isOpen: () => !connection.isClosed(),
    async send({ id, type, key, headers, body }) {
      const named = makeHeaders();
      for (const [name, value] of Object.entries(headers)) named.set(name, value);
      named.set('webhook-subject', key);
      const {
        seq,
        stream: name,
        duplicate,
      } = await stream.publish(placeFor(subject, type), body, {
        msgID: id,
        headers: named,
      });
      return { stream: name, seq, duplicate };
    },
    close: () => connection.close().catch(() => {}),
  };
}
