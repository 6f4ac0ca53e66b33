/** Which connection a request travels on, and what is used again. */
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import type { ExchangeRequest } from '../../src/upstream/http/exchange.ts';
import { makeTransport, type Transport } from '../../src/upstream/http/transport.ts';
import { closeRaw, http, startRaw } from './raw-service.ts';

const open: Transport[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((transport) => transport.close()));
  await closeRaw();
});

function transport(): Transport {
  const made = makeTransport(systemClock, {
    connectTimeoutMs: 5000,
    bodyBytesMax: 1000,
    connections: { polls: 1, 'app-read': 1 },
  });
  open.push(made);
  return made;
}

/** A write with a body, which has ten seconds. */
function write(origin: string, more: Partial<ExchangeRequest> = {}, now = systemClock.now()) {
  return {
    method: 'POST',
    origin,
    path: '/v1/app/token/accounts/transfer',
    headers: ['content-type', 'application/json'],
    body: Buffer.from('{"amount":1}'),
    deadlineAt: now + 10_000,
    ...more,
  };
}

const send = (bytes: string) => (socket: Socket) => void socket.write(bytes);
const sendAndClose = (bytes: string) => (socket: Socket) => void socket.end(bytes);

describe('the lanes', () => {
  it('give every write that is under way a connection of its own', async () => {
    const service = await startRaw((socket, nth) => {
      if (nth === 1) socket.write(http(200, '{}'));
    });
    const lanes = transport();
    const stop = new AbortController();
    const first = lanes.exchange('app-write', write(service.origin(), { signal: stop.signal }));
    await expect.poll(() => service.received[0]).toContain('{"amount":1}');
    const second = await lanes.exchange('app-write', write(service.origin()));
    expect(second).toMatchObject({ end: 'answered' });
    expect(service.received).toHaveLength(2);
    stop.abort();
    await first;
  });

  it('use the connection of a write again while it is fresh', async () => {
    const service = await startRaw(send(http(200, '{}', ['keep-alive: timeout=5'])));
    const lanes = transport();
    for (let i = 0; i < 3; i++) await lanes.exchange('app-write', write(service.origin()));
    expect(service.received).toHaveLength(1);
  });

  it.each([
    ['the service closes it', ['connection: close']],
    ['the service keeps it no time', ['keep-alive: timeout=0']],
  ])('do not use it again when %s', async (_what, headers) => {
    const service = await startRaw(send(http(200, '{}', headers)));
    const lanes = transport();
    await lanes.exchange('app-write', write(service.origin()));
    await lanes.exchange('app-write', write(service.origin()));
    expect(service.received).toHaveLength(2);
  });

  it('close it once it is no longer fresh', async () => {
    const service = await startRaw(send(http(200, '{}', ['keep-alive: timeout=1'])));
    await transport().exchange('app-write', write(service.origin()));
    expect(await service.endings[0]).toMatch(/^(end|close)$/);
  });

  it.each([
    ['a timeout', 'timeout', 150, send('HTTP/1.1 200 OK\r\n')],
    [
      'a cut answer',
      'truncated',
      10_000,
      sendAndClose('HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nx'),
    ],
  ])('do not use the connection again after %s', async (_what, cause, ms, answer) => {
    const service = await startRaw(answer);
    const lanes = transport();
    const request = write(service.origin(), { deadlineAt: systemClock.now() + ms });
    expect(await lanes.exchange('app-write', request)).toMatchObject({ end: 'broken', cause });
    void lanes.exchange('app-write', write(service.origin()));
    await expect.poll(() => service.received[1]).toContain('{"amount":1}');
  });

  it('call a write unknown whose kept connection was reset, and do not send it again', async () => {
    const service = await startRaw((socket, nth) => {
      if (nth === 0 && requestsOf(service.received[0]) === 1) socket.write(http(200, '{}'));
      else socket.resetAndDestroy();
    });
    const lanes = transport();
    await lanes.exchange('app-write', write(service.origin()));
    const second = await lanes.exchange('app-write', write(service.origin()));
    expect(second).toMatchObject({ end: 'broken', cause: 'reset' });
    expect(service.received).toHaveLength(1);
    expect(requestsOf(service.received[0])).toBe(2);
  });

  it('open another for a write whose kept connection was closed before', async () => {
    const service = await startRaw((socket, nth) => {
      if (nth === 0) socket.end(http(200, '{}'));
      else socket.write(http(200, '{}'));
    });
    const lanes = transport();
    await lanes.exchange('app-write', write(service.origin()));
    await service.endings[0];
    const second = await lanes.exchange('app-write', write(service.origin()));
    expect(second).toMatchObject({ end: 'answered' });
    expect(service.received).toHaveLength(2);
  });

  it.each(['polls', 'app-read'] as const)('keep the connection of %s', async (lane) => {
    const service = await startRaw(send(http(200, '{}')));
    const lanes = transport();
    await lanes.exchange(lane, write(service.origin()));
    await lanes.exchange(lane, write(service.origin()));
    expect(service.received).toHaveLength(1);
  });

  it('let a write pass while every connection of looks hangs', async () => {
    const service = await startRaw((socket, nth) => {
      if (nth > 0) socket.write(http(200, '{}'));
    });
    const lanes = transport();
    const stop = new AbortController();
    const observation = lanes.exchange('polls', write(service.origin(), { signal: stop.signal }));
    await expect.poll(() => service.received[0]).toContain('{"amount":1}');
    const written = await lanes.exchange('app-write', write(service.origin()));
    expect(written).toMatchObject({ end: 'answered' });
    stop.abort();
    expect(await observation).toMatchObject({ end: 'broken', cause: 'aborted' });
  });

  it('do not send a look again when its kept connection was closed under it', async () => {
    const service = await startRaw((socket, nth) => {
      if (nth === 0 && requestsOf(service.received[0]) === 1) socket.write(http(200, '{}'));
      else socket.resetAndDestroy();
    });
    const lanes = transport();
    await lanes.exchange('polls', write(service.origin()));
    const second = await lanes.exchange('polls', write(service.origin()));
    expect(second).toMatchObject({ end: 'broken', cause: 'reset' });
    expect(service.received).toHaveLength(1);
  });
});

function requestsOf(text = ''): number {
  return text.split('POST ').length - 1;
}
