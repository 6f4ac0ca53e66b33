/**
 * The simulation from the command line, on a database of its own:
 *
 *     node test/reconciler/simulate.ts --seed 7 --writes 10000 [--look-alike] [--mapped]
 *       [--daemons 2] [--wallets 80] [--unharmed 5]
 *
 * It prints its seed and figures, and exits with 1 when a resolution was wrong. With `--look-alike`
 * outside changes may equal writes; the wrong resolutions are then the published error.
 *
 * The same arguments make the same writes, faults, outages and outside changes in the same order.
 * Requests go over real sockets, so observations may arrive in another order; then the tokens that
 * writes pick and a few outcomes differ. The digests show how far two runs agree.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { connect } from '../../src/db/connect.ts';
import { openEmbedded } from '../../src/db/embedded/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { WRITER } from '../../src/db/roles.ts';
import { monotonicMs } from '../../src/kernel/clock.ts';
import { printLine } from '../../src/kernel/terminal.ts';
import { closeAll } from '../upstream/rig.ts';
import { type Figures, figuresOf } from './simulation/figures.ts';
import { runSimulation } from './simulation/run.ts';
import { buildWorld, type Plan } from './simulation/world.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    writes: { type: 'string', default: '10000' },
    daemons: { type: 'string', default: '1' },
    wallets: { type: 'string', default: '80' },
    unharmed: { type: 'string', default: '5' },
    'look-alike': { type: 'boolean', default: false },
    mapped: { type: 'boolean', default: false },
  },
});

const plan: Plan = {
  seed: Number(values.seed),
  writes: Number(values.writes),
  mapped: values.mapped,
  lookAlike: values['look-alike'],
  daemons: Number(values.daemons),
  wallets: Number(values.wallets),
  members: Math.ceil(Number(values.wallets) / 4),
  unharmed: Number(values.unharmed),
};

/** Runs the plan on a new server, which is deleted afterwards. */
async function simulate(): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-simulation-'));
  await chmod(folder, 0o711);
  const server = await openEmbedded({ directory: folder });
  const url = new URL(server.url);
  const admin = postgres(server.url, { max: 1, onnotice: () => {} });
  url.pathname = `/simulation_${randomBytes(4).toString('hex')}`;
  await admin.unsafe(`create database ${url.pathname.slice(1)}`);
  // The simulation never restarts the server, so it need not wait for the disk.
  await admin.unsafe(`alter database ${url.pathname.slice(1)} set synchronous_commit = off`);
  await admin.end();
  await migrate(url.href);
  const db = connect({ url: url.href, role: WRITER, max: 8 });
  try {
    const world = await buildWorld(db, plan);
    try {
      const simulation = await runSimulation(world, printLine);
      printLine(`events: ${JSON.stringify(simulation.events)}`);
      return await figuresOf(world, simulation);
    } finally {
      await closeAll();
      await world.close();
    }
  } finally {
    await db.end();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function report(figures: Figures, seconds: number): void {
  const { unknown, undecided, open } = figures;
  const concluded = unknown - undecided - open;
  const resolved = unknown === 0 ? 100 : (100 * concluded) / unknown;
  const { byKind, reasons, wrong, books, digests, ...counts } = figures;
  printLine(`plan: ${JSON.stringify(plan)}`);
  printLine(`digests: ${JSON.stringify(digests)}`);
  printLine(`counts: ${JSON.stringify(counts)}`);
  printLine(`unknown by kind: ${JSON.stringify(byKind)}`);
  for (const [why, names] of Object.entries(reasons))
    printLine(`undecided ${names.length} × ${why}: ${names.join(' ')}`);
  for (const line of wrong) printLine(`WRONG ${line}`);
  for (const line of books) printLine(`BOOKS ${line}`);
  const error = concluded === 0 ? 0 : (100 * wrong.length) / concluded;
  printLine(
    `seed ${plan.seed}: ${figures.recorded} writes, ${unknown} unknown, ` +
      `${resolved.toFixed(2)} % resolved, ${wrong.length} wrong ` +
      `(${error.toFixed(2)} % of these), ${undecided} undecided, ` +
      `${open} open, ${seconds.toFixed(0)} s`,
  );
}

const startedAt = monotonicMs();
const figures = await simulate();
report(figures, (monotonicMs() - startedAt) / 1000);
process.exitCode = figures.wrong.length > 0 && !plan.lookAlike ? 1 : 0;
