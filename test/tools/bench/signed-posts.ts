/**
 * A bare loop of signed POSTs, the reference of `fan-out.ts`: what this language and the client of
 * deliveries can send at most. Prints how many per second.
 *
 * node signed-posts.ts <port> <endpoints> <requests>
 */
import { Agent, request } from 'undici';
import { systemRandom } from '../../../src/kernel/random.ts';
import { makeKey, parseKey, signedHeaders } from '../../../src/webhooks/webhooks.ts';

const CONCURRENCY = 128;
const [port, endpoints, requests] = process.argv.slice(2).map(Number) as [number, number, number];
const keys = (['v1', 'v1a'] as const).map((scheme) =>
  parseKey(makeKey(scheme, 0, systemRandom).secret),
);
const body = Buffer.from(
  JSON.stringify({
    id: 'evt_01a215cd-5737-7000-9504-cab343ff3816',
    type: 'operation.accepted',
    timestamp: new Date().toISOString(),
    data: { note: 'x'.repeat(500), subject_seq: 1 },
  }),
);
const dispatcher = new Agent({ connections: null, pipelining: 1 });
const startedAt = performance.now();
let next = 0;
async function sender(): Promise<void> {
  for (let n = next++; n < requests; n = next++) {
    const id = `evt_01a215cd-5737-7000-9504-${String(n).padStart(12, '0')}`;
    const timestamp = Math.floor(Date.now() / 1000);
    const { statusCode, body: answer } = await request(
      `http://127.0.0.${1 + (n % endpoints)}:${port}/hook`,
      {
        method: 'POST',
        dispatcher,
        body,
        headers: {
          'content-type': 'application/json',
          'user-agent': 'bench',
          ...signedHeaders({ id, timestamp, body }, keys),
        },
      },
    );
    await answer.dump();
    if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
  }
}
await Promise.all(Array.from({ length: CONCURRENCY }, sender));
process.stdout.write(`ready at http://${requests / ((performance.now() - startedAt) / 1000)}\n`);
await dispatcher.close();
