/** Promise 15. One load is not another's outage. */
import { expect, it } from 'vitest';
import { useRig } from '../harness/rig.ts';

/** A claim of a killed process ends with its lease, which follows the deadline of an attempt. */
const rig = useRig({
  database: { people_statement_timeout_ms: 3_000 },
  webhooks: { attempt_timeout_ms: 1_000 },
});

it('Gives go on while every connection for API reads is busy, and those reads end in time', async () => {
  const { owner } = rig.world.database;
  await owner.begin(async ({ sql }) => {
    await sql`lock table tallyhook.reports in access exclusive mode`;
    const codes: unknown[] = [];
    const reads = Array.from({ length: 600 }, () =>
      rig.app.call('GET', '/api/reports').then(({ json }) => codes.push(json.code)),
    );
    await expect.poll(() => codes).toContain('database_unavailable');
    for (let n = 0; n < 5; n++) expect((await rig.app.give(rig.world.ada, 1)).status).toBe(200);
    await Promise.all(reads);
    expect(codes.filter((code) => code === 'query_too_slow').length).toBeGreaterThan(3);
  });
  expect((await rig.app.call('GET', '/api/reports')).status).toBe(200);
});

it('Gives go on while the process of webhooks is killed or hangs, and every event is delivered', async () => {
  await rig.subscribe('/killed', ['operation.accepted']);
  const { daemon, app } = rig;
  const ready = async () => (await app.call('GET', '/readyz')).json.delivery;
  const give = async () => {
    for (let n = 0; n < 10; n++) expect((await app.give(rig.world.ada, 1)).status).toBe(200);
  };
  for (let starts = 1; starts <= 3; starts++) {
    const pid = await daemon.deliveryPid(starts);
    // The last one hangs until its daemon kills it.
    const signal = starts < 3 ? 'SIGKILL' : 'SIGSTOP';
    await Promise.all([give(), process.kill(pid, signal)]);
  }
  await give();
  await daemon.deliveryPid(4);
  await expect.poll(ready).toBe('running');
  const accepted = (await app.events()).filter(({ type }) => type === 'operation.accepted');
  const expected = new Set(accepted.slice(-40).map(({ id }) => id));
  const { requests } = await rig.receiver();
  const missing = () => {
    const received = new Set(requests.map(({ headers }) => headers['webhook-id']));
    return [...expected].filter((id) => !received.has(id));
  };
  expect(expected.size).toBe(40);
  await expect.poll(missing).toEqual([]);
});
