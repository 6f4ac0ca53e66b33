/**
 * What the difference means. One elected daemon judges looks in the order in which they started, one
 * transaction per look: the accepted state, drifts, wanted postings, endings of operations and their
 * events are one commit. Nothing is concluded from silence.
 */
import type { Db, Tx } from '../db/connect.ts';
import { type Daemon, holdFence, holdLease } from '../db/leases.ts';
import { type Journal, listInStates, NFT_KINDS, TOKEN_KINDS } from '../journal/journal.ts';
import type { Instant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { Books } from '../ledger/ledger.ts';
import { type LookToJudge, listUnjudged, markJudged, type Rhythm } from '../observer/observer.ts';
import type { EventDraft } from '../outbox/events.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { componentsOf, judgeComponent } from './lost-payments.ts';
import { giveToPeople } from './resolution.ts';
import { judgeToken } from './tokens.ts';
import { judgeWallet } from './wallets.ts';

export { countOpenDrifts, type Position, positionsOf } from './position-store.ts';
export { findToken, listTokens, type Token } from './store.ts';
export {
  type Drift,
  findDrift,
  findWallet,
  listDriftActions,
  listDrifts,
  listOpenDrifts,
  listWallets,
  type Wallet,
} from './wallet-store.ts';

export interface ReconcilerSettings extends Rhythm {
  /** L: how long a write may take to show in reads, in milliseconds. */
  readLagMs: number;
  /** How long after its send deadline a write may still be applied by the service. */
  quiescenceMs: number;
  /** How long after that an unexplained unknown outcome is given to people. */
  undecidedAfterMs: number;
}

/** What every judgement needs. */
export interface Context {
  ids: Ids;
  journal: Journal;
  books: Books;
  settings: ReconcilerSettings;
}

export interface Reconciler {
  /** One bounded pass. Answers how many looks were judged; 0 while another daemon is the judge. */
  runOnce(now: Instant): Promise<{ judged: number; more: boolean }>;
}

const LEASE = 'reconciler';
const LEASE_MS = 15_000;
const LOOKS_MAX = 50;
const UNKNOWN_MAX = 200;

/** The reconciler of one daemon. */
export function makeReconciler(
  given: Context & { db: Db; daemon: Daemon; outbox: Outbox },
): Reconciler {
  const { db, daemon, outbox } = given;

  /** Runs one judgement in one snapshot, fenced, with its events in the same commit. */
  async function judge(fence: bigint, work: (tx: Tx) => Promise<EventDraft[]>): Promise<void> {
    await db.begin(async (tx) => {
      await holdFence(tx, LEASE, fence);
      await outbox.emit(tx, await work(tx));
    }, 'snapshot');
  }

  const judgeLook = (fence: bigint, look: LookToJudge, now: Instant) =>
    judge(fence, async (tx) => {
      if (!(await markJudged(tx, look, now)) || look.result === 'inconclusive') return [];
      if (look.kind === 'token') return judgeToken(tx, given, look, now);
      return look.result === 'seen' ? judgeWallet(tx, given, look, now) : [];
    });

  async function judgeUnknown(fence: bigint, now: Instant): Promise<void> {
    const unknown = await listInStates(db, ['unknown'], UNKNOWN_MAX);
    const payments = unknown.filter((operation) => TOKEN_KINDS.includes(operation.kind));
    for (const component of componentsOf(payments, given)) {
      await judge(fence, (tx) => judgeComponent(tx, given, component, now));
    }
    const { quiescenceMs, undecidedAfterMs } = given.settings;
    for (const operation of unknown.filter((o) => !TOKEN_KINDS.includes(o.kind))) {
      const deadline = operation.sendDeadlineAt ?? operation.recordedAt;
      const waitMs = NFT_KINDS.includes(operation.kind) ? undecidedAfterMs : 0;
      if (now < deadline + quiescenceMs + waitMs) continue;
      const evidence = { explanations: 'no evidence within the time set' };
      await judge(fence, (tx) => giveToPeople(tx, given, operation, evidence, now));
    }
  }

  return {
    async runOnce(now) {
      const fence = await holdLease(db, LEASE, daemon, now, LEASE_MS);
      if (fence === undefined) return { judged: 0, more: false };
      try {
        const looks = await listUnjudged(db, LOOKS_MAX);
        for (const look of looks) await judgeLook(fence, look, now);
        await judgeUnknown(fence, now);
        return { judged: looks.length, more: looks.length === LOOKS_MAX };
      } catch (error) {
        if (error instanceof Failure && error.code === 'lease_lost')
          return { judged: 0, more: false };
        throw error;
      }
    },
  };
}
