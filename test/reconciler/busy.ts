/**
 * Wallets under constant traffic, through a whole daemon on a new database:
 *
 *     npm run busy -- --scenario merchant|operator|pair|all --minutes 10 [--rate 25] [--lost 0.02]
 *       [--budget 200] [--delay 20-200] [--read-lag 300] [--seed 1] [--cold] [--polls-off] [--json]
 *
 * The budget is of all requests: polls get what the writes leave. `--delay` is how long the service
 * takes to answer, in milliseconds; a random part of it passes before it sees the request.
 *
 * While writes go on, others change the busy wallets five times. It exits with 1 when an outcome
 * contradicts the service, a drift is false or has a wrong amount, a change is not found within
 * 10 s, or a write is not settled within 10 s after the service shows it. With `--lost` only wrong
 * outcomes count. `--cold` starts the load before the wallets are known; `--polls-off` measures
 * nothing but the latency of writes, to compare with.
 *
 * The same seed makes the same writes and changes. Daemon, Postgres, sandbox and load share the
 * cores, so a busy machine makes everything slower.
 */
import { parseArgs } from 'node:util';
import { printLine } from '../../src/kernel/terminal.ts';
import { openTemporaryServer } from '../harness/temporary-server.ts';
import { type Figures, failuresOf, figuresOf, type Spread } from './busy/figures.ts';
import { runLoad } from './busy/load.ts';
import type { ScenarioName } from './busy/scenarios.ts';
import { LIMITS, openWorld, type Plan } from './busy/world.ts';

const NAMES: ScenarioName[] = ['merchant', 'operator', 'pair'];

const { values } = parseArgs({
  options: {
    scenario: { type: 'string', default: 'all' },
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string' },
    lost: { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
    budget: { type: 'string', default: '200' },
    delay: { type: 'string' },
    'read-lag': { type: 'string', default: '300' },
    cold: { type: 'boolean', default: false },
    'polls-off': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

const plan: Plan = {
  minutes: Number(values.minutes),
  perS: values.rate === undefined ? undefined : Number(values.rate),
  lost: Number(values.lost),
  seed: Number(values.seed),
  budgetPerS: Number(values.budget),
  delayMs: values.delay === undefined ? undefined : rangeOf(values.delay),
  readLagMs: Number(values['read-lag']),
  cold: values.cold,
  pollsOff: values['polls-off'],
};
const names = NAMES.filter((name) => values.scenario === 'all' || values.scenario === name);
if (names.length === 0) throw new Error(`--scenario: one of all, ${NAMES.join(', ')}`);

const all: (Figures & { failures: string[] })[] = [];
const server = await openTemporaryServer('busy');
try {
  for (const name of names) {
    const figures = await runScenario(name);
    const failures = plan.pollsOff ? [] : failuresOf(figures, plan.lost > 0);
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

function rangeOf(text: string): [number, number] {
  const [, least, most] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  if (!least || !most) throw new Error('--delay: two numbers such as 20-200');
  return [Number(least), Number(most)];
}

function tableOf(figures: Figures, failures: readonly string[]): string {
  const { settledAfterS, latencyFirstMs, latencyLastMs } = figures;
  const polls = plan.pollsOff ? 'polls off' : `budget ${plan.budgetPerS} requests/s`;
  const head = [
    `\n${figures.scenario}: ${figures.perS} ${figures.title}, ${plan.minutes} min, ${polls},`,
    `answers after ${figures.delayMs.join('–')} ms, reads up to ${plan.readLagMs} ms late,`,
    `${plan.lost * 100} % of answers lost, seed ${plan.seed}`,
    plan.cold ? ', wallets unknown at the start' : '',
  ];
  const others = Object.entries(figures.refused).map(([status, n]) => `${n} × ${status}`);
  const rows: [string, string][] = [
    ['writes accepted', [`${figures.accepted} of ${figures.requested}`, ...others].join(', ')],
    ['writes skipped, too many open', `${figures.skipped}`],
    ['writes sent as ambiguous', `${figures.ambiguous}`],
    ['writes settled', `${figures.settled}`],
    ['from shown to settled', `${spreadText(settledAfterS, 's')}; ${figures.settledLate} > 10 s`],
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
