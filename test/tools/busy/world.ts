/**
 * What a load runs on: the sandbox behind a slow relay, and a daemon in a process of its own on a
 * new database.
 */

import { WRITER } from '../../../src/db/access/roles.ts';
import { connect, type Db } from '../../../src/db/connect.ts';
import { addressKey } from '../../../src/kernel/addresses.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import { type App, makeApp } from '../../harness/app.ts';
import { CLIENT, environmentOf, spawnDaemon } from '../../harness/daemon.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import { until } from '../../harness/until.ts';
import { type Scenario, type ScenarioName, scenarioOf } from './scenarios.ts';
import { openSlowRelay } from './slow-relay.ts';

export interface Plan {
  minutes: number;
  /** Writes per second; undefined for that of the scenario. */
  perS: number | undefined;
  /** The share of writes whose answer is lost. */
  lost: number;
  /** Reads of its wallets that apps make through the gateway per second. */
  readsPerS: number;
  seed: number;
  /** Polls per second; `auto` is the default configuration. */
  budgetPerS: number | 'auto';
  /** How many the scenario `gives` has. */
  wallets: number;
  /** Seconds in which a write that the service shows must settle, and a change be found. */
  withinS: number;
  /** Least and greatest delay of an exchange with the service; undefined for the scenario's own. */
  delayMs: readonly [number, number] | undefined;
  /** Reads show a write up to so many milliseconds late. */
  readLagMs: number;
  /** The load starts before the wallets are known. */
  cold: boolean;
  /** Almost no polls, to compare the latency of writes with. */
  pollsOff: boolean;
}

export interface World {
  plan: Plan;
  scenario: Scenario;
  sandbox: Sandbox;
  app: App;
  db: Db;
  /** What the daemon logged so far, warnings and errors only. */
  log(): string;
  close(): Promise<void>;
}

const SERVER_SEED = 1;
const PLENTY = 10n ** 18n;
const WATCHES_MAX = 500;
const OPENED_WITHIN_MS = 600_000;

/** Sooner than by default, so that lost answers end within the run. */
export const LIMITS = { writeTimeoutMs: 5_000, quiescenceMs: 10_000, undecidedAfterMs: 30_000 };

export async function openWorld(name: ScenarioName, plan: Plan, database: string): Promise<World> {
  const sandbox = await startSandbox({
    ...CLIENT,
    seed: SERVER_SEED,
    clock: systemClock,
    switches: { read_lag_ms: plan.readLagMs },
  });
  const { operators } = sandbox.control.state();
  const operator = operators.find(({ operation_no: no }) => no === 1n)?.addr ?? '';
  const scenario = scenarioOf(name, operator, plan.wallets);
  const wallets = [...scenario.busy, ...scenario.others];
  for (const addr of wallets) sandbox.control.setWallet(addr, { amt_token: PLENTY });
  const random = seededRandom(plan.seed + 1_000);
  const relay = await openSlowRelay(sandbox.port, plan.delayMs ?? scenario.delayMs, random);
  const daemon = await spawnDaemon(environmentOf(database, relay.url), settingsOf(plan, scenario));
  process.once('exit', () => daemon.child.kill('SIGKILL'));
  const db = connect({ url: database, role: WRITER, max: 2 });
  const varied = plan.readLagMs === 0 ? undefined : varyReadLag(sandbox, plan);
  const app = makeApp(() => daemon.url);
  const close = async () => {
    clearInterval(varied);
    await db.end();
    await daemon.stop();
    await relay.close();
    await sandbox.close();
  };
  try {
    if (!plan.cold && !plan.pollsOff) await watched(app, db, wallets);
  } catch (error) {
    await close();
    throw new Error(`${String(error)}\n${daemon.output()}`);
  }
  return { plan, scenario, sandbox, app, db, log: daemon.output, close };
}

/** Replicas of a service lag differently: a later read may show less than an earlier one. */
function varyReadLag({ control }: Sandbox, { readLagMs, seed }: Plan): NodeJS.Timeout {
  const random = seededRandom(seed + 2_000);
  const vary = () => control.setSwitches({ read_lag_ms: Math.round(random.unit() * readLagMs) });
  return setInterval(vary, 50);
}

/** What an operator sets whose service allows so many polls; all other polling is as delivered. */
function settingsOf({ budgetPerS, pollsOff }: Plan, { operators }: Scenario): object {
  return {
    http: { port: 0 },
    log: { level: 'warn' },
    upstream: {
      budget_per_s: pollsOff ? 0.01 : budgetPerS,
      write_timeout_ms: LIMITS.writeTimeoutMs,
    },
    gateway: pollsOff ? { first_poll_wait_ms: 0 } : {},
    reconciler: {
      quiescence_ms: LIMITS.quiescenceMs,
      undecided_after_ms: LIMITS.undecidedAfterMs,
    },
    ledger: { operators },
  };
}

/** Puts wallets under observation and waits until each has its opening. */
async function watched(app: App, db: Db, wallets: readonly string[]): Promise<void> {
  for (let n = 0; n < wallets.length; n += WATCHES_MAX) {
    const refs = wallets.slice(n, n + WATCHES_MAX).map((addr) => ({ kind: 'wallet', addr }));
    const { status, text } = await app.call('POST', '/api/watches', refs);
    if (status !== 201) throw new Error(`watches were answered ${status} ${text}`);
  }
  const keys = wallets.map(addressKey);
  const opened = await until(
    async () => {
      const rows = await db.sql<{ opened: number }[]>`
        select count(*)::int as opened from tallyhook.wallets
        where opened_at is not null and key = any(${keys}::text[])`;
      return rows[0]?.opened === keys.length ? true : undefined;
    },
    { deadlineMs: OPENED_WITHIN_MS },
  );
  if (!opened) throw new Error(`not every wallet was opened within ${OPENED_WITHIN_MS} ms`);
}
