/** An answer that is larger than what is kept goes on, as fast as its reader takes it. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { makeTransport, type Transport } from '../../src/upstream/http/transport.ts';
import type { Sink } from '../../src/upstream/types.ts';

const KEPT = 1_000;
const servers: Server[] = [];
const lanes: Transport[] = [];
afterEach(async () => {
  for (const one of lanes.splice(0)) await one.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** A service that sends as much as it is let to, and counts how much of it left. */
async function pouring(total: number, cutAt = Number.POSITIVE_INFINITY) {
  const seen = { sent: 0, closed: false };
  const server = createServer(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/x', 'set-cookie': ['a=1', 'b=2'] });
    response.once('close', () => {
      seen.closed = true;
    });
    while (seen.sent < total && !response.destroyed) {
      if (seen.sent >= cutAt) return void response.destroy();
      const full = !response.write(Buffer.alloc(10_000, 'x'));
      seen.sent += 10_000;
      if (full) await Promise.race([once(response, 'drain'), once(response, 'close')]);
    }
    response.end();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return { origin: `http://127.0.0.1:${port}`, seen };
}

/** A reader that takes pieces when it is let to. */
function reader() {
  const taken = { bytes: 0, ended: false, cut: false, go: () => {}, open: true };
  const sink: Sink = {
    write(piece) {
      taken.bytes += piece.length;
      return taken.open;
    },
    drained(go) {
      taken.go = go;
    },
    end() {
      taken.ended = true;
    },
    cut() {
      taken.cut = true;
    },
  };
  return { taken, sink };
}

function read(origin: string, sink: Sink, onHead: (stop: () => void, begun: Uint8Array) => void) {
  const made = makeTransport(systemClock, {
    connectTimeoutMs: 5_000,
    bodyBytesMax: KEPT,
    connections: { polls: 1, 'app-read': 1 },
  });
  lanes.push(made);
  return made.exchange('app-read', {
    method: 'GET',
    origin,
    path: '/',
    headers: [],
    deadlineAt: systemClock.now() + 10_000,
    overflow: (head, begun, stop) => {
      expect(head).toMatchObject({ status: 200 });
      expect(head.headers).toEqual(expect.arrayContaining([['set-cookie', 'b=2']]));
      onHead(stop, begun);
      return sink;
    },
  });
}

describe('A large answer', () => {
  test('Goes on whole, its beginning is kept', async () => {
    const { origin } = await pouring(100_000);
    const { taken, sink } = reader();
    let begun = 0;
    const exchanged = await read(origin, sink, (_stop, first) => {
      begun = first.length;
    });
    expect(exchanged).toMatchObject({ end: 'streamed', answer: { complete: false } });
    expect('answer' in exchanged && exchanged.answer?.body.length).toBe(KEPT);
    expect(begun + taken.bytes).toBe(100_000);
    expect(taken).toMatchObject({ ended: true, cut: false });
  });

  test('Waits for its reader', async () => {
    const total = 50_000_000;
    const { origin, seen } = await pouring(total);
    const { taken, sink } = reader();
    taken.open = false;
    const reading = read(origin, sink, () => {});
    await expect.poll(() => taken.bytes).toBeGreaterThan(0);
    const held = taken.bytes;
    await expect
      .poll(async () => {
        const before = seen.sent;
        await new Promise((resolve) => setImmediate(resolve));
        return seen.sent === before;
      })
      .toBe(true);
    expect(taken.bytes).toBe(held);
    expect(seen.sent).toBeLessThan(total);
    taken.open = true;
    taken.go();
    await reading;
    expect(taken.bytes).toBe(total - KEPT);
  });

  test('That breaks off is cut for its reader too', async () => {
    const { origin } = await pouring(50_000_000, 20_000_000);
    const { taken, sink } = reader();
    expect(await read(origin, sink, () => {})).toMatchObject({ end: 'streamed' });
    expect(taken).toMatchObject({ ended: false, cut: true });
  });

  test('Is ended at the service when its reader goes', async () => {
    const { origin, seen } = await pouring(50_000_000);
    const { taken, sink } = reader();
    taken.open = false;
    let leave = () => {};
    const reading = read(origin, sink, (stop) => {
      leave = stop;
    });
    await expect.poll(() => taken.bytes).toBeGreaterThan(0);
    leave();
    expect(await reading).toMatchObject({ end: 'streamed' });
    expect(taken.cut).toBe(true);
    await expect.poll(() => seen.closed).toBe(true);
  });
});
