/** `/api/status`, which every tab of the console reads. */
import { expect, it } from 'vitest';
import { lockWaits } from '../harness/lock-waits.ts';
import { until } from '../harness/until.ts';
import { useApi } from './rig.ts';

const api = useApi();

it('Twenty tabs that read the status at once take one connection of people', async () => {
  const { owner } = api.database;
  const release = Promise.withResolvers<void>();
  const isHeld = Promise.withResolvers<void>();
  const held = owner.begin(async (tx) => {
    await tx.sql`lock table tallyhook.drifts in access exclusive mode`;
    isHeld.resolve();
    await release.promise;
  });
  await isHeld.promise;
  const answers = Array.from({ length: 20 }, () => api.call('GET', '/api/status'));
  await until(async () => (await lockWaits(owner)) || undefined);
  // Answered while the others wait.
  expect((await api.call('GET', '/api/audit')).status).toBe(200);
  expect(await lockWaits(owner)).toBe(1);
  release.resolve();
  await held;
  const statuses = await Promise.all(answers);
  expect(statuses.map(({ status }) => status)).toEqual(statuses.map(() => 200));
});

it('A status shows what was committed before it was asked for, also while another one is read', async () => {
  const reason = 'to see it';
  for (const path of ['/api/freeze', '/api/unfreeze']) {
    const before = [api.call('GET', '/api/status'), api.call('GET', '/api/status')];
    expect((await api.call('POST', path, { body: { reason } })).status).toBe(200);
    const { body } = await api.call('GET', '/api/status');
    expect(body).toMatchObject({ freeze: path === '/api/freeze' ? { reason } : null });
    await Promise.all(before);
  }
});
