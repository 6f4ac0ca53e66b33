/**
 * Wallets under constant traffic, through a whole daemon on a new database.
 *
 * `--budget` is of polls alone, `auto` that of the default configuration. `--delay` is how long the
 * service takes to answer, in milliseconds; a random part of it passes before it sees the request.
 *
 * While writes go on, others change the busy wallets five times. It exits with 1 when an outcome
 * contradicts the service, a drift is false or has a wrong amount, or a change is not found, or a
 * write not settled after the service shows it, within `--within` seconds. With `--lost` only wrong
 * outcomes count. `--cold` starts the load before the wallets are known; `--polls-off` measures
 * nothing but the latency of writes, to compare with.
 *
 * The same seed makes the same writes and changes. Daemon, Postgres, sandbox and load share the
 * cores, so a busy machine makes everything slower.
 */
import { Command, Option } from 'commander';
import { printLine } from '../../../src/kernel/telemetry/log.ts';
import { openTemporaryServer } from '../../harness/temporary-server.ts';
import { type Figures, failuresOf, figuresOf, type Spread } from './figures.ts';
import { runLoad } from './load.ts';
import type { ScenarioName } from './scenarios.ts';
import { LIMITS, openWorld, type Plan } from './world.ts';

const NAMES: ScenarioName[] = ['merchant', 'operator', 'pair', 'players', 'gives'];

const values = new Command('busy')
  .description('Runs wallets under constant traffic and says what settled, drifted and waited.')
  .addOption(new Option('--scenario <name>').choices(['all', ...NAMES]).default('all'))
  .option('--minutes <n>', 'minutes of each scenario', Number, 10)
  .option('--rate <n>', 'writes per second; by default that of the scenario', Number)
  .option('--lost <share>', 'share of the answers that are lost', Number, 0)
  .option('--reads <n>', 'reads of its wallets by apps per second', Number, 0)
  .option('--seed <n>', 'the same seed makes the same writes and changes', Number, 1)
  .option('--budget <n>', 'polls per second, or auto', budgetOf, 200)
  .option('--wallets <n>', 'wallets of the scenario gives', Number, 200)
  .option('--within <s>', 'seconds in which to settle and to find changes', Number, 10)
  .option('--delay <min-max>', 'milliseconds until the service answers')
  .option('--read-lag <ms>', 'how late reads of the service may be', Number, 300)
  .option('--cold', 'start the load before the wallets are known', false)
  .option('--polls-off', 'measure nothing but the latency of writes', false)
  .option('--json', 'print JSON', false)
  .addHelpText('after', '\nExample:\n  npm run busy -- --scenario merchant --minutes 1 --lost 0.02')
  .parse()
  .opts<{
    scenario: string;
    minutes: number;
    rate?: number;
    lost: number;
    reads: number;
    seed: number;
    budget: number | 'auto';
    wallets: number;
    within: number;
    delay?: string;
    readLag: number;
    cold: boolean;
    pollsOff: boolean;
    json: boolean;
  }>();

const plan: Plan = {
  minutes: values.minutes,
  perS: values.rate,
  lost: values.lost,
  readsPerS: values.reads,
  seed: values.seed,
  budgetPerS: values.budget,
  wallets: values.wallets,
  withinS: values.within,
  delayMs: values.delay === undefined ? undefined : rangeOf(values.delay),
  readLagMs: values.readLag,
  cold: values.cold,
  pollsOff: values.pollsOff,
};
const names = NAMES.filter((name) => values.scenario === 'all' || values.scenario === name);

const all: (Figures & { failures: string[] })[] = [];
const server = await openTemporaryServer('busy');
try {
  for (const name of names) {
    const figures = await runScenario(name);
    const failures = plan.pollsOff ? [] : failuresOf(figures, plan);
    all.push({ ...figures, failures });
    if (!values.json) printLine(tableOf(figures, failures));
  }
} finally {
  await server.close();
}
if (values.json) printLine(JSON.stringify({ plan, limits: LIMITS, scenarios: all }, null, 2));
process.exitCode = all.some(({ failures }) => failures.length > 0) ? 1 : 0;

async function runScenario(name: ScenarioName): Promise<Figures> {
  const world = await openWorld(name, plan, await server.createDatabase(name));
  try {
    return await figuresOf(world, await runLoad(world));
  } finally {
    await world.close();
  }
}

function budgetOf(text: string): number | 'auto' {
  return text === 'auto' ? text : Number(text);
}

function rangeOf(text: string): [number, number] {
  const [, least, most] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  if (!least || !most) throw new Error('--delay: two numbers such as 20-200');
  return [Number(least), Number(most)];
}

function tableOf(figures: Figures, failures: readonly string[]): string {
  const { settledAfterS, latencyFirstMs, latencyLastMs } = figures;
  const polls = plan.pollsOff ? 'polls off' : `budget ${plan.budgetPerS} polls/s`;
  const head = [
    `\n${figures.scenario}: ${figures.perS} ${figures.title}, ${plan.minutes} min, ${polls},`,
    `answers after ${figures.delayMs.join('–')} ms, reads up to ${plan.readLagMs} ms late,`,
    `${plan.lost * 100} % of answers lost, seed ${plan.seed}`,
    plan.readsPerS > 0 ? `, apps read ${plan.readsPerS} times per second` : '',
    plan.cold ? ', wallets unknown at the start' : '',
  ];
  const others = Object.entries(figures.refused).map(([status, n]) => `${n} × ${status}`);
  const rows: [string, string][] = [
    ['writes accepted', [`${figures.accepted} of ${figures.requested}`, ...others].join(', ')],
    ['writes skipped, too many open', `${figures.skipped}`],
    ['writes sent as ambiguous', `${figures.ambiguous}`],
    ['writes settled', `${figures.settled}`],
    [
      'from shown to settled',
      `${spreadText(settledAfterS, 's')}; ${figures.settledLate} > ${plan.withinS} s`,
    ],
    ['outside changes found after', `${listText(figures.changesFoundAfterS)} s`],
    ['  in bounds of drifts after', `${listText(figures.changesShownAfterS)} s`],
    ['false drifts', countText(figures.falseDrifts)],
    ['drifts with a wrong amount', countText(figures.wrongAmounts)],
    ['latency in the first minute', spreadText(latencyFirstMs, 'ms')],
    ['latency in the last minute', spreadText(latencyLastMs, 'ms')],
    ['polls/s made', number(figures.pollsPerS)],
    [
      'unknown',
      `${figures.unknown}: ${figures.resolved} resolved, ${figures.undecided} undecided,`,
    ],
    ['', `${figures.stillOpen} open, ${figures.wrong.length} WRONG ${figures.wrong.slice(0, 3)}`],
    ['  resolved after', spreadText(figures.resolvedAfterS, 's')],
    ['load average of the machine', number(figures.machineLoad)],
    ['passed', failures.length === 0 ? 'yes' : `NO: ${failures.join('; ')}`],
    ...figures.log
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .slice(0, 5)
      .map((line): [string, string] => ['logged', logText(line)]),
  ];
  const lines = rows.map(([what, value]) => `  ${what.padEnd(30)} ${value}`.trimEnd());
  return [head.join(' '), ...lines].join('\n');
}

function spreadText(spread: Spread | undefined, unit: string): string {
  if (!spread) return 'none';
  const { p50, p95, max } = spread;
  return `p50 ${number(p50)}, p95 ${number(p95)}, max ${number(max)} ${unit}`;
}

function logText(line: string): string {
  const { msg, err, ...more } = JSON.parse(line);
  const { level: _level, time: _time, ...fields } = more;
  return [msg, err?.message, err?.errorCode, JSON.stringify(fields)].join(' ').slice(0, 200);
}

function countText(what: readonly string[]): string {
  return [what.length, ...what.slice(0, 3)].join('  ');
}

function listText(seconds: readonly (number | null)[]): string {
  return seconds.map((value) => (value === null ? 'never' : number(value))).join(' ');
}

function number(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}
