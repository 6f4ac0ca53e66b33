/** Maintenance windows by the clock (section 2.7). */
import { expect, it } from 'vitest';
import { useCaller } from '../client.ts';

const caller = useCaller();
const MINUTE = 60_000;
const record = async () => (await caller.send('GET', '/v1/system/maintenance')).at('data');
const ACTIVE = { status: 'ACTIVE', start: null, end: null, message: null };

it('A window is READY with its dates, INACTIVE with 503 responses, then ACTIVE', async () => {
  expect(await record()).toEqual(ACTIVE);
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
  expect(await record()).toEqual({ status: 'READY', ...announced });
  caller.clock.advance(10 * MINUTE);
  expect(await record()).toEqual({ status: 'INACTIVE', ...announced });
  for (const [method, path] of [
    ['GET', '/v1/chain/erc721/1/tokens'],
    ['POST', '/v1/app/token/accounts/transfer'],
    ['POST', '/v1/oauth/token'],
  ] as const) {
    const reply = await caller.send(method, path, { as: caller.client });
    expect([reply.status, String(reply.at('status'))]).toEqual([503, '503']);
    expect(reply.text).toContain('under maintenance');
  }
  caller.clock.advance(5 * MINUTE);
  expect(await record()).toEqual(ACTIVE);
});

it('Maintenance starts unannounced, has no end, and is ended by the control surface', async () => {
  caller.sandbox.control.maintenance({ state: 'on' });
  expect(await record()).toMatchObject({ status: 'INACTIVE', end: null });
  caller.sandbox.control.maintenance({ state: 'off' });
  expect(await record()).toEqual(ACTIVE);
});
