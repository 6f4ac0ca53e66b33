/**
 * Stores the results of finished sends in groups, one transaction each; while one group commits,
 * the next gathers. The same transaction updates the health of endpoints that fail, recover or are
 * ordered, and emits the events about it. A group that cannot be stored is retried until its leases
 * end; then its deliveries are sent again.
 */
import type { Db, Tx } from '../../db/connect.ts';
import { type Clock, type Instant, pause } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import type { Random } from '../../kernel/random.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { disabledEvent, exhaustedEvent, recoveredEvent } from '../endpoints/events.ts';
import { foldHealth, type Health, type HealthSignal } from '../endpoints/health.ts';
import { disableEndpoint } from '../endpoints/store.ts';
import type { WebhookSettings } from '../settings.ts';
import { type AttemptResult, evaluateAttempt } from './attempt-result.ts';
import { type AttemptResponse, NOT_PREPARED } from './http/attempt.ts';
import { type Job, planByIndex } from './queue-store.ts';
import * as store from './result-store.ts';

interface FinishedSend {
  job: Job;
  startedAt: Instant;
  endedAt: Instant;
  /** Undefined when the event has been pruned and nothing could be sent. */
  response: AttemptResponse | undefined;
}

interface EvaluatedSend extends FinishedSend {
  result: AttemptResult | undefined;
  update: store.DeliveryUpdate;
}

export interface ResultWriterDeps {
  db: Db;
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
  settings: WebhookSettings;
  emit: Outbox['emit'];
  /** Called when the next delivery of a subject may have become due. */
  wake: () => void;
}

const GROUP_MAX = 256;
const RETRY_AFTER_MS = 200;
/** How long an endpoint rests whose request could not be built. */
const NOT_PREPARED_PAUSE_MS = 60_000;
/** The last success of a healthy endpoint is updated only when it is older than this. */
const SUCCESS_STALE_MS = 10_000;

export class ResultWriter {
  private readonly deps: ResultWriterDeps;
  private finished: FinishedSend[] = [];
  private released: Job[] = [];
  private running: Promise<void> | undefined;

  constructor(deps: ResultWriterDeps) {
    this.deps = deps;
  }

  add(send: FinishedSend): void {
    this.finished.push(send);
    this.run();
  }

  release(jobs: readonly Job[]): void {
    this.released.push(...jobs);
    this.run();
  }

  /** Resolves when everything queued so far is stored or given up. */
  async flush(): Promise<void> {
    while (this.running) await this.running;
  }

  private get isEmpty(): boolean {
    return this.finished.length + this.released.length === 0;
  }

  private run(): void {
    this.running ??= this.storeAll().finally(() => {
      this.running = undefined;
      // Covers what was queued after the last check inside `storeAll`.
      if (!this.isEmpty) this.run();
    });
  }

  private async storeAll(): Promise<void> {
    // One microtask later, so that simultaneous responses share a group.
    await Promise.resolve();
    while (!this.isEmpty) {
      const finished = this.finished.splice(0, GROUP_MAX);
      const released = this.released.splice(0, GROUP_MAX);
      try {
        if (released.length > 0) await this.storeReleased(released);
        released.length = 0;
        if (finished.length > 0) await this.storeFinished(finished);
      } catch (err) {
        this.deps.log.warn(
          { err, attempts: finished.length },
          'webhook results not stored, retrying',
        );
        const now = this.deps.clock.now();
        this.finished.unshift(...finished.filter(({ job }) => job.leaseUntil > now));
        this.released.unshift(...released.filter((job) => job.leaseUntil > now));
        await pause(RETRY_AFTER_MS);
      }
    }
  }

  private async storeReleased(jobs: readonly Job[]): Promise<void> {
    await this.deps.db.begin(async (tx) => {
      await planByIndex(tx);
      await store.release(tx, jobs.map(claimOf));
    });
  }

  private async storeFinished(finished: readonly FinishedSend[]): Promise<void> {
    const { db, clock, metrics, wake } = this.deps;
    const now = clock.now();
    const sends = finished.map((send) => this.evaluate(send));
    const isPlain = sends.every((send) => isPlainSuccess(send, now));
    await db.begin(async (tx) => {
      await planByIndex(tx);
      if (isPlain) await store.storeResults(tx, updatesOf(sends), now);
      else await this.storeWithHealth(tx, sends, now);
    });
    if (sends.some(({ job }) => job.endpoint.ordered)) wake();
    for (const { result, job, endedAt } of sends) {
      if (result) metrics.attempts.inc({ result: result.kind });
      if (result?.kind === 'delivered')
        metrics.deliverySeconds.observe((endedAt - job.delivery.createdAt) / 1000);
    }
  }

  private evaluate(send: FinishedSend): EvaluatedSend {
    const { job, response, startedAt, endedAt } = send;
    const { settings, random } = this.deps;
    const { delivery, endpoint } = job;
    const claim = claimOf(job);
    if (!response || response.error === NOT_PREPARED) {
      const { scheduleStep } = delivery;
      const state = response ? 'pending' : 'cancelled';
      const rest = { attempt: null, dueAt: null, scheduleStep, outOfOrder: false };
      return { ...send, result: undefined, update: { ...claim, state, ...rest } };
    }
    // A delivery that was held has its whole time from when its endpoint was enabled.
    const queuedAt = Math.max(delivery.queuedAt, endpoint.enabledAt);
    const queued = { ...delivery, queuedAt };
    const result = evaluateAttempt(response, queued, settings.retry, endedAt, random);
    const { kind, dueAt, scheduleStep } = result;
    const attempt = {
      n: delivery.attempts + 1,
      at: startedAt,
      durationMs: response.durationMs,
      result: kind,
      status: response.status,
      error: response.error,
      responseBody: response.body,
      responseHeaders: response.headers,
    };
    const state = kind === 'retry' || kind === 'gone' ? 'pending' : kind;
    const outOfOrder =
      endpoint.ordered && dueAt !== null && dueAt - endedAt > settings.orderedWaitMaxMs;
    return {
      ...send,
      result,
      update: { ...claim, attempt, state, dueAt, scheduleStep, outOfOrder },
    };
  }

  private async storeWithHealth(
    tx: Tx,
    sends: readonly EvaluatedSend[],
    now: Instant,
  ): Promise<void> {
    const { settings, random, emit } = this.deps;
    const ids = [...new Set(sends.map(({ job }) => job.delivery.endpointId))];
    const endpoints = await store.lockHealth(tx, ids);
    const changed = await store.storeResults(tx, updatesOf(sends), now);
    const drafts: EventDraft[] = [];
    const saved = new Map<string, Health>();
    for (const [endpointId, before] of endpoints) {
      const source = { endpointId, url: before.url };
      const own = sends.filter(({ job }) => job.delivery.endpointId === endpointId);
      const signals = own.flatMap(signalOf);
      const { health, change } = foldHealth(before, signals, settings.health, random);
      saved.set(endpointId, health);
      if (change === 'recovered') drafts.push(recoveredEvent(source, now));
      else if (change && (await disableEndpoint(tx.orm, endpointId, change, now)))
        drafts.push(disabledEvent(source, change, now));
      const exhausted = own.filter(({ update: { state, id } }) => {
        return state === 'exhausted' && changed.has(id);
      });
      drafts.push(...exhausted.flatMap(({ job }) => exhaustedDraftOf(job, now)));
    }
    await store.saveHealth(tx, saved);
    const unblocking = sends.filter(({ job, update: { id, state, outOfOrder } }) => {
      return job.endpoint.ordered && changed.has(id) && (state !== 'pending' || outOfOrder);
    });
    const blockers = unblocking.map(({ job }) => job.delivery);
    await store.makeNextDue(tx, blockers, now);
    await emit(tx, drafts);
  }
}

/** True when storing the result needs neither the endpoint's health nor its ordering. */
function isPlainSuccess({ result, job: { endpoint } }: EvaluatedSend, now: Instant): boolean {
  return (
    result?.kind === 'delivered' &&
    !endpoint.ordered &&
    endpoint.consecutiveFailures === 0 &&
    now - (endpoint.lastSuccessAt ?? 0) < SUCCESS_STALE_MS
  );
}

function updatesOf(sends: readonly EvaluatedSend[]): store.DeliveryUpdate[] {
  return sends.map(({ update }) => update);
}

function signalOf({ result, response, startedAt, endedAt }: EvaluatedSend): HealthSignal[] {
  if (response?.error === NOT_PREPARED) {
    const pausedUntil = endedAt + NOT_PREPARED_PAUSE_MS;
    return [{ startedAt, endedAt, result: 'not_sent', pausedUntil }];
  }
  // An attempt that the daemon itself interrupted is no evidence about the endpoint.
  if (!result || response?.error === 'interrupted') return [];
  const { kind, pausedUntil } = result;
  const health = kind === 'delivered' || kind === 'gone' ? kind : 'failed';
  return [{ startedAt, endedAt, result: health, pausedUntil }];
}

/** With the URL at the time of the claim. */
function exhaustedDraftOf({ delivery, endpoint }: Job, now: Instant): EventDraft[] {
  const attempts = delivery.attempts + 1;
  return exhaustedEvent(endpoint, { ...delivery, attempts }, 'attempts_exhausted', now);
}

function claimOf({ delivery: { id, createdAt, fence } }: Job) {
  return { id, createdAt, fence };
}
