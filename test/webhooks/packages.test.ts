/** The packages of brokers are optional. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { missingPackages } from '../../src/webhooks/endpoints/destination/packages.ts';

const ROOT = join(import.meta.dirname, '../..');

const without = (missing: string) => (name: string) => {
  if (name === missing) throw Object.assign(new Error(name), { code: 'MODULE_NOT_FOUND' });
};

it('A kind of destination names the packages that it needs and that are not installed', () => {
  expect(missingPackages('nats', without('@nats-io/jetstream'))).toEqual(['@nats-io/jetstream']);
  expect(missingPackages('rabbitmq', without('amqplib'))).toEqual(['amqplib']);
  expect(missingPackages('kafka', without('amqplib'))).toEqual([]);
  expect(missingPackages('http', without('amqplib'))).toEqual([]);
});

it('No optional package in the lock file needs a newer Node than that of Debian 12', async () => {
  // The daemon does not run with that Node, but npm may. Of optional packages npm skips, without a
  // word, those whose engines do not fit the Node that runs npm. The lock file therefore names none
  // of them; `npm install` may write them again.
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8'));
  interface Locked {
    optional?: true;
    dev?: true;
    engines?: { node?: string };
  }
  const packages: [string, Locked][] = Object.entries(lock.packages);
  const optional = packages.filter(([, one]) => one.optional && !one.dev);
  expect(optional.length).toBeGreaterThan(20);
  const tooNew = optional.filter(([, { engines }]) => {
    const majors = engines?.node?.split('||').map((range) => Number(/\d+/.exec(range)?.[0])) ?? [0];
    return Math.min(...majors) > 18;
  });
  expect(tooNew.map(([name]) => name)).toEqual([]);
});
