/** What deliveries are sent to: an HTTP receiver, or a broker with the same events. */
export const BROKER_KINDS = ['kafka', 'nats', 'rabbitmq', 'sqs'] as const;
export type BrokerKind = (typeof BROKER_KINDS)[number];

export const DESTINATION_KINDS = ['http', ...BROKER_KINDS] as const;
export type DestinationKind = (typeof DESTINATION_KINDS)[number];

/** The kind of an endpoint, which the scheme of its address names. */
export function kindOf(url: string): DestinationKind {
  const scheme = url.slice(0, url.indexOf(':'));
  return BROKER_KINDS.find((kind) => kind === scheme) ?? 'http';
}

/** How Kafka checks a user name and password. */
export const SASL_MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const;

/** Why a broker did not take a message; part of the stable codes. */
export const BROKER_FAULTS: Readonly<Record<string, string>> = {
  unauthorized: 'the broker refused the credentials, or they do not allow this',
  target_missing: 'the topic, stream, exchange or queue does not exist',
  too_large: 'the message is larger than the broker takes',
  rejected: 'the broker refused the message',
  driver_missing: 'the optional package for this kind of broker is not installed',
  too_many_connections: 'too many endpoints have a connection to a broker at once',
};
