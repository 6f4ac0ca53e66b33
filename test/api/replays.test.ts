/** Replays through the API and by the command. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { useApi } from './rig.ts';

const api = useApi();

const url = 'http://127.0.0.1:4567/hooks';
const ago = (ms: number) => new Date(systemClock.now() - ms).toISOString();

/** An endpoint of a new key, after a test event; the key and the path to replay. */
async function endpointOf() {
  const key = await api.keyFor('manage', 'read');
  const { body } = await api.call('POST', '/api/endpoints', { key, body: { url } });
  await api.call('POST', `/api/endpoints/${body.id}/test`, { key });
  return { key, id: body.id as string, path: `/api/endpoints/${body.id}/replay` };
}

it('A dry run counts and starts nothing; one replay of an endpoint runs until it is cancelled', async () => {
  const { key, id, path } = await endpointOf();
  const body = { since: ago(3_600_000), which: 'all', types: ['endpoint.*'] };
  const counted = await api.call('POST', path, { key, body: { ...body, dry_run: true } });
  expect(counted.body).toMatchObject({ id: null, state: 'dry_run', queued: 0 });
  expect((await api.call('GET', '/api/replays', { key })).body.data).toEqual([]);
  const started = await api.call('POST', path, { key, body });
  expect(started.status).toBe(202);
  expect(started.body).toMatchObject({ endpoint_id: id, state: 'running', which: 'all' });
  const again = await api.call('POST', path, { key, body });
  expect([again.status, again.body.code]).toEqual([409, 'conflict']);
  const to = `/api/replays/${started.body.id}`;
  expect((await api.call('GET', to, { key })).body).toEqual(started.body);
  const ended = await api.call('POST', `${to}/cancel`, { key });
  expect(ended.body).toMatchObject({ state: 'cancelled', queued: 0 });
  expect((await api.call('POST', `${to}/cancel`, { key })).status).toBe(409);
});

it('Only the owner of an endpoint, and an admin, may start and cancel its replays', async () => {
  const { key, path } = await endpointOf();
  const other = await api.keyFor('manage');
  const body = { since: ago(3_600_000) };
  expect((await api.call('POST', path, { key: other, body })).status).toBe(403);
  const started = await api.call('POST', path, { key, body });
  const cancel = `/api/replays/${started.body.id}/cancel`;
  expect((await api.call('POST', cancel, { key: other })).status).toBe(403);
  expect((await api.call('POST', cancel)).status).toBe(200);
});

it('A replay of an endpoint that does not exist is refused, of an admin too', async () => {
  const id = 'ep_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
  const body = { since: ago(1_000) };
  expect((await api.call('POST', `/api/endpoints/${id}/replay`, { body })).status).toBe(404);
});

it.each([
  ['in the future', { since: '2999-01-01T00:00:00Z' }, 'invalid_request'],
  ['before deliveries are kept', { since: '2001-01-01T00:00:00Z' }, 'invalid_request'],
  ['of no known type', { types: ['wallet'] }, 'invalid_request'],
  ['of an unknown choice', { which: 'some' }, 'invalid_request'],
])('A replay %s is refused', async (_, change, code) => {
  const { key, path } = await endpointOf();
  const body = { since: ago(1_000), ...change };
  const { status, body: problem } = await api.call('POST', path, { key, body });
  expect([status, problem.code]).toEqual([400, code]);
});
