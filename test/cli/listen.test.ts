/** The commands for those who develop a receiver of webhooks. */
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findEvent, sequence } from '../../src/outbox/outbox.ts';
import { openApi, startServer, type TestApi } from '../api/rig.ts';
import { ADDR_A } from '../api/writes.ts';
import { runCommand } from '../harness/command.ts';
import { useDatabase } from '../harness/database.ts';
import { startReceiver } from '../harness/receiver.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const database = await useDatabase();
let api: TestApi;
let environment: Record<string, string>;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  api = await openApi(database.db);
  const server = await startServer(api.api);
  receiver = await startReceiver();
  closing.push(
    () => receiver.close(),
    () => server.close(),
  );
  environment = { TALLYHOOK_URL: server.url, TALLYHOOK_KEY: await api.keyFor('read') };
});
afterAll(async () => {
  for (const close of closing) await close();
});

/** Commits and numbers an event; returns its body. */
async function emit(balance: string): Promise<string> {
  const data = { addr: ADDR_A, current: { balance, status: 1 } };
  const subject = `wallet:${ADDR_A}`;
  const occurredAt = api.deps.clock.now();
  const [event] = await database.db.begin((tx) =>
    api.outbox.emit(tx, [{ type: 'wallet.observed', subject, occurredAt, data }]),
  );
  while ((await sequence(database.db)) > 0);
  api.notifier.notify();
  return (await findEvent(database.db, event?.id ?? '')) ?? '';
}

const run = (...args: string[]) => runCommand(environment, ...args);

it('tallyhook listen forwards the bytes of each event with a valid signature', async () => {
  const bodies = [await emit('9007199254740993000000000001'), await emit('2')];
  const forwarding = ['--forward-to', `${receiver.url}/hook`, '--secret', SECRET];
  const { code, text } = await run('listen', '--last', '2', '--count', '2', ...forwarding);
  expect({ code, text }).toMatchObject({ code: 0, text: expect.stringMatching(/200 in \d+ ms/) });
  const received = receiver.requests.slice(-2);
  expect(received.map(({ body }) => body)).toEqual(bodies);
  for (const { body, headers } of received)
    expect(new Webhook(SECRET).verify(body, headers as Record<string, string>)).toBeTruthy();
});

it('tallyhook listen goes on with events that come later, and prints one body a line', async () => {
  await emit('30');
  const listening = run('listen', '--json', '--last', '1', '--count', '2', '--type', 'wallet.*');
  let ended = false;
  listening.finally(() => {
    ended = true;
  });
  for (let n = 31; !ended; n++) await emit(`${n}`);
  const { code, text } = await listening;
  expect(code).toBe(0);
  expect(text.trim().split('\n')).toHaveLength(2);
});

it('tallyhook trigger sends the example of a type, and prints the secret that it made', async () => {
  const { code, text } = await run('trigger', 'operation.settled', '--forward-to', receiver.url);
  expect(code, text).toBe(0);
  const secret = /signed with (whsec_\S+)/.exec(text)?.[1] ?? '';
  const { body = '', headers } = receiver.requests.at(-1) ?? {};
  const event = new Webhook(secret).verify(body, headers as Record<string, string>);
  expect(event).toMatchObject({ type: 'operation.settled', data: { kind: 'transfer' } });
});

it.each([
  [['trigger', 'no.such', '--forward-to', 'http://127.0.0.1:1'], 'no.such: one of operation.'],
  [['trigger', 'operation.settled', '--forward-to', 'ftp://x'], 'expected an address such as'],
  [['listen', '--forward-to', 'nonsense'], 'expected an address such as'],
  [['listen', '--forward-to', 'http://127.0.0.1:1', '--secret', 'x'], 'a signing key starts with'],
  [['listen', '--url', 'http://127.0.0.1:1'], 'no daemon answers at'],
  [['trigger', 'operation.settled', '--forward-to', 'http://127.0.0.1:1'], 'ECONNREFUSED'],
])('%j ends with 1 and says why', async (args, why) => {
  const { code, text } = await run(...args);
  expect({ code, text }).toMatchObject({ code: 1, text: expect.stringContaining(why) });
});
