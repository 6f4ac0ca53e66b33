/** Section 2.7: maintenance is announced, begins and ends by the clock, and closes the rest. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Caller, startCaller, stopAll } from './client.ts';

let caller: Caller;
const MINUTE = 60_000;
const record = async () => (await caller.send('GET', '/v1/system/maintenance')).body;

beforeAll(async () => {
  caller = await startCaller();
});
afterAll(stopAll);

test('It is READY with dates, INACTIVE with 503 bodies, then ACTIVE with nulls', async () => {
  const as = await caller.clientToken();
  const active = { status: 'ACTIVE', start: null, end: null, message: null };
  expect(await record()).toEqual({ status: 200, data: active });

  caller.sandbox.control.maintenance({
    state: 'announced',
    start_in_ms: 10 * MINUTE,
    duration_ms: 5 * MINUTE,
    message: 'New disks',
  });
  const announced = {
    start: '2026-01-01 00:10:00',
    end: '2026-01-01 00:15:00',
    message: 'New disks',
  };
  expect(await record()).toEqual({ status: 200, data: { status: 'READY', ...announced } });
  const tokens = () => caller.send('GET', '/v1/chain/erc721/1/tokens', { as });
  expect((await tokens()).status).toBe(200);

  caller.clock.advance(10 * MINUTE);
  expect(await record()).toEqual({ status: 200, data: { status: 'INACTIVE', ...announced } });
  for (const [method, path] of [
    ['GET', '/v1/chain/erc721/1/tokens'],
    ['POST', '/v1/app/token/accounts/transfer'],
    ['POST', '/v1/oauth/token'],
  ] as const) {
    const reply = await caller.send(method, path, { as });
    expect(reply.status).toBe(503);
    expect(String(reply.at('status'))).toBe('503');
    expect(reply.text).toContain('under maintenance');
  }

  caller.clock.advance(5 * MINUTE);
  expect(await record()).toEqual({ status: 200, data: active });
  expect((await tokens()).status).toBe(200);
});

test('Maintenance can begin unannounced, without an end, and be ended by hand', async () => {
  caller.sandbox.control.maintenance({ state: 'on' });
  expect(await record()).toMatchObject({ data: { status: 'INACTIVE', end: null } });
  caller.sandbox.control.maintenance({ state: 'off' });
  expect(await record()).toMatchObject({ data: { status: 'ACTIVE' } });
});
