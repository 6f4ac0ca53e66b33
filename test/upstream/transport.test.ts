/** What left and what did not, proved on real sockets. */
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import type { ExchangeRequest } from '../../src/upstream/http/exchange.ts';
import { makeTransport, type Transport } from '../../src/upstream/http/transport.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { closeRaw, http, startRaw } from './raw-service.ts';

const open: Transport[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((transport) => transport.close()));
  await closeRaw();
});

function transport(settings: { connectTimeoutMs?: number } = {}, clock = systemClock): Transport {
  const made = makeTransport(clock, {
    connectTimeoutMs: 5000,
    bodyBytesMax: 1000,
    connections: { polls: 1, 'app-read': 1 },
    ...settings,
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

const silent = () => {};
const send = (bytes: string) => (socket: Socket) => void socket.write(bytes);
const sendAndClose = (bytes: string) => (socket: Socket) => void socket.end(bytes);

describe('nothing left', () => {
  it('when the port refuses', async () => {
    const service = await startRaw(silent);
    const origin = service.origin();
    await service.close();
    const exchanged = await transport().exchange('app-write', write(origin));
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'connection_refused' });
  });

  it('when the name is not found', async () => {
    // A label of more than 63 characters is refused without asking a name server.
    const origin = `http://${'a'.repeat(64)}.invalid`;
    const exchanged = await transport().exchange('app-write', write(origin));
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'name_lookup' });
  });

  it('when the other side speaks no TLS', async () => {
    const service = await startRaw(sendAndClose(http(400, '{}')), { eager: true });
    const exchanged = await transport().exchange('app-write', write(service.origin('https')));
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'tls' });
    expect(service.received.join()).not.toContain('transfer');
  });

  it('when the connection does not stand in time', async () => {
    const service = await startRaw(silent, { eager: true });
    const impatient = transport({ connectTimeoutMs: 100 });
    const exchanged = await impatient.exchange('app-write', write(service.origin('https')));
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'connect_timeout' });
  });

  it('when the deadline passes before the connection stands', async () => {
    const service = await startRaw(silent, { eager: true });
    const request = write(service.origin('https'), { deadlineAt: systemClock.now() + 100 });
    const exchanged = await transport().exchange('app-write', request);
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'deadline' });
  });

  it.each(['polls', 'app-read', 'app-write'] as const)(
    'on lane %s when the process slept past the deadline while it connected',
    async (lane) => {
      const service = await startRaw(silent);
      const clock = manualClock();
      const request = write(service.origin(), {}, clock.now());
      const exchanging = transport({}, clock).exchange(lane, request);
      clock.advance(10_000);
      expect(await exchanging).toMatchObject({ end: 'not_sent', cause: 'deadline' });
      await service.endings[0];
      expect(service.received).toEqual(['']);
    },
  );

  it.each([
    ['is no longer wanted', () => false],
    [
      'cannot be asked for any more',
      () => {
        throw new Error('lease lost');
      },
    ],
  ])('when the write %s just before the first byte', async (_what, mayStillSend) => {
    const service = await startRaw(silent);
    const exchanged = await transport().exchange(
      'app-write',
      write(service.origin(), { mayStillSend }),
    );
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'withdrawn' });
    await service.endings[0];
    expect(service.received).toEqual(['']);
  });

  it('when the signal aborted before', async () => {
    const request = write('http://127.0.0.1:9', { signal: AbortSignal.abort() });
    const exchanged = await transport().exchange('app-write', request);
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'aborted' });
  });

  it.each([
    ['a path with a line break', { path: '/v1/a\r\nx: y' }],
    ['a path that is another address', { path: 'http://elsewhere.test/' }],
    ['a header with a line break', { headers: ['x', 'a\r\nb: c'] }],
  ])('when the request is %s', async (_what, more) => {
    const service = await startRaw(silent);
    const exchanged = await transport().exchange('app-write', write(service.origin(), more));
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'invalid_request' });
    expect(service.received.join('')).toBe('');
  });
});

describe('it left, and what came of it is not known', () => {
  const half = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"status":2';
  it.each([
    ['the connection was reset', (s: Socket) => void s.resetAndDestroy(), 'reset', undefined],
    ['the connection was closed', (s: Socket) => void s.end(), 'reset', undefined],
    ['the head was cut', sendAndClose('HTTP/1.1 200 OK\r\ncontent-le'), 'reset', undefined],
    ['the body was cut', sendAndClose(half), 'truncated', 200],
    [
      'the chunks were cut',
      sendAndClose('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{"stat'),
      'truncated',
      200,
    ],
    ['the answer was no HTTP', sendAndClose('what do you want?\r\n\r\n'), 'unreadable', undefined],
    ['the body was too large', send(http(200, 'x'.repeat(1001))), 'too_large', 200],
  ])('when %s', async (_what, answer, cause, status) => {
    const service = await startRaw(answer);
    const exchanged = await transport().exchange('app-write', write(service.origin()));
    expect(exchanged).toMatchObject({ end: 'broken', cause });
    expect('answer' in exchanged ? exchanged.answer?.status : undefined).toBe(status);
    expect(service.received).toHaveLength(1);
    expect(service.received[0]).toContain('{"amount":1}');
  });

  it.each([
    ['nothing', ''],
    ['half an answer', half],
  ])('when %s came by the deadline; the connection is then reset', async (_what, bytes) => {
    const service = await startRaw(send(bytes));
    const request = write(service.origin(), { deadlineAt: systemClock.now() + 150 });
    const exchanged = await transport().exchange('app-write', request);
    expect(exchanged).toMatchObject({ end: 'broken', cause: 'timeout' });
    expect(await service.endings[0]).toBe('ECONNRESET');
  });

  it('when the signal aborts while the answer is awaited', async () => {
    const stop = new AbortController();
    const service = await startRaw(() => stop.abort());
    const request = write(service.origin(), { signal: stop.signal });
    const exchanged = await transport().exchange('app-write', request);
    expect(exchanged).toMatchObject({ end: 'broken', cause: 'aborted' });
  });

  it('keeps the beginning of a body that is too large', async () => {
    const service = await startRaw(send(http(200, 'x'.repeat(5000))));
    const exchanged = await transport().exchange('app-write', write(service.origin()));
    expect(exchanged).toMatchObject({ answer: { complete: false } });
    expect('answer' in exchanged && exchanged.answer?.body.length).toBe(1000);
  });
});

describe('an answer', () => {
  it('comes with its bytes and its headers as they were, duplicates kept', async () => {
    const cookies = ['Set-Cookie: a=1', 'set-cookie: b=2', 'X-Odd:  two  spaces'];
    const service = await startRaw(send(http(406, '{"status":"406"}', cookies)));
    const exchanged = await transport().exchange('app-write', write(service.origin()));
    expect(exchanged).toMatchObject({
      end: 'answered',
      answer: {
        status: 406,
        complete: true,
        headers: [
          ['content-type', 'application/json'],
          ['Set-Cookie', 'a=1'],
          ['set-cookie', 'b=2'],
          ['X-Odd', 'two  spaces'],
          ['content-length', '16'],
        ],
      },
    });
    expect('answer' in exchanged && String(exchanged.answer?.body)).toBe('{"status":"406"}');
  });

  it('is not what is said in between', async () => {
    const service = await startRaw(send(`HTTP/1.1 103 Early Hints\r\n\r\n${http(200, '{}')}`));
    const exchanged = await transport().exchange('app-write', write(service.origin()));
    expect(exchanged).toMatchObject({ end: 'answered', answer: { status: 200 } });
  });

  it('that redirects is not followed', async () => {
    const service = await startRaw(send(http(302, '', ['location: /elsewhere'])));
    const exchanged = await transport().exchange('app-write', write(service.origin()));
    expect(exchanged).toMatchObject({ end: 'answered', answer: { status: 302 } });
    expect(service.received).toHaveLength(1);
  });
});
