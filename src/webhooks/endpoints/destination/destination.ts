/**
 * The settings of destinations other than HTTP: how a broker is reached and where its messages go.
 * They are stored encrypted as a whole; only the address that is made of them here is shown.
 */

import { Failure } from '../../../kernel/errors.ts';
import type { BrokerKind, SASL_MECHANISMS } from '../../../resources/delivery/destination.ts';
import { parseServer, type UrlRules, validateUrl } from '../address.ts';
import { isX509 } from './certificates.ts';

/** What the kinds with connections of their own have in common. */
interface Connected {
  /** `host:port` of one or more servers of one cluster. */
  servers: string[];
  /** Default true. */
  tls?: boolean | undefined;
  /** PEM of the authorities of the servers' certificates, instead of the public ones. */
  ca?: string | undefined;
  username?: string | undefined;
  password?: string | undefined;
}

export interface KafkaSettings extends Connected {
  kind: 'kafka';
  topic: string;
  /** Of `username` and `password`; default plain. */
  mechanism?: (typeof SASL_MECHANISMS)[number] | undefined;
}

export interface NatsSettings extends Connected {
  kind: 'nats';
  /** `{type}` stands for the type of the event. */
  subject: string;
  token?: string | undefined;
}

export interface RabbitmqSettings extends Connected {
  kind: 'rabbitmq';
  /** Default `/`. */
  vhost?: string | undefined;
  /** Default the empty one, in which a routing key is the name of a queue. */
  exchange?: string | undefined;
  /** `{type}` stands for the type of the event. */
  routingKey: string;
}

export interface SqsSettings {
  kind: 'sqs';
  queueUrl: string;
  /** Default: the one that the queue's host names. */
  region?: string | undefined;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}

export type DestinationSettings = KafkaSettings | NatsSettings | RabbitmqSettings | SqsSettings;

/** The port of a server that names none, with TLS and without. */
export const DEFAULT_PORTS: Record<Exclude<BrokerKind, 'sqs'>, [secure: number, plain: number]> = {
  kafka: [9093, 9092],
  nats: [4222, 4222],
  rabbitmq: [5671, 5672],
};

const SERVERS_MAX = 10;

/**
 * Checks settings whose form is right.
 * @returns the address that is shown, without credentials
 * @throws Failure `invalid_request`, `url_refused`
 */
export function checkDestination(settings: DestinationSettings, rules: UrlRules): string {
  if (settings.kind === 'sqs') return checkQueue(settings, rules);
  if (settings.servers.length === 0 || settings.servers.length > SERVERS_MAX)
    refuse('servers must have 1 to 10 entries such as host:port');
  const [server] = settings.servers.map((text) => serverOf(settings, text, rules));
  if ((settings.username === undefined) !== (settings.password === undefined))
    refuse('username and password are given together');
  if (settings.ca !== undefined && !isX509(settings.ca)) refuse('ca must be certificates as PEM');
  const host = server?.host.includes(':') ? `[${server.host}]` : server?.host;
  return `${settings.kind}://${host}:${server?.port}/${placeOf(settings)}`;
}

/** A server of a broker, checked. @throws Failure `url_refused` */
export function serverOf(
  { kind, tls = true }: Exclude<DestinationSettings, SqsSettings>,
  text: string,
  rules: UrlRules,
) {
  const [secure, plain] = DEFAULT_PORTS[kind];
  return parseServer(text, { defaultPort: tls ? secure : plain, isEncrypted: tls }, rules);
}

function placeOf(settings: Exclude<DestinationSettings, SqsSettings>): string {
  if (settings.kind === 'kafka') {
    if (!/^(?!\.{1,2}$)[\w.-]{1,249}$/.test(settings.topic)) refuse('topic is not a name of Kafka');
    return settings.topic;
  }
  if (settings.kind === 'nats') {
    // Without wildcards, spaces and empty tokens.
    if (!/^[\w{}$/=+:-]+(?:\.[\w{}$/=+:-]+)*$/.test(settings.subject))
      refuse('subject must be words between full stops, without wildcards');
    return settings.subject;
  }
  const { vhost = '/', exchange = '', routingKey } = settings;
  const parts = [vhost, ...(exchange === '' ? [] : [exchange]), routingKey];
  if (exchange === '' && routingKey === '')
    refuse('routing_key must name a queue, or give an exchange');
  return parts.map(encodeURIComponent).join('/');
}

function checkQueue(settings: SqsSettings, rules: UrlRules): string {
  const { host, pathname, search } = validateUrl(settings.queueUrl, rules);
  if (search !== '' || !/^\/[\w-]+\/[\w-]{1,80}(?:\.fifo)?$/.test(pathname))
    refuse('queue_url must end with the account and the name of the queue');
  regionOf(settings);
  return `sqs://${host}${pathname}`;
}

/** @throws Failure `invalid_request` when it must be given */
export function regionOf({ region, queueUrl }: SqsSettings): string {
  const named = /^sqs[.-]([a-z0-9-]+)\.amazonaws\.com/.exec(new URL(queueUrl).hostname)?.[1];
  return region ?? named ?? refuse('region is missing: the host of the queue names none');
}

/** A subject or routing key for an event of this type. */
export function placeFor(template: string, type: string): string {
  return template.replaceAll('{type}', type);
}

/** The values that never may be shown. */
export function secretsIn(settings: DestinationSettings): string[] {
  const secrets =
    settings.kind === 'sqs'
      ? [settings.secretAccessKey, settings.sessionToken]
      : [settings.password, settings.kind === 'nats' ? settings.token : undefined];
  return secrets.filter((secret) => secret !== undefined);
}

function refuse(problem: string): never {
  throw new Failure('invalid_request', `destination: ${problem}`);
}
