/** The packages of brokers are optional. */
import { expect, it } from 'vitest';
import { missingPackages } from '../../src/webhooks/endpoints/packages.ts';

const without = (missing: string) => (name: string) => {
  if (name === missing) throw Object.assign(new Error(name), { code: 'MODULE_NOT_FOUND' });
};

it('A kind of destination names the packages that it needs and that are not installed', () => {
  expect(missingPackages('nats', without('@nats-io/jetstream'))).toEqual(['@nats-io/jetstream']);
  expect(missingPackages('rabbitmq', without('amqplib'))).toEqual(['amqplib']);
  expect(missingPackages('kafka', without('amqplib'))).toEqual([]);
  expect(missingPackages('http', without('amqplib'))).toEqual([]);
});
