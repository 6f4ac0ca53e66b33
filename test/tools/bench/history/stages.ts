/** One daemon's stages without a network, over a database with stored history, and their costs. */

import { WRITER } from '../../../../src/db/access/roles.ts';
import { connect } from '../../../../src/db/connect.ts';
import { addressKey } from '../../../../src/kernel/addresses.ts';
import { monotonicMs } from '../../../../src/kernel/clock.ts';
import type { Random } from '../../../../src/kernel/random.ts';
import { plannedAt, recordObservation } from '../../../../src/observer/observations.ts';
import { makePendingPolls } from '../../../../src/observer/schedule/pending.ts';
import { addTargets, toTarget } from '../../../../src/observer/targets.ts';
import { accountOfWallet, type EffectSettings } from '../../../../src/operations/operations.ts';
import { makeReconciler } from '../../../../src/reconciler/reconciler.ts';
import { balancesOf } from '../../../harness/books.ts';
import { manualClock } from '../../../harness/manual-clock.ts';
import { seededRandom } from '../../../harness/seeded-random.ts';
import { openStages } from '../../../harness/stages.ts';
import { writeOf } from '../../../ledger/builders.ts';
import { SETTINGS } from '../../../reconciler/builders.ts';
import { HISTORY_END, OPERATOR_ADDR, OPERATOR_NO, userAddr } from './generate.ts';

/** Milliseconds for each thing processed. */
export interface Costs {
  write: number;
  posting: number;
  /** An observation of a user's wallet. */
  user: number;
  /** The first observation of the operator's wallet after the writes, which settles them. */
  settling: number;
  /** Further observations of it. */
  operator: number;
}

const WRITES = 400;
const CALLERS = 32;
/** The users of the measured writes. */
const USERS = 100;
const OPERATOR_OBSERVATIONS = 20;
/** Beyond the read lag, so that an observation must include all writes before. */
const LATER_MS = 10_000;
/** What each wallet held before its first operation. */
const OPENING = 10n ** 12n;
const EFFECTS: EffectSettings = {
  feeMode: 'on_top',
  operators: new Map([[OPERATOR_NO.toString(), OPERATOR_ADDR]]),
};

export type HistoryStages = Awaited<ReturnType<typeof openHistoryStages>>;

/** @param url a database filled by `generateHistory` */
export async function openHistoryStages(url: string) {
  const db = connect({ url, role: WRITER, max: 8 });
  const clock = manualClock(HISTORY_END + 3_600_000);
  const random = seededRandom(1);
  const stages = await openStages(db, {
    clock,
    random,
    aliveMs: 1e12,
    settings: { effects: EFFECTS },
  });
  const { ids, daemon, outbox, operations, log } = stages;
  const pendingPolls = makePendingPolls({
    db,
    clock,
    settings: SETTINGS,
    pricing: async () => ({ price: 1 }),
  });
  const reconciler = makeReconciler({
    db,
    ids,
    random,
    log,
    daemon,
    outbox,
    operations,
    effectSettings: EFFECTS,
    settings: SETTINGS,
    pendingPolls,
  });
  const measured = { ...stages, random, clock, reconciler };
  return {
    /** One round; the first one also opens the wallets. */
    round: () => round(measured),
    close: () => db.end(),
  };
}

type Stages = Awaited<ReturnType<typeof openStages>> & {
  clock: ReturnType<typeof manualClock>;
  random: Random;
  reconciler: ReturnType<typeof makeReconciler>;
};

const MEASURED = Array.from({ length: USERS }, (_, n) => userAddr(n));

async function round(stages: Stages): Promise<Costs> {
  const { clock } = stages;
  const write = (await timed(() => writes(stages))) / WRITES;
  clock.advance(1_000);
  const posting = (await timed(() => post(stages))) / WRITES;
  clock.advance(LATER_MS);
  const user = await observed(stages, MEASURED);
  const settling = await observed(stages, [OPERATOR_ADDR]);
  await expectSettled(stages);
  // In the first round the observations ask for openings.
  await post(stages);
  let operator = 0;
  for (let n = 0; n < OPERATOR_OBSERVATIONS; n++) {
    clock.advance(2_000);
    operator += (await observed(stages, [OPERATOR_ADDR])) / OPERATOR_OBSERVATIONS;
  }
  return { write, posting, user, settling, operator };
}

/** Else the costs would leave out a part of the work. */
async function expectSettled({ db }: Stages): Promise<void> {
  const rows = await db.sql`
    select from tallyhook.operations where settled_at is null and state = 'accepted' limit 1`;
  if (rows.length > 0) throw new Error('the observations did not settle every write');
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = monotonicMs();
  await work();
  return monotonicMs() - began;
}

/** Records writes and their answers as the gateway does, several at a time. */
async function writes({ operations, clock, random }: Stages): Promise<void> {
  let left = WRITES;
  const caller = async () => {
    while (left-- > 0) {
      const toAddr = MEASURED[Math.floor(random.unit() * USERS)] ?? '';
      const amount = BigInt(1 + Math.floor(random.unit() * 1e9));
      const fields = { operationNo: OPERATOR_NO, toAddr, amount };
      const recorded = await operations.record(writeOf({ fields }));
      if (!('id' in recorded)) throw new Error('a write was not recorded');
      const txLogNo = 10n ** 12n + BigInt(Math.floor(random.unit() * 1e12));
      const outcome = { class: 'accepted', txAppNo: 101n, txLogNo } as const;
      const endedAt = clock.now();
      await operations.conclude({ operationId: recorded.id, outcome, answer: undefined, endedAt });
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

async function post({ ledger, clock }: Stages): Promise<void> {
  for (;;) {
    const { posted, quarantined, more } = await ledger.runOnce(clock.now());
    if (quarantined > 0) throw new Error('a posting was quarantined');
    if (posted === 0 && !more) return;
  }
}

/** Stores an observation of each wallet; answers the milliseconds to process one. */
async function observed(stages: Stages, addrs: readonly string[]): Promise<number> {
  const { db, ids, clock, reconciler } = stages;
  const names = addrs.map(accountOfWallet);
  const balances = await balancesOf(db, names);
  const opened = await db.sql<{ key: string }[]>`
    select key from tallyhook.wallets
    where key = any(${addrs.map(addressKey)}::text[]) and opened_at is not null`;
  const unopened = OPENING * BigInt(1 - Math.sign(opened.length));
  for (const addr of addrs) {
    const ref = { kind: 'wallet', addr } as const;
    await addTargets(db, [toTarget(ref)], clock.now());
    const balance = (balances.get(accountOfWallet(addr))?.balance ?? 0n) + unopened;
    const startedAt = clock.now();
    clock.advance(10);
    const row = { id: ids.next('obs'), target: `wallet:${addressKey(addr)}`, kind: 'wallet' };
    const times = { startedAt, endedAt: clock.now() };
    const seen = { result: 'seen', cause: null, record: { addr, balance, status: 1 } } as const;
    const plan = plannedAt(clock.now() + 1e9);
    await db.begin((tx) => recordObservation(tx, { ...row, ...times, ...seen }, plan));
  }
  let processed = 0;
  const took = await timed(async () => {
    for (let more = true; more; ) {
      const pass = await reconciler.runOnce(clock.now());
      processed += pass.processed;
      more = pass.more;
    }
  });
  if (processed !== addrs.length) throw new Error(`${processed} observations were processed`);
  return took / addrs.length;
}
