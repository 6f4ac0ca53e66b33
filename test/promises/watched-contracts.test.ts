/** Promise 9, for tokens: what happens elsewhere in a watched contract becomes events. */
import { expect, it } from 'vitest';
import { useRig } from '../harness/rig.ts';

const rig = useRig();
const CONTRACT = 1n;

it('A token minted elsewhere in a watched contract is an event, an older one is none, a transfer elsewhere names no operation, and a token burned elsewhere is gone', async () => {
  const { world, app } = rig;
  const { control } = world.sandbox;
  control.setToken(CONTRACT, 7_000n, { owner: world.ada });
  const watched = await app.call('POST', '/api/watches', [
    { kind: 'contract', contract_id: `${CONTRACT}` },
  ]);
  expect(watched.status, watched.text).toBe(201);
  const known = async (id: string) =>
    (await app.call('GET', `/api/tokens/${CONTRACT}/${id}`)).status;
  await expect.poll(() => known('7000')).toBe(200);
  const listed = async () => {
    const rows = await world.database.owner.sql<{ at: unknown }[]>`
      select scan_progress -> 'listedAt' as at from tallyhook.targets
      where name = ${`contract:${CONTRACT}`}`;
    return typeof rows[0]?.at;
  };
  await expect.poll(listed).toBe('number');
  control.setToken(CONTRACT, 7_001n, { owner: world.ada });
  const minted = await app.until((e) => e.type === 'token.minted');
  expect(minted.data).toMatchObject({
    token_id: '7001',
    cause: 'external',
    previous: null,
    current: { owner: world.ada },
  });
  control.setToken(CONTRACT, 7_000n, { owner: world.ben });
  const moved = await app.until((e) => e.type === 'token.transferred');
  expect(moved.data).toMatchObject({ token_id: '7000', cause: 'external' });
  control.removeToken(CONTRACT, 7_001n);
  const burned = await app.until((e) => e.type === 'token.burned');
  expect(burned.data).toMatchObject({ token_id: '7001', cause: 'external' });
  const events = (await app.events()).filter(({ type }) => type === 'token.minted');
  expect(events).toHaveLength(1);
});
