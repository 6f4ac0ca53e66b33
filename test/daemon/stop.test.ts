/** The end of a real process: what was in flight is answered, and nothing new is begun. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { runCommand } from '../harness/command.ts';
import {
  ADMIN_KEY,
  type DaemonProcess,
  environmentOf,
  QUICK,
  startDaemon,
} from '../harness/daemon.ts';
import { useWorld } from '../harness/rig.ts';
import { until } from '../harness/until.ts';

const world = await useWorld();

const daemons: DaemonProcess[] = [];
afterEach(async () => {
  for (const { child, kill } of daemons.splice(0)) if (child.exitCode === null) await kill();
});

async function started(settings: object = {}): Promise<DaemonProcess> {
  const daemon = await startDaemon(world, {
    ...QUICK,
    daemon: { ...QUICK.daemon, ...settings },
  });
  daemons.push(daemon);
  return daemon;
}

interface Exchange {
  socket: Socket;
  /** What has arrived so far. */
  text(): string;
  /** All that arrived, once the other side has ended the connection. */
  ended: Promise<string>;
}

/** Sends a request on a connection that the client keeps open. */
async function exchange(
  url: string,
  path: string,
  { body, accept = '*/*' }: { body?: object; accept?: string } = {},
): Promise<Exchange> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('utf8').on('data', (part) => {
    text += part;
  });
  const ended = once(socket, 'close').then(() => text);
  await once(socket, 'connect');
  const content = body === undefined ? '' : JSON.stringify(body);
  const head = [
    `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1`,
    'host: x',
    `authorization: Bearer ${ADMIN_KEY}`,
    `accept: ${accept}`,
    ...(body === undefined ? [] : ['content-type: application/json']),
    `content-length: ${content.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${content}`);
  return { socket, text: () => text, ended };
}

const arrived = (one: Exchange, part: string) =>
  expect.poll(() => one.text(), { timeout: 30_000 }).toContain(part);

/** The log says that the listener is closed before the first new connection is refused. */
async function isRefused(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const [event] = await Promise.race([
    once(socket, 'connect').then(() => ['connect']),
    once(socket, 'error').then(() => ['error']),
  ]).catch(() => ['error']);
  socket.destroy();
  return event === 'error';
}

/** Holds a table so that its writers wait, until it is released. */
async function hold(table: string) {
  const { owner } = world.database;
  const release = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const done = owner.begin(async (tx) => {
    await tx.sql.unsafe(`lock table tallyhook.${table} in share row exclusive mode`);
    held.resolve();
    await release.promise;
  });
  await held.promise;
  const waiting = async () => {
    // Databases of other tests have the same table.
    const [row] = await owner.sql<{ n: number }[]>`
      select count(*)::int as n from pg_locks where not granted and mode = 'RowExclusiveLock'
        and relation = ${`tallyhook.${table}`}::regclass
        and database = (select oid from pg_database where datname = current_database())`;
    return (row?.n ?? 0) > 0 ? true : undefined;
  };
  return {
    waited: () => until(waiting, { deadlineMs: 30_000 }),
    async release() {
      release.resolve();
      await done;
    },
  };
}

/** Those that count as alive, or as lost once that has expired. */
const living = () => world.database.owner.sql`
  select id from tallyhook.daemons where roles <> '{}' order by id`;

const exitOf = async ({ child }: DaemonProcess) =>
  child.exitCode ?? ((await once(child, 'exit'))[0] as number | null);

it('At SIGTERM what is in flight is answered in full: once-shown secrets, long polls, streams', async () => {
  const daemon = await started();
  const { url } = daemon;
  const idle = await exchange(url, '/healthz');
  const poll = await exchange(url, '/api/events?cursor=latest&wait=30');
  const events = await exchange(url, '/api/events?cursor=latest', { accept: 'text/event-stream' });
  await arrived(idle, '"ok"');
  await arrived(events, 'id: ');
  const endpoints = await hold('endpoints');
  const endpoint = await exchange(url, '/api/endpoints', {
    body: { url: 'http://127.0.0.1:4567/' },
  });
  expect(await endpoints.waited()).toBe(true);

  world.sandbox.control.addFault({ kind: 'delay', contains: '47001', delay_ms: 1_500 });
  const body = { toAddr: world.ada, amount: 47_001, reasonType: 'r' };
  const give = await exchange(url, '/v1/app/token/operations/1/give', { body });
  const isSent = async () =>
    world.sandbox.control.requests().some((one) => one.body.includes('47001')) || undefined;
  expect(await until(isSent)).toBe(true);

  daemon.child.kill('SIGTERM');
  await expect.poll(() => isRefused(url), { timeout: 30_000 }).toBe(true);
  expect(await idle.ended).toContain('"ok"');
  const page = await poll.ended;
  expect(page).toMatch(
    /^HTTP\/1.1 200 .*\r\nconnection: close\r\n.*"data":\[\],"next_cursor":"\d+"/is,
  );
  const streamed = await events.ended;
  expect(streamed).toMatch(/\n: the daemon is stopping[^\n]*\n\n\r\n0\r\n\r\n$/);
  expect([endpoint.text(), daemon.child.exitCode]).toEqual(['', null]);

  await endpoints.release();
  expect(await endpoint.ended).toMatch(/^HTTP\/1.1 201 .*"secret":"whsec_[^"]{40,}"/s);
  expect(await give.ended).toMatch(/^HTTP\/1.1 200 .*tallyhook-outcome: accepted/is);
  expect(await exitOf(daemon)).toBe(0);
});

it('Readiness goes first: until the listener closes, requests on new connections are answered', async () => {
  const daemon = await started({ unready_ms: 3_000 });
  const { url } = daemon;
  const statusOf = async (path: string, one?: Exchange) => {
    const sent = one ?? (await exchange(url, path));
    await arrived(sent, '\r\n\r\n');
    sent.socket.destroy();
    return Number(/^HTTP\/1.1 (\d+)/.exec(sent.text())?.[1]);
  };
  expect(await statusOf('/readyz')).toBe(200);
  daemon.child.kill('SIGTERM');
  await expect.poll(() => statusOf('/readyz'), { timeout: 30_000 }).toBe(503);
  expect([await statusOf('/healthz'), await statusOf('/api/status')]).toEqual([200, 200]);
  await expect.poll(() => isRefused(url), { timeout: 30_000 }).toBe(true);
  expect(await exitOf(daemon)).toBe(0);
});

it('A request that is not answered within the time to drain does not keep a daemon', async () => {
  const daemon = await started({ drain_ms: 1_000 });
  const endpoints = await hold('endpoints');
  const endpoint = await exchange(daemon.url, '/api/endpoints', {
    body: { url: 'http://127.0.0.1:4567/' },
  });
  expect(await endpoints.waited()).toBe(true);
  daemon.child.kill('SIGTERM');
  expect(await endpoint.ended).toBe('');
  await endpoints.release();
  expect(await exitOf(daemon)).toBe(0);
  expect(await living()).toEqual([]);
});

it('A start that is refused leaves no daemon that counts as alive, and later as lost', async () => {
  const daemon = await started();
  const { port } = new URL(daemon.url);
  const env = environmentOf(world.database.url, world.sandbox.url);
  const refused = await runCommand({ ...env, PORT: port, LOG_LEVEL: 'fatal' }, 'start');
  expect(refused).toMatchObject({ code: 1, text: expect.stringContaining('is in use') });
  expect(await living()).toHaveLength(1);
  daemon.child.kill('SIGTERM');
  expect(await exitOf(daemon)).toBe(0);
  expect(await living()).toEqual([]);
});

it('A write that is cut at the end of the drain is answered 504 with its operation, which stays', async () => {
  const daemon = await started({ drain_ms: 1_000 });
  expect(daemon.output()).toContain('daemon.drain_ms is shorter than a write may take');
  world.sandbox.control.addFault({ kind: 'delay', contains: '47002', delay_ms: 5_000 });
  const body = { toAddr: world.ada, amount: 47_002, reasonType: 'r' };
  const give = await exchange(daemon.url, '/v1/app/token/operations/1/give', { body });
  const isSent = async () =>
    world.sandbox.control.requests().some((one) => one.body.includes('47002')) || undefined;
  expect(await until(isSent)).toBe(true);
  daemon.child.kill('SIGTERM');
  const answer = await give.ended;
  expect(answer).toMatch(/^HTTP\/1.1 504 .*\r\nconnection: close\r\n/is);
  const id = /\r\ntallyhook-operation: (op_[\w-]+)\r\n/i.exec(answer)?.[1];
  const problem = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')));
  expect(problem).toMatchObject({ code: 'outcome_unknown', operation_id: id, state: 'sending' });
  expect(await exitOf(daemon)).toBe(0);
  const rows = await world.database.owner.sql<{ state: string }[]>`
    select state from tallyhook.operations where id = ${String(id)}`;
  expect(rows).toEqual([{ state: 'sending' }]);
});
