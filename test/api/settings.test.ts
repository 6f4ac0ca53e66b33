/** The settings in effect through the API. */
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/daemon/config/config.ts';
import { useApi } from './rig.ts';

const { effective } = loadConfig({ PORT: '8123', UPSTREAM_BUDGET_PER_S: '7' });
const api = useApi((deps) => ({ ...deps, settings: effective }));

it('An admin reads every setting with its source', async () => {
  const { status, body } = await api.call('GET', '/api/settings');
  expect(status).toBe(200);
  expect(body.data).toEqual(effective);
  const names = { name: 'upstream.budget_per_s', value: 7, source: 'environment' };
  expect(body.data).toContainEqual(expect.objectContaining(names));
});

it('A key without the scope admin does not read settings', async () => {
  const key = await api.keyFor('read', 'manage');
  expect((await api.call('GET', '/api/settings', { key })).status).toBe(403);
});
