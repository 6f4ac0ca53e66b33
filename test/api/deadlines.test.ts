/** An operator removes deadlines of the service through the API. */
import { expect, it } from 'vitest';
import { useApi } from './rig.ts';

const api = useApi();

it('Deadlines of the service are removed with a reason and the scope admin', async () => {
  const clear = (key?: string, reason?: unknown) =>
    api.call('POST', '/api/deadlines/clear', {
      body: { reason },
      ...(key === undefined ? {} : { key }),
    });
  const { status, body } = await clear(undefined, 'lifted by their support');
  expect(status).toBe(200);
  expect(body.blocked_until).toEqual({
    polls: null,
    app_read: null,
    app_write: null,
    client_token: null,
  });
  expect((await clear()).body.code).toBe('invalid_request');
  expect((await clear(await api.keyFor('manage', 'gateway', 'read'), 'x')).body.code).toBe(
    'forbidden',
  );
});
