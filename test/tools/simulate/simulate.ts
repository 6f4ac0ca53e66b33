/**
 * The simulation from the command line, on a database of its own.
 *
 * It prints the figures of each seed and one table of all, and exits with 1 when a resolution or a
 * balance as of a past time was wrong (`as-of.ts` says which is), a drift could not be
 * ended, or the report at the end has a break. `--faults` and `--without` choose among the faults
 * of `faults.ts`. With `--restores` whole daemons run instead, in real time, and
 * snapshots of their Postgres are put back under them (`restored.ts`).
 *
 * With `--look-alike` outside changes may equal writes; the wrong resolutions are then the
 * published error. With `--fresh` nothing was observed before, and each token write has wallets of
 * its own; none is made while the service fails. With `--busy` a few wallets are never quiet, and
 * fewer answers are lost.
 *
 * The same arguments make the same writes, faults, outages and outside changes in the same order.
 * Requests go over real sockets, so observations may arrive in another order; then the tokens that
 * writes pick and a few outcomes differ. The digests show how far two runs agree.
 */
import { Command } from 'commander';
import { monotonicMs } from '../../../src/kernel/clock.ts';
import { jsonText } from '../../../src/kernel/json.ts';
import { printLine } from '../../../src/kernel/telemetry/log.ts';
import { openTemporaryServer, withVolatileDatabase } from '../../harness/temporary-server.ts';
import { closeAll } from '../../upstream/rig.ts';
import { type AsOf, compareAsOf } from './as-of.ts';
import { type Closing, closeBooks } from './closing.ts';
import { type Detection, detectionOf } from './detection.ts';
import { ALL_FAULTS, type Fault, faultsOf } from './faults.ts';
import { type Figures, figuresOf } from './figures.ts';
import { runRestores } from './restored.ts';
import { runSimulation } from './run.ts';
import { buildWorld, type Plan } from './world.ts';

const values = new Command('simulate')
  .description('Runs apps, faults and outside changes in virtual time, and checks every outcome.')
  .option('--seed <n>', 'the same seed makes the same writes, faults and changes', '1')
  .option('--seeds <list>', 'several seeds, one after the other, such as 1,2,3')
  .option('--writes <n>', 'writes of each seed', Number, 10_000)
  .option('--daemons <n>', 'daemons on one database', Number, 1)
  .option('--apps <n>', 'apps that write at the same time', Number, 1)
  .option('--wallets <n>', 'wallets of the users of each', Number, 80)
  .option('--unharmed <n>', 'writes without a fault for each one with a fault', Number)
  .option('--look-alike', 'outside changes may equal writes', false)
  .option('--mapped', 'the wallets of operators and fees can be read', false)
  .option('--fresh', 'nothing was observed before; each token write has new wallets', false)
  .option('--instants <n>', 'past times as of which balances are compared', Number, 100)
  .option('--busy', 'a few wallets are never quiet', false)
  .option('--faults <list>', `some of ${ALL_FAULTS.join(', ')}`, faultsOf, ALL_FAULTS)
  .option('--without <list>', 'faults that do not happen', faultsOf, [])
  .option('--incident-steps <n>', 'each such fault happens at one step of so many', Number, 200)
  .option('--restores <n>', 'snapshots put back under whole daemons, and nothing else', Number, 0)
  .addHelpText('after', '\nExample:\n  npm run simulate -- --seed 7 --writes 1000 --fresh')
  .parse()
  .opts<{
    seed: string;
    seeds?: string;
    writes: number;
    daemons: number;
    apps: number;
    wallets: number;
    unharmed?: number;
    lookAlike: boolean;
    mapped: boolean;
    fresh: boolean;
    busy: boolean;
    faults: Fault[];
    without: Fault[];
    incidentSteps: number;
    restores: number;
    instants: number;
  }>();

const COMMON: Omit<Plan, 'seed'> = {
  writes: values.writes,
  mapped: values.mapped,
  lookAlike: values.lookAlike,
  daemons: values.daemons,
  apps: values.apps,
  wallets: values.apps * values.wallets,
  members: values.apps * Math.ceil(values.wallets / 4),
  unharmed: values.unharmed ?? (values.busy ? 50 : 5),
  fresh: values.fresh,
  busy: values.busy,
  incidentSteps: values.incidentSteps,
  faults: values.faults.filter((fault) => !values.without.includes(fault)),
};

interface Outcome {
  figures: Figures;
  /** Absent where outside changes may equal writes. */
  detection?: Detection;
  closing?: Closing;
  /** Balances as of past times, before and after people ended what was left open. */
  asOf?: AsOf[];
}

/** Runs the plan on a new database of the server. */
function simulate(plan: Plan): Promise<Outcome> {
  return withVolatileDatabase(server, `simulation_${plan.seed}`, async (db) => {
    const world = await buildWorld(db, plan);
    try {
      const simulation = await runSimulation(world, printLine);
      printLine(`events: ${JSON.stringify(simulation.events)}`);
      const figures = await figuresOf(world, simulation);
      if (plan.lookAlike) return { figures };
      const detection = await detectionOf(world, simulation);
      const before = await compareAsOf(world, simulation, values.instants);
      const closing = await closeBooks(world, simulation);
      const asOf = [before, await compareAsOf(world, simulation, values.instants)];
      return { figures, detection, closing, asOf };
    } finally {
      await closeAll();
      await world.close();
    }
  });
}

function report(plan: Plan, outcome: Outcome, seconds: number): void {
  const { figures, detection, closing } = outcome;
  const { byKind, reasons, wrong, books, digests, ...counts } = figures;
  printLine(`plan: ${JSON.stringify(plan)}`);
  printLine(`digests: ${JSON.stringify(digests)}`);
  printLine(`counts: ${JSON.stringify(counts)}`);
  printLine(`unknown by kind: ${JSON.stringify(byKind)}`);
  for (const [why, names] of Object.entries(reasons))
    printLine(`undecided ${names.length} × ${why}: ${names.join(' ')}`);
  for (const line of wrong) printLine(`WRONG ${line}`);
  for (const line of books) printLine(`BOOKS ${line}`);
  if (detection) printLine(`changes made elsewhere: ${JSON.stringify(detection)}`);
  for (const { wrong, ...counts } of outcome.asOf ?? []) {
    printLine(`balances as of past times: ${jsonText(counts)}`);
    for (const line of wrong) printLine(`WRONG ${line}`);
  }
  if (closing) printLine(`closing: ${JSON.stringify(closing)}`);
  printLine(`seed ${plan.seed}: ${seconds.toFixed(0)} s`);
}

/** In real time, with two daemons as processes. */
async function simulateRestores(): Promise<void> {
  const { restores, writes } = values;
  for (const seed of new Set((values.seeds ?? values.seed).split(','))) {
    const { wrong, ...counts } = await runRestores({ seed: Number(seed), restores, writes });
    printLine(`seed ${seed}: ${jsonText(counts)}`);
    for (const line of wrong) printLine(`WRONG ${line}`);
    if (wrong.length > 0) process.exitCode = 1;
  }
}

/** A table of all seeds, and of their sums where there are several, in Markdown. */
function tableOf(all: ReadonlyMap<string, Figures>): string {
  const rows = [...all];
  if (rows.length > 1) rows.push(['all', sumOf([...all.values()])]);
  const head = ['seed', 'writes', 'answers lost', 'resolved without a person', 'given to people'];
  return [
    `| ${[...head, 'still open', 'wrong'].join(' | ')} |`,
    `|${'---|'.repeat(head.length + 2)}`,
    ...rows.map(([seed, figures]) => `| ${[seed, ...cellsOf(figures)].join(' | ')} |`),
  ].join('\n');
}

function cellsOf({ recorded, unknown, undecided, open, wrong }: Figures): string[] {
  const share = (count: number, of: number) =>
    of === 0 ? '0' : `${count} (${((100 * count) / of).toFixed(2)} %)`;
  const resolved = unknown - undecided - open;
  return [
    `${recorded}`,
    `${unknown}`,
    share(resolved, unknown),
    share(undecided, unknown),
    `${open}`,
    share(wrong.length, resolved),
  ];
}

/** Of what the table shows. */
function sumOf(all: readonly Figures[]): Figures {
  const sum = structuredClone(all[0]) as Figures;
  for (const one of all.slice(1)) {
    for (const key of ['recorded', 'unknown', 'undecided', 'open'] as const) sum[key] += one[key];
    sum.wrong.push(...one.wrong);
  }
  return sum;
}

if (values.restores > 0) {
  await simulateRestores();
  process.exit();
}

const all = new Map<string, Figures>();
const server = await openTemporaryServer('simulation');
try {
  for (const seed of new Set((values.seeds ?? values.seed).split(','))) {
    const plan = { ...COMMON, seed: Number(seed) };
    const startedAt = monotonicMs();
    const outcome = await simulate(plan);
    report(plan, outcome, (monotonicMs() - startedAt) / 1000);
    all.set(seed, outcome.figures);
    if (outcome.asOf?.some(({ wrong }) => wrong.length > 0)) process.exitCode = 1;
    if (outcome.closing?.breaks.length || outcome.closing?.left.length) process.exitCode = 1;
  }
} finally {
  await server.close();
}
printLine(tableOf(all));
const wrong = [...all.values()].some((figures) => figures.wrong.length > 0);
if (wrong && !COMMON.lookAlike) process.exitCode = 1;
