import { afterEach, describe, expect, it } from 'vitest';
import { createDatabase } from '../../harness/database.ts';
import { closeAll } from '../../upstream/rig.ts';
import { compareAsOf } from './as-of.ts';
import { closeBooks } from './closing.ts';
import { detectionOf } from './detection.ts';
import { ALL_FAULTS } from './faults.ts';
import { figuresOf } from './figures.ts';
import { runSimulation } from './run.ts';
import { buildWorld, type Plan } from './world.ts';

afterEach(closeAll);

/** Past times as of which all balances are compared. */
const INSTANTS = 10;

const COMMON = {
  writes: 16,
  apps: 1,
  wallets: 6,
  members: 3,
  unharmed: 0.5,
  lookAlike: false,
  fresh: false,
  busy: false,
  faults: ALL_FAULTS,
  incidentSteps: 200,
};
const PLANS: (Plan & { title: string })[] = [
  { title: 'With one daemon and readable operators', ...COMMON, seed: 1, mapped: true, daemons: 1 },
  {
    title: 'With two daemons and unreadable operators',
    ...COMMON,
    seed: 2,
    mapped: false,
    daemons: 2,
  },
  {
    title: 'On a new installation, with wallets of one write each,',
    ...COMMON,
    seed: 4,
    mapped: false,
    daemons: 1,
    fresh: true,
  },
];

describe('A simulation with lost answers and outside changes', () => {
  it.each(PLANS)(
    '$title every resolution is true, every difference is named after two polls and can be ' +
      'ended, and balances as of past times are those of the service (seed $seed)',
    { timeout: 300_000 },
    async (plan) => {
      const database = await createDatabase();
      const world = await buildWorld(database.db, plan);
      try {
        const simulation = await runSimulation(world);
        const figures = await figuresOf(world, simulation);
        expect(figures.wrong).toEqual([]);
        expect(figures.books).toEqual([]);
        expect(figures.open).toBe(0);
        expect(figures.unknown).toBeGreaterThan(3);
        const resolved = figures.executed + figures.notExecuted + figures.answeredLate;
        expect(resolved).toBeGreaterThan(0.8 * figures.unknown);
        expect((await compareAsOf(world, simulation, INSTANTS)).wrong).toEqual([]);
        const { later } = await detectionOf(world, simulation);
        expect(later).toEqual([]);
        expect(await closeBooks(world, simulation)).toMatchObject({ left: [], breaks: [] });
        const asOf = await compareAsOf(world, simulation, INSTANTS);
        expect(asOf.wrong).toEqual([]);
        expect(asOf.compared).toBeGreaterThan(INSTANTS);
      } finally {
        await closeAll();
        await world.close();
        await database.drop();
      }
    },
  );
});
