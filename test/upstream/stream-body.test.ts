/** An answer that is larger than the client buffers is streamed at the pace of its reader. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { Sink } from '../../src/upstream/http/exchange.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { closeAll, post, transportWith } from './rig.ts';
import { closeLater } from './service.ts';

const KEPT = 1_000;
afterEach(closeAll);

/** A service that sends as fast as the connection allows, and counts what it sent. */
async function startPouring(total: number, cutAt = Number.POSITIVE_INFINITY) {
  const seen = { sent: 0, closed: false };
  const server = createServer(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/x', 'set-cookie': ['a=1', 'b=2'] });
    const closed = once(response, 'close').then(() => {
      seen.closed = true;
    });
    while (seen.sent < total && !response.destroyed) {
      if (seen.sent >= cutAt) return void response.destroy();
      const full = !response.write(Buffer.alloc(10_000, 'x'));
      seen.sent += 10_000;
      if (full) await Promise.race([once(response, 'drain'), closed]);
    }
    response.end();
  });
  closeLater({ close: () => closeServer(server) });
  return { origin: `http://127.0.0.1:${await listen(server)}`, seen };
}

/** A reader that accepts pieces while it is `ready`. */
function makeReader() {
  const reader = {
    bytes: 0,
    begun: 0,
    ended: false,
    cut: false,
    ready: true,
    resume: () => {},
    stop: () => {},
  };
  const sink: Sink = {
    write(piece) {
      reader.bytes += piece.length;
      return reader.ready;
    },
    drained(resume) {
      reader.resume = resume;
    },
    end() {
      reader.ended = true;
    },
    cut() {
      reader.cut = true;
    },
  };
  const readFrom = (origin: string) =>
    transportWith({ bodyBytesMax: KEPT }).exchange('app-read', {
      ...post(origin),
      overflow: (head, begun, stop) => {
        expect(head).toMatchObject({ status: 200 });
        expect(head.headers).toEqual(expect.arrayContaining([['set-cookie', 'b=2']]));
        Object.assign(reader, { begun: begun.length, stop });
        return sink;
      },
    });
  return { reader, readFrom };
}

describe('A large answer', () => {
  it('is streamed whole, and its beginning is kept', async () => {
    const { origin } = await startPouring(100_000);
    const { reader, readFrom } = makeReader();
    const exchanged = await readFrom(origin);
    expect(exchanged).toMatchObject({ end: 'streamed', answer: { complete: false } });
    expect('answer' in exchanged && exchanged.answer?.body.length).toBe(KEPT);
    expect(reader.begun + reader.bytes).toBe(100_000);
    expect(reader).toMatchObject({ ended: true, cut: false });
  });

  it('waits for its reader', async () => {
    const total = 50_000_000;
    const { origin, seen } = await startPouring(total);
    const { reader, readFrom } = makeReader();
    reader.ready = false;
    const reading = readFrom(origin);
    await expect.poll(() => reader.bytes).toBeGreaterThan(0);
    const held = reader.bytes;
    await expect
      .poll(async () => {
        const before = seen.sent;
        await new Promise((resolve) => setImmediate(resolve));
        return seen.sent === before;
      })
      .toBe(true);
    expect(reader.bytes).toBe(held);
    expect(seen.sent).toBeLessThan(total);
    reader.ready = true;
    reader.resume();
    await reading;
    expect(reader.bytes).toBe(total - KEPT);
  });

  it('that the service truncates is cut for its reader too', async () => {
    const { origin } = await startPouring(50_000_000, 20_000_000);
    const { reader, readFrom } = makeReader();
    expect(await readFrom(origin)).toMatchObject({ end: 'streamed' });
    expect(reader).toMatchObject({ ended: false, cut: true });
  });

  it('is stopped at the service when its reader is gone', async () => {
    const { origin, seen } = await startPouring(50_000_000);
    const { reader, readFrom } = makeReader();
    reader.ready = false;
    const reading = readFrom(origin);
    await expect.poll(() => reader.bytes).toBeGreaterThan(0);
    reader.stop();
    expect(await reading).toMatchObject({ end: 'streamed' });
    expect(reader.cut).toBe(true);
    await expect.poll(() => seen.closed).toBe(true);
  });
});
