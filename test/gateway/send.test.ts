import { createServer } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { makeRetryBudget } from '../../src/gateway/writes.ts';
import { must } from '../../src/kernel/errors.ts';
import { listSends } from '../../src/operations/operations.ts';
import { closeServer, listen } from '../harness/listen.ts';
import { untilLockWaits } from '../harness/lock-waits.ts';
import { idOf, SUCCESS, setUpGateway } from './rig.ts';

const { database, sql, open, operationOf } = await setUpGateway();

/** A gateway whose transactions go to a closed port, and a service that can start on it. */
async function withClosedPort(options: { writeTimeoutMs?: number } = {}) {
  const server = createServer((request, response) => {
    request.resume();
    response.end(SUCCESS.body);
  });
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  onTestFinished(() => closeServer(server));
  return {
    rig: await open({ txUrl: `http://127.0.0.1:${port}`, ...options }),
    start: () => listen(server, port),
  };
}

async function sendsOf(id: string) {
  const sends = await listSends(database.db, id);
  return sends.map(({ n, after }) => [n, after]);
}

const key = { 'idempotency-key': 'refused' };

it('A write to a closed port is sent three times, each send a row, and releases its idempotency key', async () => {
  const { rig } = await withClosedPort();
  const first = await rig.give(key);
  expect(first).toMatchObject({
    status: 502,
    json: {
      code: 'upstream_not_reached',
      detail: 'connection_refused: the connection was refused',
    },
    headers: { 'tallyhook-outcome': 'rejected' },
  });
  expect(await sendsOf(idOf(first))).toEqual([
    [1, null],
    [2, 'connection_refused'],
    [3, 'connection_refused'],
  ]);
  expect(await operationOf(first)).toMatchObject({ state: 'rejected', keyHeld: false });
  const second = await rig.give(key);
  expect(idOf(second)).not.toBe(idOf(first));
  expect(second.headers['idempotency-replayed']).toBeUndefined();
});

it('A write whose deadline would pass before a resend is sent once', async () => {
  const { rig } = await withClosedPort({ writeTimeoutMs: 100 });
  const response = await rig.give();
  expect(response).toMatchObject({ status: 502, json: { code: 'upstream_not_reached' } });
  expect(await sendsOf(idOf(response))).toEqual([[1, null]]);
  // It does not even ask.
  expect(rig.logged.text).not.toContain('not resent');
});

it('A write to a closed port is accepted when the service starts before it is sent again', async () => {
  const { rig, start } = await withClosedPort();
  // The second send waits for its row, and the row for this lock.
  await sql.unsafe(`
    create function public.hold() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(7); return new; end';
    create trigger hold before insert on tallyhook.transitions
      for each row when (new.deadline_at is not null and new.from_state is not null)
      execute function public.hold()`);
  let running: ReturnType<typeof rig.give> | undefined;
  await database.owner.begin(async ({ sql: held }) => {
    await held`select pg_advisory_xact_lock(7)`;
    running = rig.give();
    await untilLockWaits(database.owner, { wait: 'advisory' });
    await start();
  });
  const response = await running;
  await sql.unsafe('drop function public.hold() cascade');
  expect(response).toMatchObject({ status: 200, headers: { 'tallyhook-outcome': 'accepted' } });
  expect(await sendsOf(idOf(must(response, 'response')))).toEqual([
    [1, null],
    [2, 'connection_refused'],
  ]);
});

it('A new daemon resends ten times in total, and once more for ten first sends', async () => {
  const { rig } = await withClosedPort();
  const responses = await Promise.all(Array.from({ length: 12 }, () => rig.give()));
  expect(responses.map(({ status }) => status)).toEqual(Array(12).fill(502));
  const sends = await Promise.all(responses.map(async (response) => sendsOf(idOf(response))));
  const resends = sends.flat().length - 12;
  // A first send earns a tenth of a resend only when one of the ten is used before it.
  expect(resends).toBeGreaterThanOrEqual(10);
  expect(resends).toBeLessThanOrEqual(11);
});

it('The retry budget has ten resends at first, earns one for ten first sends, and saves ten at most', () => {
  const budget = makeRetryBudget();
  const taken = () => Array.from({ length: 20 }, () => budget.take()).filter(Boolean).length;
  expect(taken()).toBe(10);
  for (let i = 0; i < 9; i++) budget.earn();
  expect(taken()).toBe(0);
  budget.earn();
  expect(taken()).toBe(1);
  for (let i = 0; i < 1_000; i++) budget.earn();
  expect(taken()).toBe(10);
});
