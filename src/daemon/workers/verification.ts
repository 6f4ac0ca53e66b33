/**
 * The worker that verifies the hash chain of the ledger once in an interval. The head of the last
 * verification without findings is compared by the next; findings are announced each time, until
 * there are none.
 */
import { z } from 'zod';
import type { Db, Queryable } from '../../db/connect.ts';
import {
  acquireLease,
  type Daemon,
  findInstallationSetting,
  setInstallationSetting,
} from '../../db/leases.ts';
import { DAY_MS, type Instant } from '../../kernel/clock.ts';
import { jsonText, parseJson } from '../../kernel/json.ts';
import type { Wake } from '../../kernel/workers.ts';
import { parseAnchor, type Verdict, verifyLedger } from '../../ledger/ledger.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { keptHeads } from '../../reports/reports.ts';
import type { Worker } from './schedule.ts';

const SETTING = 'ledger_verification';
/** Longer than any verification; a daemon that dies loses the lease at once. */
const LEASE_MS = DAY_MS;
/** Findings in the event; all are printed by `tallyhook verify`. */
const LISTED_MAX = 10;

const lastVerification = z.object({
  endedAt: z.number().describe('Unix time in milliseconds'),
  findings: z.number(),
  transactions: z.string(),
  keptHead: z.string().nullable().describe('<head>:<batches> of the last one without findings'),
});
type LastVerification = z.infer<typeof lastVerification>;

/** The last verification that ended. */
export async function findVerification(db: Queryable): Promise<LastVerification | undefined> {
  const setting = await findInstallationSetting(db, SETTING);
  return setting && lastVerification.parse(parseJson(setting.value));
}

/** @param deps `intervalMs` 0: it never verifies */
export function verificationWorker(deps: {
  db: Db;
  daemon: Daemon;
  outbox: Outbox;
  intervalMs: number;
  wake: Wake;
}): Worker {
  const { db, daemon, outbox, intervalMs, wake } = deps;
  return {
    name: 'verification',
    intervalMs: 60_000,
    timeoutMs: LEASE_MS,
    pass: async (now, signal) => {
      if (intervalMs === 0) return undefined;
      const last = await findVerification(db);
      if (last && now - last.endedAt < intervalMs) return undefined;
      const fence = await acquireLease(db, 'verification', daemon, now, LEASE_MS);
      if (fence === undefined) return undefined;
      const verdict = await verify(db, last?.keptHead ?? null, signal);
      if (!verdict) return undefined;
      await db.begin(async (tx) => {
        const { ok, total: findings, transactions } = verdict;
        const keptHead = ok ? headOf(verdict) : (last?.keptHead ?? null);
        const kept: LastVerification = {
          endedAt: now,
          findings,
          transactions: `${transactions}`,
          keptHead,
        };
        await setInstallationSetting(tx, SETTING, jsonText(kept), now);
        if (!ok) await outbox.emit(tx, [failedEvent(verdict, now)]);
      });
      wake('sequencer', 'webhooks');
      return undefined;
    },
  };
}

/** Undefined when the signal aborted it. */
async function verify(
  db: Db,
  keptHead: string | null,
  signal: AbortSignal,
): Promise<Verdict | undefined> {
  const source = 'the last verification without findings';
  const before = keptHead === null ? undefined : parseAnchor(keptHead, source);
  const anchors = [...(await keptHeads(db)), ...(before ? [before] : [])];
  return verifyLedger(db, anchors, undefined, signal).catch((error: unknown) => {
    if (signal.aborted) return undefined;
    throw error;
  });
}

function failedEvent({ findings, total, transactions, ...chain }: Verdict, at: Instant) {
  return {
    type: 'ledger.verify_failed' as const,
    subject: 'ledger',
    occurredAt: at,
    data: {
      findings: total,
      listed: findings.slice(0, LISTED_MAX).map(({ kind, row, text }) => ({ kind, row, text })),
      transactions: transactions.toString(),
      chain_head: headOf(chain),
      command: 'npx tallyhook verify',
    },
  };
}

function headOf({ head, count }: Pick<Verdict, 'head' | 'count'>): string {
  return `${head}:${count}`;
}
