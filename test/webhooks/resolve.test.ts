/** Receivers' names: a DNS server that does not answer delays nobody else. */
import { createSocket } from 'node:dgram';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { monotonicMs } from '../../src/kernel/clock.ts';
import { makeResolve, type Resolve } from '../../src/webhooks/delivery/resolve.ts';

const TIMEOUT_MS = 1_000;
const HOSTS = '10.0.0.5 receiver.internal receiver # a comment\n::5 receiver\nnonsense\n';
const server = createSocket('udp4');
let queries = 0;
let resolve: Resolve;

/** Answers every A query with 127.0.0.9, other queries with nothing, and silent.test not at all. */
function answerTo(query: Buffer): Buffer | undefined {
  let end = 12;
  while ((query[end] ?? 0) > 0) end += (query[end] ?? 0) + 1;
  const question = query.subarray(12, end + 5);
  if (question.includes('silent')) return undefined;
  const isA = query.readUInt16BE(end + 1) === 1;
  const head = [...query.subarray(0, 2), 0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0];
  const answer = isA ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 9] : [];
  return Buffer.concat([Buffer.from(head), question, Buffer.from(answer)]);
}

beforeAll(async () => {
  server.on('message', (query, from) => {
    queries++;
    const answer = answerTo(query);
    if (answer) server.send(answer, from.port, from.address);
  });
  await new Promise<void>((done) => server.bind(0, '127.0.0.1', done));
  const servers = [`127.0.0.1:${server.address().port}`];
  resolve = makeResolve({ timeoutMs: TIMEOUT_MS, servers, hosts: HOSTS });
});
afterAll(() => new Promise<void>((done) => server.close(done)));

it('A name is resolved while a hundred others get no answer, which end by the deadline', async () => {
  const startedMs = monotonicMs();
  const silent = Array.from({ length: 100 }, (_, n) =>
    resolve(`silent${n}.test`).catch((error) => error.code),
  );
  expect(await resolve('receiver.test')).toEqual([{ address: '127.0.0.9', family: 4 }]);
  expect(monotonicMs() - startedMs).toBeLessThan(TIMEOUT_MS);
  expect(new Set(await Promise.all(silent))).toEqual(new Set(['ENOTFOUND']));
  expect(monotonicMs() - startedMs).toBeLessThan(5 * TIMEOUT_MS);
});

it('A name in the hosts file is resolved without a query', async () => {
  const before = queries;
  const both = [
    { address: '10.0.0.5', family: 4 },
    { address: '::5', family: 6 },
  ];
  expect(await resolve('Receiver.')).toEqual(both);
  expect(await resolve('receiver.internal')).toEqual(both.slice(0, 1));
  expect(await resolve('localhost')).toEqual([{ address: '127.0.0.1', family: 4 }]);
  expect(queries).toBe(before);
});
