/** Promise 15. One load is not another's outage. */
import { expect, it } from 'vitest';
import { useRig } from '../harness/rig.ts';

const rig = useRig({
  database: { people_statement_timeout_ms: 3_000 },
});

const giveAll = async (count: number) => {
  const started = performance.now();
  const answers = [];
  for (let n = 0; n < count; n++) answers.push(await rig.app.give(rig.world.ada, 1));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  return performance.now() - started;
};

it('Gives go on while every connection for API reads is busy, and those reads end in time', async () => {
  const quietMs = await giveAll(20);
  const { owner } = rig.world.database;
  await owner.begin(async ({ sql }) => {
    await sql`lock table tallyhook.reports in access exclusive mode`;
    const reads = Array.from({ length: 600 }, () => rig.app.call('GET', '/api/reports'));
    const refused = await Promise.race(reads);
    expect(refused.json).toMatchObject({ status: 503, code: 'database_unavailable' });
    expect(await giveAll(20)).toBeLessThan(5 * quietMs + 500);
    const codes = (await Promise.all(reads)).map(({ json }) => json.code);
    expect(codes.filter((code) => code === 'query_too_slow').length).toBeGreaterThan(3);
  });
  expect((await rig.app.call('GET', '/api/reports')).status).toBe(200);
});
