import { afterEach, describe, expect, it } from 'vitest';
import { createDatabase } from '../harness/database.ts';
import { closeAll } from '../upstream/scripted-service.ts';
import { runStory } from './simulation.ts';
import { verdictOn } from './verdicts.ts';
import { buildWorld, type Plan } from './world.ts';

afterEach(closeAll);

const PLANS: (Plan & { title: string })[] = [
  {
    title: 'With operators that can be read',
    seed: 1,
    steps: 70,
    mapped: true,
    wallets: 8,
    amountMax: 500,
    unharmed: 40,
  },
  {
    title: 'With operators that cannot',
    seed: 2,
    steps: 70,
    mapped: false,
    wallets: 8,
    amountMax: 500,
    unharmed: 40,
  },
];

describe('Whatever the service does with writes and answers', () => {
  it.each(PLANS)(
    '$title no conclusion is wrong and every change is named (seed $seed)',
    async (plan) => {
      const database = await createDatabase();
      const world = await buildWorld(database.db, plan);
      try {
        const story = await runStory(world, plan);
        const figures = await verdictOn(world, story);
        expect(figures.wrong).toEqual([]);
        expect(figures.open).toBe(0);
        expect(figures.unknown).toBeGreaterThan(5);
        expect(figures.executed + figures.notExecuted).toBeGreaterThan(0);
      } finally {
        await world.sandbox.close();
        await database.drop();
      }
    },
  );
});
