/**
 * `npm run outages`: outages of everything that a daemon needs, made one after the other on real
 * parts under a light load. For each: which alert of config/alerts.yaml fires and after how long,
 * what the log and /readyz say, and whether anything was lost or doubled. It exits with 1 when an
 * outage is not as its entry says. Everything shares the machine.
 */
import { loadavg } from 'node:os';
import { Command } from 'commander';
import { monotonicMs } from '../../../src/kernel/clock.ts';
import { printLine } from '../../../src/kernel/telemetry/log.ts';
import { DEBIAN_BIN } from '../../harness/postgres-programs.ts';
import { runOutage, type Seen } from './run.ts';
import { OUTAGES } from './table.ts';
import { tableText } from './text.ts';

const values = new Command('outages')
  .description('Makes outages, and tells which alert, log line and readiness show each.')
  .option('--only <name...>', 'these outages, by the names of --list')
  .option('--list', 'list the outages and what is expected of each')
  .option('--rate <n>', 'writes of apps per second', Number, 3)
  .option('--seconds <n>', 'how long each lasts, instead of what its entry says', Number)
  .option('--postgres <folder>', "the folder of Postgres' programs", DEBIAN_BIN)
  .option('--json', 'print JSON')
  .addHelpText('after', '\nExample:\n  npm run outages -- --only database-stopped service-down')
  .parse()
  .opts<{
    only?: string[];
    list?: true;
    rate: number;
    seconds?: number;
    postgres: string;
    json?: true;
  }>();

const QUIET_S = 15;

const started = monotonicMs();
const say = (text: string) => {
  const seconds = String(Math.round((monotonicMs() - started) / 1_000)).padStart(5);
  process.stderr.write(`${seconds} s  ${text}\n`);
};
if (values.list)
  for (const { name, alert = 'no alert', what } of OUTAGES)
    printLine(`${name.padEnd(22)} ${alert.padEnd(30)} ${what}`);
else process.exitCode = (await runAll()) ? 0 : 1;

async function runAll(): Promise<boolean> {
  const { only, rate: perS, seconds, postgres: bin } = values;
  const unknown = only?.filter((name) => !OUTAGES.some((one) => one.name === name)) ?? [];
  if (unknown.length > 0) throw new Error(`no outage ${unknown.join(', ')}; see --list`);
  const chosen = OUTAGES.filter(({ name }) => only?.includes(name) ?? true);
  const seen: Seen[] = [];
  const failed: string[] = [];
  for (const [n, outage] of chosen.entries()) {
    const { name } = outage;
    say(`${name} (${n + 1} of ${chosen.length})`);
    const plan = { bin, perS, quietS: QUIET_S, ...(seconds ? { lastsS: seconds } : {}) };
    try {
      const one = await runOutage(outage, plan, (text) => say(`${name} ${text}`));
      seen.push(one);
      say(`${name}: ${one.faults.join('; ') || 'as expected'}`);
    } catch (error) {
      failed.push(`${name}: ${error}`);
      say(`${name} could not be made: ${error}`);
    }
  }
  const load = loadavg()[0]?.toFixed(1);
  if (values.json) printLine(JSON.stringify({ seen, failed, loadAverage: load }, null, 2));
  else printLine(tableText(seen, failed, load));
  return failed.length === 0 && seen.every(({ faults }) => faults.length === 0);
}
