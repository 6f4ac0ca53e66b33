/**
 * `npm run hostile`: hostile receivers judge a sender of webhooks. Without options that is a whole
 * daemon of this repository on a new database, with healthy receivers beside the hostile ones and
 * apps that write. With `--serve` it is any other sender, which is given the URLs of the receivers
 * as its endpoints. With `--kills` processes of two daemons are killed every 200 ms instead; with
 * `--brokers` they also deliver to brokers, which restart. It exits with 1 when a rule is broken.
 * Everything shares the machine.
 */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { migrate } from '../../../src/db/migrate.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { printLine } from '../../../src/kernel/telemetry/log.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import { makeAuthority } from '../../harness/certificates.ts';
import { CLIENT } from '../../harness/daemon.ts';
import { openTemporaryServer } from '../../harness/temporary-server.ts';
import { until } from '../../harness/until.ts';
import { type Judgement, judgeTallyhook } from './judge.ts';
import { type Destination, openBrokers } from './kills/destinations.ts';
import { killFaultsOf, killText } from './kills/figures.ts';
import { runKills } from './kills/kills.ts';
import { openRestartedPostgres } from './kills/postgres.ts';
import { openReceivers } from './receivers.ts';
import { type Verdict, verdictsOf, verdictText } from './verdict.ts';

const values = new Command('hostile')
  .description('Judges a sender of webhooks by receivers that misbehave.')
  .option('--seconds <n>', 'seconds with the hostile receivers', Number, 120)
  .option('--alone <n>', 'seconds before and after, without them; 0 for none', Number, 45)
  .option('--rate <n>', 'writes of apps per second', Number, 10)
  .option('--healthy <n>', 'healthy receivers', Number, 5)
  .option('--kills', 'instead: kill two daemons again and again, and restart Postgres twice')
  .option(
    '--brokers <folder>',
    'with --kills: also deliver to Kafka, NATS, RabbitMQ and SQS, and restart them; ' +
      'the folder is that of `.ci/brokers`',
  )
  .option('--serve', 'print the URLs for another sender, and judge it at the end or at Ctrl+C')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    '\nExamples:\n  npm run hostile -- --seconds 60\n  npm run hostile -- --serve --seconds 600',
  )
  .parse()
  .opts<{
    seconds: number;
    alone: number;
    rate: number;
    healthy: number;
    kills?: true;
    brokers?: string;
    serve?: true;
    json?: true;
  }>();

/** Figures of the others may rise by this; the second bound is for those of a few milliseconds. */
const RATIO_MAX = 1.5;
const RISE_MAX_MS = 2;

const say = (text: string) => process.stderr.write(`${text}\n`);
const run = values.kills ? kill : values.serve ? serve : judge;
process.exitCode = (await run()) ? 0 : 1;

async function judge(): Promise<boolean> {
  const server = await openTemporaryServer('hostile');
  try {
    const judgement = await judgeTallyhook(
      await server.createDatabase('judge'),
      {
        seconds: values.seconds,
        aloneS: values.alone,
        perS: values.rate,
        refusedEveryS: 3,
        healthy: values.healthy,
      },
      say,
    );
    const faults = faultsOf(judgement);
    if (values.json)
      printLine(JSON.stringify({ ...judgement, loadAverage: loadavg()[0], faults }, null, 2));
    else printLine(textOf(judgement, faults));
    return faults.length === 0;
  } finally {
    await server.close();
  }
}

/** Kills two daemons, and compares what was recorded with what came. */
async function kill(): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-kills-'));
  // Postgres does not run as root, and has to reach its data.
  await chmod(folder, 0o711);
  const postgres = await openRestartedPostgres(folder);
  const sandbox = await startSandbox({ ...CLIENT, seed: 1, clock: systemClock });
  let brokers: Destination[] = [];
  try {
    if (values.brokers) brokers = await openBrokers(folder, resolve(values.brokers));
    await migrate(postgres.url);
    const { seconds, rate } = values;
    const restarts = [postgres.restart, postgres.crash];
    const figures = await runKills(
      { url: postgres.url, sandbox, restarts, brokers },
      { seconds, perS: rate, everyMs: 200, daemonEvery: 30, seed: 1 },
      say,
    );
    const faults = killFaultsOf(figures);
    const load = loadavg()[0]?.toFixed(1);
    if (values.json) printLine(JSON.stringify({ ...figures, loadAverage: load, faults }, null, 2));
    else
      printLine(
        [
          killText(figures),
          `${'load average of the machine'.padEnd(38)} ${load}`,
          faults.join('\n') || 'no event was lost, and only attempts in flight came twice',
        ].join('\n'),
      );
    return faults.length === 0;
  } finally {
    for (const { close } of brokers) await close();
    await sandbox.close();
    await postgres.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Judges any sender, which is given the URLs of the receivers. */
async function serve(): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-hostile-'));
  const authority = await makeAuthority(folder);
  const receivers = await openReceivers(authority, { healthy: values.healthy });
  const all = [...receivers.healthy, ...receivers.hostile];
  await writeFile(join(folder, 'endpoints'), all.map(({ url }) => `${url}\n`).join(''));
  say(
    [
      ...all.map(({ name, url, does }) => `${name.padEnd(16)} ${url.padEnd(44)} ${does}`),
      '',
      `Create an endpoint for each URL; ${join(folder, 'endpoints')} lists them.`,
      `Let the sender trust ${authority.certFile}, ask the name server at`,
      `${receivers.nameServer.address}, and send to 127.0.0.1 but not to 127.0.0.2.`,
      `Then send it events, at best a few each second. Judged after ${values.seconds} s.`,
    ].join('\n'),
  );
  receivers.begin();
  let isInterrupted = false;
  process.once('SIGINT', () => {
    isInterrupted = true;
  });
  await until(async () => isInterrupted || undefined, { deadlineMs: values.seconds * 1000 });
  const verdicts = verdictsOf(all, receivers.healthy);
  printLine(values.json ? JSON.stringify(verdicts, null, 2) : verdicts.map(verdictText).join('\n'));
  await receivers.close();
  await rm(folder, { recursive: true, force: true });
  return verdicts.every(({ held }) => held !== false);
}

function faultsOf({ hostile, healthy, missing, writes, writeMs, arrivalMs }: Judgement): string[] {
  const rises = ([before, during]: Judgement['writeMs']) =>
    before !== undefined && during.p95 > Math.max(before.p95 * RATIO_MAX, before.p95 + RISE_MAX_MS);
  const faults: Record<string, boolean> = {
    'events did not come to a healthy receiver': missing.length > 0,
    'writes failed': writes.failed > 0,
    [`healthy receivers got events later than ${RATIO_MAX} × (p95)`]: rises(arrivalMs),
    [`writes took longer than ${RATIO_MAX} × (p95)`]: rises(writeMs),
  };
  const broken = [...hostile, ...healthy].filter(({ held }) => held === false);
  return [
    ...broken.map(({ receiver }) => `${receiver} is not held`),
    ...Object.entries(faults).flatMap(([fault, is]) => (is ? [fault] : [])),
  ];
}

function textOf(judgement: Judgement, faults: readonly string[]): string {
  const { hostile, healthy, missing, writes, writeMs, arrivalMs } = judgement;
  const spread = (what: string, [before, during]: Judgement['writeMs']) => {
    const ratio = before ? `, ${(during.p95 / before.p95).toFixed(2)} × (p95)` : '';
    const text = (one: typeof before) =>
      one ? `${one.p50.toFixed(1)} / ${one.p95.toFixed(1)} ms` : 'not measured';
    return `${what.padEnd(34)} ${text(before)} without, ${text(during)} with${ratio}`;
  };
  const shown = (verdicts: readonly Verdict[]) => verdicts.map(verdictText).join('\n');
  const well = healthy.filter(({ held }) => held).length;
  const held = `${well} of ${healthy.length} held, ${missing.length} events missing`;
  return `
${shown(hostile)}

${'healthy receivers'.padEnd(34)} ${held}
${'writes'.padEnd(34)} ${writes.sent}, ${writes.failed} failed
${spread('writes, p50 / p95', writeMs)}
${spread('receipt by the healthy, p50 / p95', arrivalMs)}
load average of the machine        ${loadavg()[0]?.toFixed(1)}
${faults.join('\n') || 'every rule that was shown is held, and no other endpoint was affected'}`;
}
