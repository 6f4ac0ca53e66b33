/**
 * `tallyhook demo`: runs a daemon with temporary data and walks through its features. Each step
 * waits for its effect and fails if it does not appear; the exit code is 0 if every step succeeds.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Config, loadConfig, startDaemon } from '../../daemon/daemon.ts';
import { monotonicMs, systemClock } from '../../kernel/clock.ts';
import { printLine } from '../../kernel/log.ts';
import { systemRandom } from '../../kernel/random.ts';
import { newSecret } from '../../keys/keys.ts';
import { startReceiver } from './receiver.ts';
import { type DemoOptions, openDemoService } from './service.ts';
import * as steps from './steps.ts';
import type { Walk } from './walk.ts';

/** Shorter intervals than the defaults; the budget stays the configured one. */
const DEMO_SETTINGS = {
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

/** Returns the exit code. */
export async function runDemo(options: DemoOptions): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-demo-'));
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const base = loadConfig(undefined, DEMO_SETTINGS);
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
      databaseReadUrl: undefined,
      service: service.address,
      adminKey,
      webhooks: { ...base.webhooks, allow_cidrs: ['127.0.0.0/8'] },
    };
    const daemon = await startDaemon(config);
    undo.push(daemon.stop);
    printLine(
      `Tallyhook runs at ${daemon.url}; the service is ${service.description}; data in ${folder}`,
    );
    return await runSteps({ service, receiver, daemon, adminKey, memory: {} });
  } finally {
    for (const step of undo.reverse()) await step().catch(() => {});
  }
}

async function runSteps(walk: Walk): Promise<number> {
  const startedAt = systemClock.now();
  let failed = 0;
  const step = async (title: string, work: () => Promise<string>) => {
    const began = monotonicMs();
    try {
      const description = await work();
      printLine(`  ok    ${title}: ${description} (${Math.round(monotonicMs() - began)} ms)`);
    } catch (error) {
      failed++;
      printLine(`  FAIL  ${title}: ${error instanceof Error ? error.message : 'unknown'}`);
    }
  };
  await step('create a webhook endpoint', () => steps.subscribe(walk));
  await step('watch the wallets', () => steps.observe(walk));
  await step('mint and settle', () => steps.mint(walk));
  await step('give', () => steps.give(walk));
  await step('transfer with a fee', () => steps.transfer(walk, 20));
  await step('a lost answer makes a write unknown', () => steps.loseAnswer(walk));
  await step('a change outside the daemon opens a drift', () => steps.changeOutside(walk));
  await step('evidence resolves the unknown write, or people must', () => steps.resolveLost(walk));
  await step('the report lists exactly these differences', () => steps.report(walk, startedAt));
  await step('every webhook signature is valid', () => steps.verifyWebhooks(walk));
  printLine(failed === 0 ? 'Every step succeeded.' : `${failed} of 10 steps failed.`);
  return failed === 0 ? 0 : 1;
}
