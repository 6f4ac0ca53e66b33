/** The kinds of destinations, and which of them a delivery is sent to. */
import type { Clock } from '../../../kernel/clock.ts';
import { type DestinationKind, kindOf } from '../../../resources/delivery/destination.ts';
import type { Encryption } from '../../encryption.ts';
import type { UrlRules } from '../../endpoints/address.ts';
import { isMissing } from '../../endpoints/destination/packages.ts';
import type { WebhookSettings } from '../../settings.ts';
import { makeAttemptClient } from '../http/attempt.ts';
import { makeDecrypt } from '../http/request.ts';
import { makeTokens } from '../http/tokens.ts';
import { makeBroker } from './broker.ts';
import type { Destination } from './destination.ts';
import { makeHttp } from './http.ts';
import type { BrokerDriver } from './link.ts';
import { makeNetwork } from './network.ts';
import { makeSqs } from './sqs.ts';

interface DestinationsDeps {
  encryption: Encryption;
  wallClock: Clock;
  rules: UrlRules;
  settings: WebhookSettings;
}

export function makeDestinations({
  encryption,
  wallClock,
  rules,
  settings,
}: DestinationsDeps): Destination {
  const { userAgent } = settings;
  const decrypt = makeDecrypt({ encryption, wallClock, rules, userAgent });
  const client = makeAttemptClient(settings.send, rules.allowed, settings.proxies);
  const { deadlineMs } = settings.send;
  const tokens = makeTokens(client, wallClock);
  const http = makeHttp({ decrypt, client, tokens, deadlineMs });
  const sqs = makeSqs(decrypt, client, wallClock);
  const deps = { decrypt, network: makeNetwork(rules), deadlineMs };
  const brokers = {
    kafka: makeBroker(deps, () => driverOf(import('./kafka.ts'))),
    nats: makeBroker(deps, () => driverOf(import('./nats.ts'))),
    rabbitmq: makeBroker(deps, () => driverOf(import('./rabbitmq.ts'))),
  };
  const kinds: Record<DestinationKind, Pick<Destination, 'send'>> = { http, sqs, ...brokers };
  return {
    send: (job, startedAt) => kinds[kindOf(job.endpoint.url)].send(job, startedAt),
    interrupt() {
      client.interrupt();
      for (const broker of Object.values(brokers)) broker.interrupt();
    },
    async close() {
      const all = Object.values(brokers).map((broker) => broker.close());
      await Promise.all([client.close(), ...all]);
    },
  };
}

/** The driver of a module whose packages are optional. @throws Error `driver_missing` */
async function driverOf<S>(module: Promise<{ driver: BrokerDriver<S> }>): Promise<BrokerDriver<S>> {
  try {
    return (await module).driver;
  } catch (cause) {
    throw isMissing(cause) ? Object.assign(new Error('', { cause }), MISSING) : cause;
  }
}

const MISSING = { code: 'driver_missing' };
