/** Polls targets and records what they show. */
import type { Db } from '../db/connect.ts';
import { type Clock, type Instant, pause } from '../kernel/clock.ts';
import { must } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { Metrics } from '../kernel/metrics.ts';
import type { Random } from '../kernel/random.ts';
import { backoffMs } from '../kernel/retry.ts';
import type { Observation, TokenRecord, Upstream, WalletRecord } from '../upstream/upstream.ts';
import * as observations from './observations-store.ts';
import { scanPages } from './scans/scans.ts';
import { type PollIntervals, steadyIntervalMs, withJitter } from './schedule.ts';
import * as store from './targets-store.ts';

export interface ObserverSettings extends PollIntervals {
  /** The share of the budget reserved for steady polls; 0 to 1. */
  steadyShare: number;
  /** The interval between probes, normally and while the service is down. */
  probeMs: number;
  probeDownMs: number;
  /** A claimed target has a lease of twice that. */
  pollTimeoutMs: number;
}

export interface PollDeps {
  db: Db;
  clock: Clock;
  random: Random;
  ids: Ids;
  upstream: Upstream;
  metrics: Metrics;
  settings: ObserverSettings;
  targetCount: () => Promise<number>;
}
export type TargetObservation = Observation<WalletRecord> | Observation<TokenRecord>;

/** Targets claimed at once, and how long a pass goes on claiming. */
const CLAIM_MAX = 16;
const REFILL_MS = 500;
const FAILURE_CAP_MS = 300_000;
type Claim = (now: Instant) => Promise<store.DueTarget[]>;

/** Claims as many due targets as the budget has free; steady ones first in their share. */
export function claimsOf({ db, upstream, settings }: PollDeps): Claim {
  let credit = 0;
  return (now) => {
    const free = Math.min(CLAIM_MAX, upstream.budget.free());
    if (free <= 0) return Promise.resolve([]);
    credit += settings.steadyShare;
    const steadyFirst = credit >= 1;
    if (steadyFirst) credit -= 1;
    const leaseMs = settings.pollTimeoutMs * 2;
    return store.claimDue(db, now, free, { leaseMs, steadyFirst });
  };
}

/**
 * Polls due targets as fast as the budget allows. Returns how many, and the causes of those without
 * a result. @throws the first error, when all polls have ended
 */
export async function pollDue(
  deps: PollDeps,
  claim: Claim,
  now: Instant,
  signal: AbortSignal | undefined,
) {
  const { clock } = deps;
  const causes = new Set<string | null>();
  const errors: unknown[] = [];
  const open = new Set<Promise<unknown>>();
  const until = clock.now() + REFILL_MS;
  let count = 0;
  do {
    const at = Math.max(now, clock.now());
    const stopped = signal?.aborted || at > until || causes.has('maintenance') || errors.length > 0;
    const due = stopped ? [] : await claim(at);
    count += due.length;
    for (const target of due) {
      const ended: Promise<unknown> = poll(deps, target, signal)
        .then((cause) => causes.add(cause))
        .catch((error: unknown) => errors.push(error))
        .finally(() => open.delete(ended));
      open.add(ended);
    }
    // The next token of the budget, or the end of a poll, makes room.
    const nextMs = due.length > 0 ? deps.upstream.budget.nextAt() - clock.now() : REFILL_MS;
    if (open.size > 0) await Promise.race([...open, pause(Math.max(1, nextMs))]);
  } while (open.size > 0);
  if (errors.length > 0) throw errors[0];
  return { count, causes };
}

/** A finished scan is repeated when it is requested, or after this time. */
const SCAN_INTERVAL_MS = 86_400_000;

/** Returns the cause if the scan ended without a result. */
async function runScan(
  deps: PollDeps,
  target: store.DueTarget,
  stop: AbortSignal | undefined,
): Promise<string | null> {
  const { db, ids, metrics, settings, random } = deps;
  const { pollTimeoutMs } = settings;
  const pass = await scanPages({ ...deps, pollTimeoutMs, stop }, target);
  if (!pass.ended || !pass.observation) return null;
  const { observation } = pass;
  metrics.polls.inc({ kind: 'scan', result: observation.result });
  const gap =
    observation.result === 'seen'
      ? SCAN_INTERVAL_MS
      : backoffMs(target.failures, settings.pendingMinMs, FAILURE_CAP_MS, random);
  const row = { ...observation, id: ids.next('obs') };
  await db.begin((tx) => observations.recordObservation(tx, row, observation.endedAt + gap));
  return observation.cause;
}

/** Polls one target and records the observation; returns the cause if it is inconclusive. */
async function poll(
  deps: PollDeps,
  target: store.DueTarget,
  stop: AbortSignal | undefined,
): Promise<string | null> {
  if (target.kind === 'scan') return runScan(deps, target, stop);
  const { upstream, settings } = deps;
  const signal = AbortSignal.timeout(settings.pollTimeoutMs);
  const { contractId: contract, tokenId: token, addr } = target;
  const seen =
    target.kind === 'wallet'
      ? await upstream.account(must(addr, 'address'), 'pending', signal)
      : await upstream.token(must(contract, 'contract'), must(token, 'token'), 'pending', signal);
  await recordPoll(deps, target, seen);
  return seen.result === 'inconclusive' ? seen.cause : null;
}

/** Records a poll, or a passive observation, and schedules the next poll of its target. */
export async function recordPoll(
  deps: PollDeps,
  target: { name: string; kind: string; failures: number },
  observation: TargetObservation,
): Promise<void> {
  const { db, ids, metrics } = deps;
  const row = observationRow(ids.next('obs'), target.name, target.kind, observation);
  metrics.polls.inc({ kind: target.kind, result: observation.result });
  const nextAt = await nextPollAt(deps, observation, target.failures);
  await db.begin((tx) => observations.recordObservation(tx, row, nextAt));
}

async function nextPollAt(
  deps: PollDeps,
  observation: TargetObservation,
  failures: number,
): Promise<Instant> {
  const { settings, random } = deps;
  if (observation.result === 'inconclusive') {
    const backoff = backoffMs(failures, settings.pendingMinMs, FAILURE_CAP_MS, random);
    return Math.max(observation.endedAt + backoff, observation.retryAt ?? 0);
  }
  return observation.startedAt + withJitter(await observationAgeMaxMs(deps), random);
}

/** The longest interval between polls of a steady target at the present budget. */
export async function observationAgeMaxMs({
  targetCount,
  upstream,
  settings,
}: PollDeps): Promise<number> {
  const targets = await targetCount();
  const steadyPerS = upstream.budget.ratePerS() * settings.steadyShare;
  return steadyIntervalMs(settings, targets, steadyPerS);
}

function observationRow(
  id: string,
  target: string,
  kind: string,
  observation: TargetObservation,
): observations.ObservationRow {
  const { startedAt, endedAt, result } = observation;
  const record = result === 'seen' ? { ...observation.record } : null;
  const cause =
    result === 'inconclusive'
      ? observation.cause
      : result === 'absent'
        ? observation.message
        : null;
  return { id, target, kind, startedAt, endedAt, result, cause, record };
}
