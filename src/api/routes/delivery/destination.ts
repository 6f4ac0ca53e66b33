/** The form of what a request says of a destination other than HTTP. */
import { z } from '@hono/zod-openapi';
import { SASL_MECHANISMS } from '../../../resources/delivery/destination.ts';
import { camelOf } from '../../../resources/fields.ts';
import type { EndpointInput } from '../../../webhooks/webhooks.ts';
import { pemInput, secretInput, textInput } from '../../http/schemas.ts';

const TYPE = '`{type}` in it stands for the type of the event';

const connected = {
  servers: z
    .array(textInput(260))
    .min(1)
    .max(10)
    .openapi({ description: '`host:port` of one or more servers of one cluster' }),
  tls: z.boolean().optional().openapi({ description: 'Default true' }),
  ca: pemInput.optional().openapi({
    description: 'PEM of the authority of the servers, if it is not a public one',
  }),
  username: textInput(256).optional(),
  password: secretInput.optional(),
};

const kafka = z.strictObject({
  kind: z.literal('kafka'),
  ...connected,
  topic: textInput(249),
  mechanism: z.enum(SASL_MECHANISMS).optional().openapi({ description: 'Default `plain`' }),
});
const nats = z.strictObject({
  kind: z.literal('nats'),
  ...connected,
  subject: textInput(200).openapi({ description: `Of a stream of JetStream. ${TYPE}` }),
  token: secretInput.optional(),
});
const rabbitmq = z.strictObject({
  kind: z.literal('rabbitmq'),
  ...connected,
  vhost: textInput(200).optional().openapi({ description: 'Default `/`' }),
  exchange: textInput(200).optional().openapi({
    description: 'Without one, the routing key is the name of a queue',
  }),
  routing_key: textInput(200).openapi({ description: TYPE }),
});
const sqs = z.strictObject({
  kind: z.literal('sqs'),
  queue_url: textInput(1_024),
  region: z
    .string()
    .regex(/^[a-z0-9-]{1,40}$/)
    .optional()
    .openapi({ description: 'Default: the one that the host of the queue names' }),
  access_key_id: textInput(128),
  secret_access_key: secretInput,
  session_token: secretInput.optional(),
});

/** Of a request to create or change an endpoint. */
export const destinationInput = z
  .discriminatedUnion('kind', [kafka, nats, rabbitmq, sqs])
  .openapi('Destination', {
    description: 'A broker instead of `url`; its settings are stored encrypted and never shown',
  });

/** As `webhooks` takes it. */
export function destinationOf(input: z.output<typeof destinationInput>) {
  const given = Object.entries(input).map(([name, value]) => [camelOf(name), value]);
  return Object.fromEntries(given) as NonNullable<EndpointInput['destination']>;
}
