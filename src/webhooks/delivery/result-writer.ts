/**
 * What finished sends make of deliveries and endpoints. Answers are collected and settled in
 * groups, one transaction each: while one group commits, the next one gathers. Where an endpoint
 * fails, heals or wants order, the same transaction judges its health and emits the events of it. A
 * group that cannot be written is tried again until its leases end; then its deliveries repeat.
 */
import type { Db, Tx } from '../../db/connect.ts';
import { type Clock, type Instant, pause } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import type { Random } from '../../kernel/random.ts';
import type { EventDraft, OutboxEvent } from '../../outbox/events.ts';
import { disabledEvent, exhaustedEvent, recoveredEvent } from '../endpoints/events.ts';
import type { WebhookSettings } from '../settings.ts';
import type { Sent } from './attempt.ts';
import { foldHealth, type Health, type Sign } from './health.ts';
import { planByIndex } from './plan-store.ts';
import * as store from './result-store.ts';
import type { Job } from './sender.ts';
import { judge, type Verdict } from './verdict.ts';

/** Records events in the given transaction. */
export type Emit = (tx: Tx, drafts: readonly EventDraft[]) => Promise<OutboxEvent[]>;

/** A finished send. */
export interface Outcome {
  job: Job;
  startedAt: Instant;
  endedAt: Instant;
  /** Undefined when there was nothing left to send. */
  sent: Sent | undefined;
}

interface Judged extends Outcome {
  /** Undefined when there was nothing left to send. */
  verdict: Verdict | undefined;
  settlement: store.Settlement;
}

export interface ResultWriterDeps {
  db: Db;
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
  settings: WebhookSettings;
  emit: Emit;
  /** Called when the next of some subject may go. */
  woken: () => void;
}

const GROUP_MAX = 256;
const AGAIN_AFTER_MS = 200;
/** How stale the last success of a healthy endpoint may be shown. */
const SUCCESS_STALE_MS = 10_000;

export class ResultWriter {
  private readonly given: ResultWriterDeps;
  private outcomes: Outcome[] = [];
  private unsent: Job[] = [];
  private running: Promise<void> | undefined;

  constructor(given: ResultWriterDeps) {
    this.given = given;
  }

  /** Queues a finished send; its group is settled in the background. */
  add(outcome: Outcome): void {
    this.outcomes.push(outcome);
    this.run();
  }

  /** Queues claims that go back unsent. */
  release(jobs: readonly Job[]): void {
    this.unsent.push(...jobs);
    this.run();
  }

  get pending(): number {
    return this.outcomes.length + this.unsent.length + (this.running ? 1 : 0);
  }

  /** Resolves when everything queued so far is settled or given up. */
  async settled(): Promise<void> {
    while (this.running) await this.running;
  }

  private run(): void {
    this.running ??= this.drainQueue().finally(() => {
      this.running = undefined;
      // What was queued after the last look at the queue starts a run of its own.
      if (this.outcomes.length + this.unsent.length > 0) this.run();
    });
  }

  private async drainQueue(): Promise<void> {
    // One turn later, so that answers of the same moment share a group.
    await Promise.resolve();
    while (this.outcomes.length + this.unsent.length > 0) {
      const outcomes = this.outcomes.splice(0, GROUP_MAX);
      const unsent = this.unsent.splice(0, GROUP_MAX);
      try {
        if (unsent.length > 0) await this.releaseGroup(unsent);
        unsent.length = 0;
        if (outcomes.length > 0) await this.settleGroup(outcomes);
      } catch (err) {
        this.given.log.warn({ err, attempts: outcomes.length }, 'webhook attempts not settled yet');
        const now = this.given.clock.now();
        this.outcomes.unshift(...outcomes.filter(({ job }) => job.leaseUntil > now));
        this.unsent.unshift(...unsent.filter((job) => job.leaseUntil > now));
        await pause(AGAIN_AFTER_MS);
      }
    }
  }

  private async releaseGroup(jobs: readonly Job[]): Promise<void> {
    await this.given.db.begin(async (tx) => {
      await planByIndex(tx);
      await store.release(tx, jobs.map(claimOf));
    });
  }

  private async settleGroup(outcomes: readonly Outcome[]): Promise<void> {
    const { db, clock, metrics } = this.given;
    const now = clock.now();
    const judged = outcomes.map((outcome) => this.judged(outcome));
    const settlements = judged.map(({ settlement }) => settlement);
    const plain = judged.every((j) => isPlain(j, now));
    await db.begin(async (tx) => {
      await planByIndex(tx);
      if (plain) await store.settle(tx, settlements, now);
      else await this.settleAndJudge(tx, judged, now);
    });
    if (judged.some(({ job }) => job.endpoint.ordered)) this.given.woken();
    for (const { verdict, job, endedAt } of judged) {
      if (verdict) metrics.attempts.inc({ verdict: verdict.verdict });
      if (verdict?.verdict === 'delivered')
        metrics.deliverySeconds.observe((endedAt - job.claimed.createdAt) / 1000);
    }
  }

  private judged(outcome: Outcome): Judged {
    const { job, sent, startedAt, endedAt } = outcome;
    const { settings, random } = this.given;
    const { claimed, endpoint } = job;
    const verdict = sent && judge(sent, claimed, settings.retry, endedAt, random);
    const dueAt = verdict && 'dueAt' in verdict ? verdict.dueAt : null;
    const attempt = sent &&
      verdict && {
        n: claimed.attempts + 1,
        at: startedAt,
        durationMs: sent.durationMs,
        verdict: verdict.verdict,
        status: sent.status,
        error: sent.error,
        responseBody: sent.body,
        responseHeaders: sent.headers,
      };
    const settlement: store.Settlement = {
      ...claimOf(job),
      attempt: attempt ?? null,
      state: stateAfter(verdict),
      dueAt,
      tries: verdict?.tries ?? claimed.tries,
      passed: endpoint.ordered && dueAt !== null && dueAt - endedAt > settings.orderedWaitMaxMs,
    };
    return { ...outcome, verdict, settlement };
  }

  private async settleAndJudge(tx: Tx, judged: readonly Judged[], now: Instant): Promise<void> {
    const ids = [...new Set(judged.map(({ job }) => job.claimed.endpointId))];
    const healths = await store.lockHealth(tx, ids);
    const changed = await store.settle(
      tx,
      judged.map(({ settlement }) => settlement),
      now,
    );
    const drafts: EventDraft[] = [];
    const saved = new Map<string, Health>();
    for (const [endpointId, before] of healths) {
      const mine = judged.filter(({ job }) => job.claimed.endpointId === endpointId);
      const { health, change } = foldHealth(
        before,
        mine.flatMap(signOf),
        this.given.settings.health,
        this.given.random,
      );
      saved.set(endpointId, health);
      if (change === 'recovered') drafts.push(recoveredEvent(endpointId, before.url, now));
      else if (change && (await store.disableEndpoint(tx, endpointId, change, now)))
        drafts.push(disabledEvent(endpointId, before.url, change, now));
      drafts.push(
        ...mine.filter((j) => isEndOfTries(j, changed)).flatMap((j) => exhaustedEvent(j.job, now)),
      );
    }
    await store.saveHealth(tx, saved);
    const ended = judged.filter(
      ({ job, settlement: s }) =>
        job.endpoint.ordered && changed.has(s.id) && (s.state !== 'pending' || s.passed),
    );
    await store.wakeFollowers(
      tx,
      ended.map(({ job }) => job.claimed),
      now,
    );
    await this.given.emit(tx, drafts);
  }
}

/** True when settling needs neither the endpoint's health nor its order. */
function isPlain({ verdict, job }: Judged, now: Instant): boolean {
  const { endpoint } = job;
  return (
    verdict?.verdict === 'delivered' &&
    !endpoint.ordered &&
    endpoint.consecutiveFailures === 0 &&
    now - (endpoint.lastSuccessAt ?? 0) < SUCCESS_STALE_MS
  );
}

function isEndOfTries({ settlement }: Judged, changed: ReadonlySet<string>): boolean {
  return settlement.state === 'exhausted' && changed.has(settlement.id);
}

function stateAfter(verdict: Verdict | undefined): store.Settlement['state'] {
  if (!verdict) return 'cancelled';
  return verdict.verdict === 'retry' || verdict.verdict === 'gone' ? 'pending' : verdict.verdict;
}

function signOf({ verdict, sent, startedAt, endedAt }: Judged): Sign[] {
  // An attempt that we broke off ourselves says nothing about the endpoint.
  if (!verdict || sent?.error === 'interrupted') return [];
  const { verdict: word } = verdict;
  const result = word === 'delivered' || word === 'gone' ? word : 'failed';
  return [
    { startedAt, endedAt, result, holdUntil: 'holdUntil' in verdict ? verdict.holdUntil : null },
  ];
}

function claimOf({ claimed }: Job) {
  return { id: claimed.id, createdAt: claimed.createdAt, fence: claimed.fence };
}
