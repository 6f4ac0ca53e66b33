/** The world of a simulated story: the real service, and every stage of a daemon before it. */
import type { Db } from '../../src/db/connect.ts';
import { enrolDaemon } from '../../src/db/leases.ts';
import { makeJournal } from '../../src/journal/journal.ts';
import { seededChance } from '../../src/kernel/chance.ts';
import { makeIds } from '../../src/kernel/ids.ts';
import { makeMetrics } from '../../src/kernel/metrics.ts';
import type { Books } from '../../src/ledger/ledger.ts';
import { makeObserver } from '../../src/observer/observer.ts';
import { makeOutbox } from '../../src/outbox/outbox.ts';
import { makeReconciler } from '../../src/reconciler/reconciler.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { openLedger, START } from '../ledger/fixture.ts';
import { upstreamTo } from '../upstream/scripted-service.ts';
import { SETTINGS } from './house.ts';

export interface Plan {
  seed: number;
  steps: number;
  /** Whether the wallets of operators and fees can be read. */
  mapped: boolean;
  wallets: number;
  /** How many writes fare well for every twelve that do not. */
  unharmed: number;
  /** The largest amount of a payment. */
  amountMax: number;
}

export type World = Awaited<ReturnType<typeof buildWorld>>;

export const DAY_MS = 86_400_000;

/** The service, its users' wallets, and every stage of a daemon before it. */
export async function buildWorld(db: Db, plan: Plan) {
  const { seed, mapped, wallets, amountMax, unharmed } = plan;
  const clock = manualClock(START + seed * 90 * DAY_MS);
  const chance = seededChance(seed);
  const sandbox = await startSandbox({
    ...{ seed, clock, clientId: 'client', clientSecret: 'hush-hush' },
    switches: { read_lag_ms: 800, fail_share: 0.15, settle_median_ms: 3_000 },
  });
  const { control } = sandbox;
  const users = Array.from(
    { length: wallets },
    (_, i) => `0x${seed}E${String(i).padStart(40 - String(seed).length - 1, '0')}`,
  );
  for (const addr of users) control.setWallet(addr, { amt_token: 5_000n });
  const books = booksOf(sandbox, mapped);
  const { upstream } = await upstreamTo(sandbox.url, clock);
  const ids = makeIds(clock, chance);
  const outbox = makeOutbox({ clock, ids, fanOut: async () => {} });
  const daemon = await enrolDaemon(db, `dmn_sim_${seed}`, clock.now(), 1e13);
  const journal = makeJournal({ db, clock, ids, daemon, outbox });
  const ledger = await openLedger({ db, clock, books, daemonId: `dmn_sim_${seed}_ledger` });
  const observer = makeObserver({
    ...{ db, clock, chance, ids, upstream, outbox, metrics: makeMetrics() },
    settings: {
      ...SETTINGS,
      steadyShare: 1,
      probeMs: 5_000,
      probeDownMs: 2_000,
      lookTimeoutMs: 5_000,
    },
  });
  const reconciler = makeReconciler({
    db,
    daemon,
    ids,
    journal,
    books,
    outbox,
    settings: SETTINGS,
  });
  // Some are watched from the start; the others are met when a write names them.
  const watched = users.filter((_, i) => i % 4 !== 3);
  await observer.add(
    db,
    watched.map((addr) => ({ kind: 'wallet', addr })),
  );
  clock.advance(10_000);
  return {
    amountMax,
    unharmed,
    db,
    clock,
    chance,
    sandbox,
    users,
    books,
    upstream,
    journal,
    ledger,
    observer,
    reconciler,
  };
}

/** Books whose operators, fees and collection live in wallets that can be read, or in none. */
function booksOf({ control }: Sandbox, mapped: boolean): Books {
  if (!mapped) return { feeMode: 'on_top', operators: new Map() };
  const operators = new Map(
    control.state().operators.map((o) => [o.operation_no.toString(), o.addr]),
  );
  return {
    feeMode: 'on_top',
    operators,
    feesAddr: operators.get('0'),
    collectionAddr: operators.get('1'),
  };
}
