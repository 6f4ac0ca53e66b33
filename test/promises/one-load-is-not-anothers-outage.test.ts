/** Promise 15. One load is not another's outage. */
import { expect, it } from 'vitest';
import { useRig } from '../harness/rig.ts';

const rig = useRig({
  database: { people_statement_timeout_ms: 6_000 },
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
    for (let n = 0; n < 20; n++) expect((await rig.app.give(rig.world.ada, 1)).status).toBe(200);
    // The gives took less time than one of the reads that hold the connections.
    expect(codes).not.toContain('query_too_slow');
    await Promise.all(reads);
    expect(codes.filter((code) => code === 'query_too_slow').length).toBeGreaterThan(3);
  });
  expect((await rig.app.call('GET', '/api/reports')).status).toBe(200);
});
