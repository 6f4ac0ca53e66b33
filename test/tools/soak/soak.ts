/**
 * An hour, or less, as an installation has it: two daemons on the Postgres of the machine with its
 * default configuration, a standby, mixed traffic with lost answers, changes made elsewhere,
 * backups. After a quiet part a daemon is killed in turns and started again, the database is dumped
 * again and again, in the middle the primary dies and the standby is promoted, and then a month
 * begins: its partitions are made and expired ones dropped. It exits with 1 when verdict.ts finds a
 * fault. Everything shares the machine.
 */
import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import { connect } from '../../../src/db/connect.ts';
import { monotonicMs, pause, systemClock } from '../../../src/kernel/clock.ts';
import { printLine } from '../../../src/kernel/telemetry/log.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import { makeApp } from '../../harness/app.ts';
import { runCommand } from '../../harness/command.ts';
import { CLIENT, type DaemonProcess, environmentOf, spawnDaemon } from '../../harness/daemon.ts';
import { startReceiver } from '../../harness/receiver.ts';
import { openServers } from '../../harness/replicated-servers.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import { execute } from '../../harness/temporary-server.ts';
import { until } from '../../harness/until.ts';
import { beginMonth, type Month, monthText } from './month.ts';
import { startTraffic } from './traffic.ts';
import { faultsOf, isOpen, latencyOf, outcomesOf, undelivered } from './verdict.ts';

const values = new Command('soak')
  .description('Runs a whole installation through kills, dumps and a failover, and compares.')
  .option('--minutes <n>', 'minutes of traffic', Number, 60)
  .option('--rate <n>', 'writes per second', Number, 10)
  .option('--reads <n>', 'reads per second', Number, 10)
  .option('--budget <n>', 'polls per second', Number, 100)
  .option('--lost <share>', 'share of the answers that are lost', Number, 0.01)
  .option('--seed <n>', 'the same seed makes the same writes', Number, 1)
  .option('--asynchronous', 'commits do not wait for the standby: a failover loses some', false)
  .option('--postgres <folder>', "the folder of Postgres' programs", '/usr/lib/postgresql/15/bin')
  .addHelpText('after', '\nExample:\n  npm run soak -- --minutes 10')
  .parse()
  .opts<{
    minutes: number;
    rate: number;
    reads: number;
    budget: number;
    lost: number;
    seed: number;
    asynchronous: boolean;
    postgres: string;
  }>();

const MINUTE = 60_000;
const OPERATORS_WALLET = 10n ** 15n;
const WALLETS = 200;
/** Shares of the run: until the first disturbance; between two kills; until the others. */
const [QUIET, KILL_EVERY, FAILOVER, MONTH] = [1 / 6, 1 / 12, 1 / 2, 2 / 3];
const DOWN_MS = 5_000;
const CHANGES = 5;
const DRAIN_MS = 4 * MINUTE;

const forMs = values.minutes * MINUTE;
const random = seededRandom(values.seed);
const wallets = Array.from({ length: WALLETS }, (_, n) => `0x50a${String(n).padStart(37, '0')}`);
const started = monotonicMs();
const say = (text: string) => printLine(`${clockText(monotonicMs() - started)}  ${text}`);

const servers = await openServers(values.postgres, !values.asynchronous);
const sandbox = await startSandbox({ ...CLIENT, seed: 1, clock: systemClock });
const receiver = await startReceiver();
const daemons: (DaemonProcess | undefined)[] = [];
const url = Object.assign(new URL(servers.url), { pathname: '/tallyhook' }).href;
const db = connect({ url, max: 2 });
try {
  process.exitCode = (await soak()) ? 0 : 1;
} catch (error) {
  printLine(daemons.map((daemon) => daemon?.output().slice(-4_000)).join('\n'));
  throw error;
} finally {
  await Promise.all(daemons.map((daemon) => daemon?.kill()));
  await Promise.all([db.end(), receiver.close(), sandbox.close()]);
  await servers.close();
}

async function soak(): Promise<boolean> {
  for (const addr of wallets) sandbox.control.setWallet(addr, { amt_token: OPERATORS_WALLET });
  await execute(servers.url, 'create database tallyhook');
  await start(0);
  await start(1);
  await subscribe();
  say(`${values.rate} writes/s and ${values.reads} reads/s for ${values.minutes} min`);

  const done = { applied: new Map<string, number>(), tokens: new Set<bigint>() };
  let effect = 0n;
  const harvest = () => {
    for (const { n, reason_type: name } of sandbox.control.effects(effect, 50_000)) {
      effect = n;
      if (name !== null) done.applied.set(name, (done.applied.get(name) ?? 0) + 1);
    }
  };
  const harvesting = setInterval(harvest, 1_000);
  const apps = () => daemons.flatMap((daemon) => (daemon ? [makeApp(() => daemon.url)] : []));
  const traffic = startTraffic({
    apps,
    sandbox,
    random,
    wallets,
    perS: values.rate,
    readsPerS: values.reads,
    lost: values.lost,
  });
  const { memory, month } = await disturb();
  await traffic.stop();
  say('no more writes; what is open ends');
  const ended = await until(async () => ((await isOpen(db)) ? undefined : true), {
    deadlineMs: DRAIN_MS,
  });
  clearInterval(harvesting);
  harvest();
  for (const { token_id: id, exists } of sandbox.world.tokens.values())
    if (exists) done.tokens.add(id);
  const isReceived = async () => (await undelivered(db, received())).length === 0 || undefined;
  await until(isReceived, { deadlineMs: MINUTE });

  const { writes, reads } = traffic;
  const outcomes = await outcomesOf(db, writes, done);
  const missing = await undelivered(db, received());
  const verified = await runCommand({ DATABASE_URL: url }, 'verify');
  const quiet = latencyOf(writes.filter(({ atMs }) => atMs < forMs * QUIET));
  const disturbed = latencyOf(writes.filter(({ atMs }) => atMs >= forMs * QUIET));
  const ratio = disturbed[1] / quiet[1];
  const repeated = writes.filter(({ tries }) => tries > 1).length;
  const answers = countsOf(writes.map(({ status }) => String(status)));
  const ms = (figures: readonly number[]) => figures.map((n) => n.toFixed(0)).join(' / ');
  printLine(`
writes                     ${writes.length}, ${repeated} of them repeated
final states               ${textOf(outcomes.states)}
answers                    ${textOf(answers)}
reads                      ${reads.sent}, ${reads.failed} not answered 200
latency, p50 / p95 / max   quiet ${ms(quiet)} ms, then ${ms(disturbed)} ms
  p95, to that of quiet    ${ratio.toFixed(2)} x
left to people             ${outcomes.undecided}
applied, not recorded      ${outcomes.unrecorded.length}
events not delivered       ${missing.length} of ${received().size}
ledger                     ${verified.code === 0 ? 'verified' : verified.text}
month: partitions          ${monthText(month)}
memory per daemon, MB      ${memory.join('  ')}
wrong                      ${outcomes.wrong.length}
${outcomes.wrong.slice(0, 20).join('\n')}`);
  const faults = faultsOf({
    ended,
    outcomes,
    missing,
    month,
    ratio,
    mayLose: values.asynchronous,
    isVerified: verified.code === 0,
  });
  printLine(faults.join('\n') || 'nothing lost, nothing doubled, p95 within 3 x of quiet');
  return faults.length === 0;
}

async function start(n: number): Promise<void> {
  daemons[n] = await spawnDaemon(environmentOf(url, sandbox.url), {
    http: { port: 0 },
    log: { level: 'warn' },
    upstream: { budget_per_s: values.budget, initial_rate_per_s: values.budget },
    reconciler: { quiescence_ms: 10_000, undecided_after_ms: 30_000 },
  });
}

async function subscribe(): Promise<void> {
  const { call } = makeApp(() => daemons[0]?.url ?? '');
  const body = { url: `${receiver.url}/hook`, event_types: ['operation.*'] };
  const made = await call('POST', '/api/endpoints', body);
  if (made.status !== 201) throw new Error(`the endpoint was answered ${made.text}`);
  const refs = wallets.map((addr) => ({ kind: 'wallet', addr }));
  const watched = await call('POST', '/api/watches', refs);
  if (watched.status !== 201) throw new Error(`the watches were answered ${watched.text}`);
}

function received(): Set<string> {
  return new Set(receiver.requests.map(({ headers }) => headers['webhook-id'] ?? ''));
}

/** Runs the plan of the disturbances to its end; `memory` is that of the daemons over time. */
async function disturb(): Promise<{ memory: string[]; month: Month }> {
  const memory: string[] = [];
  const from = monotonicMs();
  const over = () => monotonicMs() - from >= forMs;
  const at = (share: number) => pause(Math.max(0, from + share * forMs - monotonicMs()));
  const kills = async () => {
    for (let n = 0, share = QUIET; share < 1 - KILL_EVERY / 2; n++, share += KILL_EVERY) {
      await at(share);
      const victim = n % 2;
      const daemon = daemons[victim];
      daemons[victim] = undefined;
      await daemon?.kill();
      say(`daemon ${victim + 1} was killed`);
      await pause(DOWN_MS);
      await start(victim);
    }
  };
  const dumps = async () => {
    await at(QUIET);
    while (!over()) {
      // The one that runs during the failover ends with its server.
      await servers.dump(url).catch((error) => say(`a dump failed: ${lastLineOf(error)}`));
      await pause(DOWN_MS);
    }
  };
  const failover = async () => {
    // Between two kills.
    await at(FAILOVER + KILL_EVERY / 2);
    say('the primary dies, the standby is promoted');
    await servers.failOver();
    await pause(4 * DOWN_MS);
    const env = environmentOf(url, sandbox.url);
    const { code, text } = await runCommand(
      env,
      'doctor',
      '--restored',
      '--release',
      'the standby had every commit',
      '--send-queued',
    );
    say(`released what was queued: ${code} ${text.trim().split('\n').at(-1)}`);
  };
  const changes = async () => {
    for (let n = 0; n < CHANGES; n++) {
      await at((n + 0.5) / CHANGES);
      sandbox.control.setWallet(wallets[n] ?? '', { delta: BigInt(-100_000 - n) });
    }
  };
  const beginsMonth = async () => {
    await at(MONTH);
    say('a month begins');
    return beginMonth(db, systemClock.now(), over);
  };
  const measure = async () => {
    for (let n = 1; n <= 12; n++) {
      await at(n / 12);
      const sizes = await Promise.all(daemons.map((daemon) => residentMb(daemon?.child.pid)));
      memory.push(sizes.map((size) => size?.toFixed(0) ?? '-').join('+'));
    }
  };
  const others = [kills(), dumps(), failover(), changes(), measure(), at(1)];
  const [month] = await Promise.all([beginsMonth(), ...others]);
  return { memory, month };
}

/** The resident memory of a process. */
async function residentMb(pid: number | undefined): Promise<number | undefined> {
  if (pid === undefined) return undefined;
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const kb = /VmRSS:\s+(\d+)/.exec(status)?.[1];
  return kb === undefined ? undefined : Number(kb) / 1024;
}

function lastLineOf(error: Error & { stderr?: string }): string {
  return (error.stderr || error.message).trim().split('\n').at(-1) ?? '';
}

function countsOf(names: readonly string[]): Record<string, number> {
  return names.reduce<Record<string, number>>((counts, name) => {
    counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  }, {});
}

function textOf(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}

function clockText(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return `${String(Math.floor(seconds / 60)).padStart(3)}:${String(seconds % 60).padStart(2, '0')}`;
}
