/** Receivers' names: a DNS server that does not answer delays no other receiver. */
import { createSocket } from 'node:dgram';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeResolve, type Resolve } from '../../src/webhooks/delivery/http/resolve.ts';
import { manualClock } from '../harness/manual-clock.ts';

let hosts = '10.0.0.5 receiver.internal receiver # a comment\n::5 receiver\nnonsense\n';
const clock = manualClock();
const server = createSocket('udp4');
let queries = 0;
let servers: string[];
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
  servers = [`127.0.0.1:${server.address().port}`];
  resolve = makeResolve({ timeoutMs: 60_000, servers, hosts: () => hosts, clock });
});
afterAll(() => new Promise<void>((done) => server.close(done)));

it('A name is resolved while a hundred others get no answer', async () => {
  let ended = 0;
  for (let n = 0; n < 100; n++) resolve(`silent${n}.test`).catch(() => ended++);
  expect(await resolve('receiver.test')).toEqual([{ address: '127.0.0.9', family: 4 }]);
  expect(ended).toBe(0);
});

it('The lookup of a name without an answer fails at its timeout', async () => {
  const impatient = makeResolve({ timeoutMs: 250, servers });
  await expect(impatient('silent.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
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

it('A change of the hosts file is seen within a minute', async () => {
  expect(await resolve('receiver.internal')).toEqual([{ address: '10.0.0.5', family: 4 }]);
  hosts = '10.0.0.6 receiver.internal';
  clock.advance(60_000);
  expect(await resolve('receiver.internal')).toEqual([{ address: '10.0.0.6', family: 4 }]);
});
