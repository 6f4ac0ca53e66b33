/** One exchange on real sockets: proof whether bytes left, and what was read of the answer. */
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import type { ExchangeRequest } from '../../src/upstream/http/exchange.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { closeAll, post, transportWith } from './rig.ts';
import { http, startRaw } from './service.ts';

afterEach(closeAll);

const silent = () => {};
const send = (bytes: string) => (socket: Socket) => void socket.write(bytes);
const sendAndClose = (bytes: string) => (socket: Socket) => void socket.end(bytes);
/** One write over a new transport. */
const exchange = (origin: string, more: Partial<ExchangeRequest> = {}) =>
  transportWith().exchange('app-write', post(origin, more));
/** One write to a service that answers so, and that service. */
async function exchangeWith(answer: (socket: Socket) => void, more: Partial<ExchangeRequest> = {}) {
  const service = await startRaw(answer);
  return { service, exchanged: await exchange(service.origin(), more) };
}

describe('Nothing was sent', () => {
  it('when the port refuses the connection', async () => {
    const service = await startRaw(silent);
    await service.close();
    const exchanged = await exchange(service.origin());
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'connection_refused' });
  });

  it('when the name is not found', async () => {
    // A label of more than 63 characters is refused without a request to a name server.
    const exchanged = await exchange(`http://${'a'.repeat(64)}.invalid`);
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'name_lookup' });
  });

  it('when the service does not speak TLS', async () => {
    const service = await startRaw(sendAndClose(http(400, '{}')), { eager: true });
    const exchanged = await exchange(service.origin('https'));
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'tls_absent' });
    expect(service.received.join()).not.toContain('transfer');
  });

  it('when the connection is not established in time', async () => {
    const service = await startRaw(silent, { eager: true });
    const transport = transportWith({ connectTimeoutMs: 100 });
    const exchanged = await transport.exchange('app-write', post(service.origin('https')));
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'connect_timeout' });
  });

  it('when the deadline passes before the connection is established', async () => {
    const service = await startRaw(silent, { eager: true });
    const deadlineAt = systemClock.now() + 100;
    const exchanged = await exchange(service.origin('https'), { deadlineAt });
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'deadline' });
  });

  it.each(['polls', 'app-read', 'app-write'] as const)(
    'by %s when the process slept past the deadline while it connected',
    async (cls) => {
      const service = await startRaw(silent);
      const clock = manualClock();
      const request = post(service.origin(), {}, clock.now());
      const exchanging = transportWith({}, clock).exchange(cls, request);
      clock.advance(10_000);
      expect(await exchanging).toMatchObject({ end: 'not_sent', cause: 'deadline' });
      await service.endings[0];
      expect(service.received).toEqual(['']);
    },
  );

  it.each([
    ['forbids the send', () => false],
    [
      'throws',
      () => {
        throw new Error('lease lost');
      },
    ],
  ])('when mayStillSend %s just before the first byte', async (_title, mayStillSend) => {
    const { service, exchanged } = await exchangeWith(silent, { mayStillSend });
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'withdrawn' });
    await service.endings[0];
    expect(service.received).toEqual(['']);
  });

  it('when the signal has already aborted', async () => {
    const exchanged = await exchange('http://127.0.0.1:9', { signal: AbortSignal.abort() });
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'aborted' });
  });

  it.each([
    ['a path with a line break', { path: '/v1/a\r\nx: y' }],
    ['a path that is another address', { path: 'http://elsewhere.test/' }],
    ['a header with a line break', { headers: ['x', 'a\r\nb: c'] }],
  ])('of a request with %s', async (_title, more) => {
    const { service, exchanged } = await exchangeWith(silent, more);
    expect(exchanged).toMatchObject({ end: 'not_sent', cause: 'invalid_request' });
    expect(service.received.join('')).toBe('');
  });
});

describe('The request was sent and its outcome is not known', () => {
  const half = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"status":2';
  const chunks = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{"stat';
  it.each([
    ['the connection is reset', (s: Socket) => void s.resetAndDestroy(), 'reset', undefined],
    ['the connection is closed', (s: Socket) => void s.end(), 'reset', undefined],
    ['the head is truncated', sendAndClose('HTTP/1.1 200 OK\r\ncont'), 'reset', undefined],
    ['the body is truncated', sendAndClose(half), 'truncated', 200],
    ['the chunks are truncated', sendAndClose(chunks), 'truncated', 200],
    ['the answer is not HTTP', sendAndClose('what do you want?\r\n\r\n'), 'unreadable', undefined],
    ['the body is too large', send(http(200, 'x'.repeat(1001))), 'too_large', 200],
  ])('when %s', async (_title, answer, cause, status) => {
    const { service, exchanged } = await exchangeWith(answer);
    expect(exchanged).toMatchObject({ end: 'broken', cause });
    expect('answer' in exchanged ? exchanged.answer?.status : undefined).toBe(status);
    expect(service.received).toHaveLength(1);
    expect(service.received[0]).toContain('{"amount":1}');
  });

  it.each([
    ['nothing', ''],
    ['half an answer', half],
  ])('when %s came by the deadline; the connection is then reset', async (_title, bytes) => {
    const deadlineAt = systemClock.now() + 150;
    const { service, exchanged } = await exchangeWith(send(bytes), { deadlineAt });
    expect(exchanged).toMatchObject({ end: 'broken', cause: 'timeout' });
    expect(await service.endings[0]).toBe('ECONNRESET');
  });

  it('when the signal aborts while the answer is awaited', async () => {
    const stop = new AbortController();
    const { exchanged } = await exchangeWith(() => stop.abort(), { signal: stop.signal });
    expect(exchanged).toMatchObject({ end: 'broken', cause: 'aborted' });
  });
});

describe('An answer', () => {
  it('keeps its bytes and headers unchanged, duplicates included', async () => {
    const cookies = ['Set-Cookie: a=1', 'set-cookie: b=2', 'X-Odd:  two  spaces'];
    const { exchanged } = await exchangeWith(send(http(406, '{"status":"406"}', cookies)));
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

  it('is not an informational response', async () => {
    const hints = `HTTP/1.1 103 Early Hints\r\n\r\n${http(200, '{}')}`;
    const { exchanged } = await exchangeWith(send(hints));
    expect(exchanged).toMatchObject({ end: 'answered', answer: { status: 200 } });
  });

  it('that redirects is not followed', async () => {
    const { service, exchanged } = await exchangeWith(
      send(http(302, '', ['location: /elsewhere'])),
    );
    expect(exchanged).toMatchObject({ end: 'answered', answer: { status: 302 } });
    expect(service.received).toHaveLength(1);
  });
});
