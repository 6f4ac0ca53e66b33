/**
 * The simulation of the observer from the command line, on a database of its own: a virtual day of
 * changes made elsewhere, faults, deadlines and restarts.
 *
 * It prints what it found per seed and one table of all, and exits with 1 when a poll was early or
 * beyond the budget, or a lasting change was missed, found twice, or made up. The same arguments
 * make the same changes, faults and restarts at the same virtual times.
 */
import { Command } from 'commander';
import { monotonicMs } from '../../../src/kernel/clock.ts';
import { printLine } from '../../../src/kernel/telemetry/log.ts';
import { openTemporaryServer, withVolatileDatabase } from '../../harness/temporary-server.ts';
import { closeAll } from '../../upstream/rig.ts';
import { runSimulation, type Simulation } from './run.ts';
import { buildWorld, type Plan } from './world.ts';

const values = new Command('observe')
  .description(
    'Polls a changing service in virtual time, and checks requests and what was found of changes.',
  )
  .option('--seeds <list>', 'several seeds, one after the other, such as 1,2,3', '1')
  .option('--hours <n>', 'virtual hours of each seed', Number, 24)
  .option('--daemons <n>', 'daemons on one database', Number, 3)
  .option('--wallets <n>', 'watched wallets', Number, 8)
  .option('--tokens <n>', 'tokens of the watched contract at the start', Number, 25)
  .option('--budget <n>', 'polls per second of all daemons', Number, 3)
  .addHelpText('after', '\nExample:\n  npm run observe -- --seeds 1,2 --hours 2 --budget 6')
  .parse()
  .opts<{ seeds: string; budget: number } & Omit<Plan, 'seed' | 'perS'>>();

/** Runs the plan on a new database of the server. */
function simulate(plan: Plan): Promise<Simulation> {
  return withVolatileDatabase(server, `observe_${plan.seed}`, async (db) => {
    const world = await buildWorld(db, plan);
    try {
      return await runSimulation(world, (hours, { polls }) =>
        printLine(`hour ${hours} of ${plan.hours}: ${polls} polls`),
      );
    } finally {
      await closeAll();
      await world.sandbox.close();
    }
  });
}

function report(plan: Plan, { traffic, verdict }: Simulation, seconds: number): void {
  printLine(`plan: ${JSON.stringify(plan)}`);
  for (const line of traffic.early) printLine(`EARLY ${line}`);
  for (const line of verdict.missed) printLine(`MISSED ${line}`);
  for (const line of verdict.wrong) printLine(`WRONG ${line}`);
  printLine(`seed ${plan.seed}: ${seconds.toFixed(0)} s`);
}

const HEAD = {
  requests: ['seed', 'polls', 'most in a second', 'deadlines', 'early', 'faults', 'restarts'],
  changes: ['changes', 'lasting', 'missed', 'wrong', 'slowest'],
};

function rowOf(seed: number, { traffic, verdict, faults, restarts }: Simulation): string {
  const { polls, worstSecond, deadlines, early } = traffic;
  const { changes, lasting, missed, wrong, slowestMs } = verdict;
  const slowest = `${(slowestMs / 1000).toFixed(0)} s`;
  const requests = [seed, polls, worstSecond, deadlines, early.length, faults, restarts];
  const cells = [...requests, changes, lasting, missed.length, wrong.length, slowest];
  return `| ${cells.join(' | ')} |`;
}

const { seeds, budget: perS, ...common } = values;
const rows: string[] = [];
const server = await openTemporaryServer('observe');
try {
  for (const seed of new Set(seeds.split(',').map(Number))) {
    const plan = { ...common, perS, seed };
    const startedAt = monotonicMs();
    const simulation = await simulate(plan);
    report(plan, simulation, (monotonicMs() - startedAt) / 1000);
    rows.push(rowOf(seed, simulation));
    const { traffic, verdict } = simulation;
    const faults = [...traffic.early, ...verdict.missed, ...verdict.wrong];
    // Each daemon rounds its part of the budget up.
    const isOver = traffic.worstSecond > Math.ceil(perS / plan.daemons) * plan.daemons;
    if (faults.length > 0 || isOver) process.exitCode = 1;
  }
} finally {
  await server.close();
}
const head = [...HEAD.requests, ...HEAD.changes];
printLine(`| ${head.join(' | ')} |\n|${'---|'.repeat(head.length)}\n${rows.join('\n')}`);
