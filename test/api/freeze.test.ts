/** Freezing and releasing all writes through the API. */
import { expect, it } from 'vitest';
import { useApi } from './rig.ts';

const api = useApi();

const order = (path: string, reason: unknown, key?: string) =>
  api.call('POST', `/api/${path}`, { body: { reason }, ...(key === undefined ? {} : { key }) });
const frozen = async () => (await api.call('GET', '/api/status')).body.freeze;

it('A freeze lasts until it is released, and names owner and reason', async () => {
  expect(await frozen()).toBeNull();
  const first = await order('freeze', 'a key leaked');
  expect(first.body).toMatchObject({ frozen_by: 'owner of admin', reason: 'a key leaked' });
  const second = await order('freeze', 'once more');
  expect(second.body).toEqual(first.body);
  expect(await frozen()).toEqual(first.body);
  const ended = await order('unfreeze', 'it is replaced');
  expect(ended.body).toMatchObject({
    reason: 'a key leaked',
    release_reason: 'it is replaced',
    released_by: 'owner of admin',
  });
  expect(await frozen()).toBeNull();
});

it('A second release is refused', async () => {
  const { status, body } = await order('unfreeze', 'again');
  expect({ status, code: body.code }).toEqual({ status: 409, code: 'conflict' });
});

it.each([undefined, '', 7, 'a\0b', 'x'.repeat(2_001)])(
  'A freeze with the reason %j is refused',
  async (reason) => {
    expect((await order('freeze', reason)).body.code).toBe('invalid_request');
  },
);

it('A freeze requires the scope admin', async () => {
  const { body } = await order('freeze', 'try', await api.keyFor('manage', 'gateway', 'read'));
  expect(body.code).toBe('forbidden');
});
