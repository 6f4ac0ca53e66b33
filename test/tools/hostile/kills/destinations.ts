/**
 * Where the events of a run with kills go, and what came there. A destination of another kind is
 * one more function that answers a `Destination`, and one more name in `openDestinations`.
 */
import { after } from '../../../../src/kernel/clock.ts';
import type { Random } from '../../../../src/kernel/random.ts';
import { listen } from '../../../harness/listen.ts';
import { Seen } from '../seen.ts';
import { httpServer } from '../server.ts';

/** An event as it came: one of several attempts, or one message of a log. */
export interface Arrival {
  id: string;
  body: string;
  /** In milliseconds of `monotonicMs`. */
  atMs: number;
  /** False if it was refused, so that it has to come again. */
  isAccepted: boolean;
}

export interface Destination {
  name: string;
  /** What `POST /api/endpoints` is given, beside the types. */
  endpoint: { ordering: 'none' | 'subject' } & Record<string, unknown>;
  /** In the order in which they came. */
  arrivals(): readonly Arrival[];
  close(): Promise<void>;
}

/** The ordered one refuses the first attempt of one event in so many. */
const REFUSED_EVERY = 20;
/** Answers come after up to this, so that a kill finds attempts in flight. */
const ANSWERS_WITHIN_MS = 100;

export async function openDestinations(random: Random): Promise<Destination[]> {
  return [
    await httpDestination('HTTP', random, { ordering: 'none', refusedEvery: 0 }),
    await httpDestination('HTTP in order', random, {
      ordering: 'subject',
      refusedEvery: REFUSED_EVERY,
    }),
  ];
}

async function httpDestination(
  name: string,
  random: Random,
  { ordering, refusedEvery }: { ordering: 'none' | 'subject'; refusedEvery: number },
): Promise<Destination> {
  const seen = new Seen();
  const arrivals: Arrival[] = [];
  const known = new Set<string>();
  const server = httpServer(seen, ({ request, response }) => {
    const { id, body, atMs } = request;
    const isFirst = !known.has(id);
    known.add(id);
    const isRefused = isFirst && refusedEvery > 0 && known.size % refusedEvery === 0;
    // Accepted, whether or not anybody lives to read the answer.
    arrivals.push({ id, body, atMs, isAccepted: !isRefused });
    after(ANSWERS_WITHIN_MS * random.unit(), () => {
      response.writeHead(isRefused ? 500 : 200, { 'content-length': '0' }).end();
    });
  });
  const port = await listen(server);
  return {
    name,
    endpoint: { ordering, url: `http://127.0.0.1:${port}/hook` },
    arrivals: () => arrivals,
    close: () =>
      new Promise((resolve) => {
        for (const socket of seen.sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
