/** Incidents in the logs of two daemons. */
import { expect, it } from 'vitest';
import { makeApp } from '../harness/app.ts';
import { operationIdOf, useRig } from '../harness/rig.ts';

const rig = useRig();

it('Incidents are logged once each, with ids, by all daemons together', async () => {
  const second = await rig.another();
  const logged = (message: string, about = '') =>
    [rig.daemon, second]
      .flatMap((daemon) => daemon.output().split('\n'))
      .filter((line) => line.includes(`"msg":"${message}"`) && line.includes(about))
      .map((line) => JSON.parse(line));
  const { control } = rig.world.sandbox;
  control.addFault({ kind: 'lost_answer', contains: '4711' });
  const lost = await rig.app.give(rig.world.ada, 4711);
  expect(lost.status).toBe(504);
  const id = operationIdOf(lost);
  await rig.subscribe('/x?secret=hush', ['operation.*']);
  const [endpoint] = (await rig.app.call('GET', '/api/endpoints')).json.data;
  expect((await rig.app.call('DELETE', `/api/endpoints/${endpoint.id}`)).status).toBe(204);
  await expect.poll(() => logged('operation.resolved', id)).toHaveLength(1);
  expect(logged('operation.unknown')).toEqual([
    expect.objectContaining({
      level: 'warn',
      operation_id: id,
      amount: '4711',
      event_id: expect.stringMatching(/^evt_/),
    }),
  ]);
  for (const lease of ['ledger', 'reconciler']) {
    const taken = logged('leader change', `"lease":"${lease}"`);
    expect(taken[0]).toMatchObject({ daemon: expect.stringMatching(/^dmn_/), fence: '1' });
    // On a busy machine a lease may be lost and taken again, with the next number.
    expect(new Set(taken.map(({ fence }) => fence)).size).toBe(taken.length);
  }
  await rig.daemon.kill();
  const other = makeApp(() => second.url);
  expect((await other.give(rig.world.ben, 5)).status).toBe(200);
  const takes = () =>
    ['ledger', 'reconciler'].map((one) => second.output().includes(`"lease":"${one}"`));
  await expect.poll(takes).toEqual([true, true]);
  expect(second.output()).not.toContain('hush');
});
