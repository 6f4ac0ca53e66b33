/** A webhook receiver that verifies signatures with the independent library `standardwebhooks`. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { monotonicMs, pause } from '../../kernel/clock.ts';

/** A verified webhook. */
export interface Received {
  id: string;
  type: string;
  data: Record<string, unknown>;
}

export interface DemoReceiver {
  url: string;
  /** Sets the secret for signature checks. */
  trust(secret: string): void;
  /** The first matching webhook; undefined after `ms`. */
  waitFor(matches: (received: Received) => boolean, ms: number): Promise<Received | undefined>;
  counts(): { verified: number; refused: number; repeated: number };
  close(): Promise<void>;
}

export async function startReceiver(): Promise<DemoReceiver> {
  const received = new Map<string, Received>();
  let webhook: Webhook | undefined;
  let refused = 0;
  let repeated = 0;
  let arrived = new AbortController();
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    try {
      const verified = webhook?.verify(
        body,
        incoming.headers as Record<string, string>,
      ) as Received;
      if (received.has(verified.id)) repeated++;
      received.set(verified.id, verified);
      outgoing.writeHead(204).end();
    } catch {
      refused++;
      outgoing.writeHead(400).end();
    }
    const rung = arrived;
    arrived = new AbortController();
    rung.abort();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/webhooks`,
    trust(secret) {
      webhook = new Webhook(secret);
    },
    async waitFor(matches, ms) {
      const until = monotonicMs() + ms;
      for (;;) {
        const found = [...received.values()].find(matches);
        const left = until - monotonicMs();
        if (found || left <= 0) return found;
        await pause(left, arrived.signal);
      }
    },
    counts: () => ({ verified: received.size, refused, repeated }),
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
