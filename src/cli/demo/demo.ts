/**
 * The walk-through: a daemon with its own temporary data between an app and the service. Each step
 * says what it does, waits for what must be seen, and counts only if it was; the exit code is 0
 * when all held.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, loadConfig, startDaemon } from '../../daemon/daemon.ts';
import { monotonicMs, systemClock } from '../../kernel/clock.ts';
import { systemRandom } from '../../kernel/random.ts';
import { printLine } from '../../kernel/terminal.ts';
import { newSecret } from '../../keys/keys.ts';
import { startReceiver } from './receiver.ts';
import { type DemoOptions, openDemoService } from './service.ts';
import type { Stage } from './stage.ts';
import * as steps from './steps.ts';

/**
 * Faster than the defaults, so that a person does not wait; the budget stays the configured one.
 */
const QUICK = {
  http: { host: '127.0.0.1', port: 0 },
  observer: {
    steady_interval_ms: 3_000,
    pending_interval_min_ms: 300,
    pending_interval_max_ms: 2_000,
  },
  reconciler: { read_lag_ms: 300, quiescence_ms: 3_000, undecided_after_ms: 15_000 },
  upstream: { write_timeout_ms: 5_000 },
  log: { level: 'fatal' },
};

/** Runs the walk-through. Answers the exit code. */
export async function runDemo(options: DemoOptions): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-demo-'));
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const base = loadConfig(undefined, QUICK);
    const service = await openDemoService(base.service, options);
    undo.push(service.close);
    const receiver = await startReceiver();
    undo.push(receiver.close);
    const adminKey = newSecret(systemRandom);
    const config: Config = {
      ...base,
      dataDir: folder,
      databaseUrl: undefined,
      databaseOwnerUrl: undefined,
      service: service.address,
      adminKey,
      webhooks: { ...base.webhooks, allow_cidrs: ['127.0.0.0/8'] },
    };
    const daemon = await startDaemon(config);
    undo.push(daemon.stop);
    printLine(
      `Tallyhook runs at ${daemon.url}; the service is ${service.words}; data in ${folder}`,
    );
    return await walk({ service, receiver, daemon, adminKey, memory: {} });
  } finally {
    for (const step of undo.reverse()) await step().catch(() => {});
  }
}

async function walk(stage: Stage): Promise<number> {
  const startedAt = systemClock.now();
  let failed = 0;
  const step = async (title: string, work: () => Promise<string>) => {
    const began = monotonicMs();
    try {
      const words = await work();
      printLine(`  ok    ${title}: ${words} (${Math.round(monotonicMs() - began)} ms)`);
    } catch (error) {
      failed++;
      printLine(`  FAIL  ${title}: ${error instanceof Error ? error.message : 'unknown'}`);
    }
  };
  await step('an endpoint for webhooks', () => steps.subscribe(stage));
  await step('the wallets are observed', () => steps.observe(stage));
  await step('mint and settle', () => steps.mint(stage));
  await step('give', () => steps.give(stage));
  await step('transfer with a fee', () => steps.transfer(stage, 20));
  await step('a lost answer is called unknown', () => steps.loseAnswer(stage));
  await step('a wallet changed behind our back', () => steps.changeBehind(stage));
  await step('the lost answer ends by evidence or with people', () => steps.endOfLost(stage));
  await step('the report names exactly that', () => steps.report(stage, startedAt));
  await step('every webhook is genuine', () => steps.genuine(stage));
  printLine(failed === 0 ? 'Everything held.' : `${failed} of 10 steps did not hold.`);
  return failed === 0 ? 0 : 1;
}
