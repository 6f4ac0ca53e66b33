/**
 * Traffic that must not disturb the writes of apps, from a process of its own until it is stopped:
 * `flood.ts <kind> <url> <key>`. Its answers do not matter.
 */
import { connect } from 'node:net';
import { Agent, request } from 'undici';
import { after } from '../../../src/kernel/clock.ts';
import { requestText } from './load.ts';

const LOOPS = 32;
const LONG_POLLS = 400;
const HALF_SENT = 520;
const AGAIN_MS = 200;

const [kind = '', url = '', key = ''] = process.argv.slice(2);
const dispatcher = new Agent({ connections: LONG_POLLS, pipelining: 1 });

const FLOODS: Record<string, () => void> = {
  'unknown keys': () => loops(LOOPS, (n) => get('/api/operations', `thk_unknown-${n}`)),
  '/healthz': () => loops(LOOPS, () => get('/healthz')),
  '/metrics': () => loops(LOOPS, () => get('/metrics', key)),
  'idle long polls': () =>
    loops(LONG_POLLS, () => get('/api/events?last=0&types=report.completed&wait=30', key)),
  'half-sent requests': () => {
    for (let n = 0; n < HALF_SENT; n++) halfSent();
  },
};
FLOODS[kind]?.();
process.stdout.write(`ready at ${url}\n`);
process.once('SIGTERM', () => process.exit(0));

function loops(count: number, once: (n: number) => Promise<unknown>): void {
  let n = 0;
  const loop = async (): Promise<never> => {
    for (;;) await once(n++).catch(() => new Promise<void>((resolve) => after(AGAIN_MS, resolve)));
  };
  for (let i = 0; i < count; i++) void loop();
}

async function get(path: string, bearer?: string): Promise<void> {
  const headers = bearer ? { authorization: `Bearer ${bearer}` } : {};
  const answer = await request(`${url}${path}`, { dispatcher, headers });
  await answer.body.dump();
}

/** Opens another one whenever it is closed. */
function halfSent(): void {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(`${requestText('POST', '/v1/oauth/token', { 'content-length': '1000' })}half`);
  socket.on('error', () => {});
  socket.on('data', () => {});
  socket.on('close', () => after(AGAIN_MS, halfSent));
}
