/** Which connection a request uses, and which connections are reused. */
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/kernel/clock.ts';
import type { ExchangeRequest } from '../../src/upstream/http/exchange.ts';
import type { Transport } from '../../src/upstream/http/transport.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { closeAll, post, transportWith } from './rig.ts';
import { http, requestsIn, startRaw } from './service.ts';

afterEach(closeAll);

const send = (bytes: string) => (socket: Socket) => void socket.write(bytes);

/** A raw service, and exchanges with it over one transport. */
async function open(answer: (socket: Socket, nth: number) => void, monotonic?: Clock) {
  const service = await startRaw((socket, nth) => answer(socket, nth));
  const transport = transportWith({}, systemClock, monotonic);
  const exchange = (
    cls: Parameters<Transport['exchange']>[0] = 'app-write',
    more: Partial<ExchangeRequest> = {},
  ) => transport.exchange(cls, post(service.origin(), more));
  return { service, exchange };
}

/** Like `open`; the first request is answered, the second on its connection meets a reset. */
async function openResetting() {
  const { service, exchange } = await open((socket, nth) => {
    if (nth === 0 && requestsIn(service.received[0]) === 1) socket.write(http(200, '{}'));
    else socket.resetAndDestroy();
  });
  return { service, exchange };
}

describe('A write', () => {
  it.each(['app-write', 'polls'] as const)(
    'has a connection of its own while an exchange of %s hangs',
    async (cls) => {
      const { service, exchange } = await open((socket, nth) => {
        if (nth > 0) socket.write(http(200, '{}'));
      });
      const stop = new AbortController();
      const hanging = exchange(cls, { signal: stop.signal });
      await expect.poll(() => service.received[0]).toContain('{"amount":1}');
      expect(await exchange()).toMatchObject({ end: 'answered' });
      expect(service.received).toHaveLength(2);
      stop.abort();
      expect(await hanging).toMatchObject({ end: 'broken', cause: 'aborted' });
    },
  );

  it('reuses the connection of another write while it is fresh', async () => {
    const { service, exchange } = await open(send(http(200, '{}', ['keep-alive: timeout=5'])));
    for (let i = 0; i < 3; i++) await exchange();
    expect(service.received).toHaveLength(1);
  });

  it('reuses a connection that was idle for less than a second', async () => {
    const monotonic = manualClock();
    const { service, exchange } = await open(send(http(200, '{}')), monotonic);
    const connectionsAfter = async (idleMs: number) => {
      monotonic.advance(idleMs);
      await exchange();
      return service.received.length;
    };
    await exchange();
    expect(await connectionsAfter(999)).toBe(1);
    expect(await connectionsAfter(1_000)).toBe(2);
  });

  it.each([
    ['the service closes', ['connection: close']],
    ['the service does not keep alive', ['keep-alive: timeout=0']],
    ['the service keeps for a second', ['keep-alive: timeout=1']],
    ['the service keeps for two seconds', ['Keep-Alive: max=9, timeout=2']],
  ])('does not reuse a connection that %s', async (_title, headers) => {
    const { service, exchange } = await open(send(http(200, '{}', headers)));
    await exchange();
    await exchange();
    expect(service.received).toHaveLength(2);
  });

  it('leaves no connection open that is no longer fresh', async () => {
    const { service, exchange } = await open(send(http(200, '{}', ['keep-alive: timeout=600'])));
    await exchange();
    expect(await service.endings[0]).toMatch(/^(end|close)$/);
  });

  it.each([
    ['timeout', 150, send('HTTP/1.1 200 OK\r\n')],
    [
      'truncated',
      10_000,
      (socket: Socket) => void socket.end('HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nx'),
    ],
  ])('does not reuse a connection after a broken exchange: %s', async (cause, ms, answer) => {
    const { service, exchange } = await open(answer);
    const broken = await exchange('app-write', { deadlineAt: systemClock.now() + ms });
    expect(broken).toMatchObject({ end: 'broken', cause });
    void exchange();
    await expect.poll(() => service.received[1]).toContain('{"amount":1}');
  });

  it('whose reused connection is reset is broken, and not sent again', async () => {
    const { service, exchange } = await openResetting();
    await exchange();
    expect(await exchange()).toMatchObject({ end: 'broken', cause: 'reset' });
    expect(service.received).toHaveLength(1);
    expect(requestsIn(service.received[0])).toBe(2);
  });

  it('opens another connection when the idle one was closed before', async () => {
    const { service, exchange } = await open((socket, nth) => {
      if (nth === 0) socket.end(http(200, '{}'));
      else socket.write(http(200, '{}'));
    });
    await exchange();
    await service.endings[0];
    expect(await exchange()).toMatchObject({ end: 'answered' });
    expect(service.received).toHaveLength(2);
  });
});

describe('A read', () => {
  it.each(['polls', 'app-read'] as const)('of %s reuses its connection', async (cls) => {
    const { service, exchange } = await open(send(http(200, '{}')));
    await exchange(cls);
    await exchange(cls);
    expect(service.received).toHaveLength(1);
  });

  it('whose reused connection is reset is broken, and not sent again', async () => {
    const { service, exchange } = await openResetting();
    await exchange('polls');
    expect(await exchange('polls')).toMatchObject({ end: 'broken', cause: 'reset' });
    expect(service.received).toHaveLength(1);
  });
});
