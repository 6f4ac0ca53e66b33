import { afterEach, expect, it } from 'vitest';
import { createDatabase } from '../../harness/database.ts';
import { closeAll } from '../../upstream/rig.ts';
import { runSimulation } from './run.ts';
import { buildWorld } from './world.ts';

/** A day of it: `npm run observe`. */
const PLAN = { seed: 2, hours: 0.3, daemons: 3, wallets: 6, tokens: 25, perS: 3 };

afterEach(closeAll);

const TITLE =
  'Under faults, deadlines, restarts and stale lists, three daemons keep the budget in any ' +
  'second and every deadline, and find each lasting change of a wallet or token once';

it(TITLE, { timeout: 300_000 }, async () => {
  const database = await createDatabase();
  const world = await buildWorld(database.db, PLAN);
  try {
    const { traffic, verdict, restarts } = await runSimulation(world);
    expect(traffic.early).toEqual([]);
    expect(traffic.worstSecond).toBeLessThanOrEqual(PLAN.perS);
    expect(verdict.missed).toEqual([]);
    expect(verdict.wrong).toEqual([]);
    expect(Math.min(traffic.deadlines, restarts)).toBeGreaterThan(2);
    expect(Math.min(verdict.lasting, verdict.drifts)).toBeGreaterThan(20);
  } finally {
    await closeAll();
    await world.sandbox.close();
    await database.drop();
  }
});
