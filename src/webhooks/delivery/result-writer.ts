/**
 * Stores the results of finished sends in groups; while one group commits, the next gathers. A
 * group of plain successes is one statement (`store_results` of
 * ../../../drizzle/definitions/deliveries.sql). The transaction of any other group also updates the
 * health of endpoints that fail, recover or are ordered, and emits the events about it. A group
 * that cannot be stored is retried until its leases end; then its deliveries are sent again.
 *
 * Attempts are always logged; a delivery changes only for the holder of its latest claim (fencing
 * token).
 */
import { asJson, type Db, type Queryable, type Tx } from '../../db/connect.ts';
import { isOutage, logOutage } from '../../db/sqlstate.ts';
import { type Clock, type Instant, isoText, isoTextOrNull, pause } from '../../kernel/clock.ts';
import { idTime, uuidOf } from '../../kernel/ids.ts';
import type { Random } from '../../kernel/random.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import { beginSeries, type Metrics } from '../../kernel/telemetry/metrics.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import { disabledEvent, exhaustedEvent, recoveredEvent } from '../endpoints/events.ts';
import { foldHealth, type HealthSignal } from '../endpoints/health.ts';
import {
  disableEndpoint,
  type HealthUpdate,
  lockHealths,
  saveHealths,
} from '../endpoints/store.ts';
import type { WebhookSettings } from '../settings.ts';
import {
  ATTEMPT_RESULTS,
  type AttemptResult,
  evaluateAttempt,
  isSuccess,
  ownPolicy,
} from './attempt-result.ts';
import { type AttemptResponse, NOT_PREPARED } from './http/attempt.ts';
import { type Job, makeNextDue, planByIndex } from './queue.ts';

interface FinishedSend {
  job: Job;
  startedAt: Instant;
  endedAt: Instant;
  /** Undefined when the event has been pruned and nothing could be sent. */
  response: AttemptResponse | undefined;
}

interface EvaluatedSend extends FinishedSend {
  result: AttemptResult | undefined;
  update: DeliveryUpdate;
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
  private storing: readonly FinishedSend[] = [];
  private running: Promise<void> | undefined;

  constructor(deps: ResultWriterDeps) {
    this.deps = deps;
    beginSeries(deps.metrics.attempts, { result: ATTEMPT_RESULTS });
  }

  add(send: FinishedSend): void {
    this.finished.push(send);
    this.run();
  }

  release(jobs: readonly Job[]): void {
    this.released.push(...jobs);
    this.run();
  }

  /**
   * Endpoints of which a failed attempt is not stored yet. Nothing more is claimed of them: they
   * may be gone, or have asked for a pause.
   */
  failing(): Set<string> {
    const failed = [...this.storing, ...this.finished].filter(hasFailed);
    return new Set(failed.map(({ job }) => job.delivery.endpointId));
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
      this.storing = finished;
      try {
        if (released.length > 0) await this.storeReleased(released);
        released.length = 0;
        if (finished.length > 0) await this.storeFinished(finished);
      } catch (err) {
        const attempts = finished.length;
        if (isOutage(err)) logOutage(this.deps.log, err);
        else this.deps.log.warn({ err, attempts }, 'webhook results not stored, retrying');
        const now = this.deps.clock.now();
        this.finished.unshift(...finished.filter(({ job }) => job.leaseUntil > now));
        this.released.unshift(...released.filter((job) => job.leaseUntil > now));
        this.storing = [];
        await pause(RETRY_AFTER_MS);
      }
      this.storing = [];
    }
  }

  private async storeReleased(jobs: readonly Job[]): Promise<void> {
    await this.deps.db.begin(async (tx) => {
      await planByIndex(tx);
      await releaseClaims(tx, jobs.map(claimOf));
    });
  }

  private async storeFinished(finished: readonly FinishedSend[]): Promise<void> {
    const { db, clock, metrics, wake } = this.deps;
    const now = clock.now();
    const sends = finished.map((send) => this.evaluate(send));
    const isPlain = sends.every((send) => isPlainSuccess(send, now));
    if (isPlain) await db.single((q) => storeResults(q, updatesOf(sends), now));
    else
      await db.begin(async (tx) => {
        await planByIndex(tx);
        await this.storeWithHealth(tx, sends, now);
      });
    if (sends.some((send) => send.job.endpoint.ordered || hasFailed(send))) wake();
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
    const policy = ownPolicy(settings.retry, endpoint.retrySchedule);
    const result = evaluateAttempt(response, queued, policy, endedAt, random);
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
    const endpoints = await lockHealths(tx, ids);
    const changed = await storeResults(tx, updatesOf(sends), now);
    const unblocking = sends.filter(({ job, update: { id, state, outOfOrder } }) => {
      return job.endpoint.ordered && changed.has(id) && (state !== 'pending' || outOfOrder);
    });
    const blockers = unblocking.map(({ job }) => job.delivery);
    await makeNextDue(tx, blockers, now);
    const drafts: EventDraft[] = [];
    const saved = new Map<string, HealthUpdate>();
    for (const [endpointId, before] of endpoints) {
      const source = { endpointId, url: before.url };
      const own = sends.filter(({ job }) => job.delivery.endpointId === endpointId);
      const signals = own.flatMap(signalOf);
      const { health, change } = foldHealth(before, signals, settings.health, random);
      saved.set(endpointId, { ...health, recovered: change === 'recovered' });
      if (change === 'recovered') drafts.push(recoveredEvent(source, now));
      else if (change && (await disableEndpoint(tx.orm, endpointId, change, now)))
        drafts.push(disabledEvent(source, change, now));
      const exhausted = own.filter(({ update: { state, id } }) => {
        return state === 'exhausted' && changed.has(id);
      });
      drafts.push(...exhausted.flatMap(({ job }) => exhaustedDraftOf(job, now)));
    }
    await saveHealths(tx, saved, now);
    await emit(tx, drafts);
  }
}

function hasFailed({ response }: FinishedSend): boolean {
  return response !== undefined && !isSuccess(response);
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

function updatesOf(sends: readonly EvaluatedSend[]): DeliveryUpdate[] {
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

function claimOf({ delivery: { id, fence } }: Job) {
  return { id, fence };
}

interface DeliveryUpdate {
  id: string;
  fence: number;
  attempt: {
    n: number;
    at: Instant;
    durationMs: number;
    result: AttemptResult['kind'];
    status: number | null;
    error: string | null;
    responseBody: string | null;
    responseHeaders: Record<string, string> | null;
  } | null;
  state: 'pending' | 'delivered' | 'exhausted' | 'cancelled';
  dueAt: Instant | null;
  scheduleStep: number;
  outOfOrder: boolean;
}

/**
 * A first attempt that delivers within so long of the event is stored in its delivery; others are
 * rows. So what is in deliveries is found by the time in their ids (figures/attempt-minutes.ts).
 */
export const SOON_MS = 60_000;

function isSoon({ id, attempt }: DeliveryUpdate): boolean {
  if (attempt?.n !== 1 || attempt.result !== 'delivered') return false;
  const afterMs = attempt.at - idTime(id);
  return afterMs >= 0 && afterMs < SOON_MS;
}

/** Stores a group of results in one statement. Returns the ids of the deliveries that changed. */
export async function storeResults(
  { sql }: Queryable,
  updates: readonly DeliveryUpdate[],
  now: Instant,
): Promise<Set<string>> {
  const [pending, ended] = [
    updates.filter(({ state }) => state === 'pending'),
    updates.filter(({ state }) => state !== 'pending'),
  ];
  const logged = updates.filter((update) => update.attempt && !isSoon(update));
  const changed = await sql<{ id: string }[]>`
    select 'dlv_' || id as id from tallyhook.store_results(${asJson(ended.map(endedRow))}::jsonb,
      ${asJson(pending.map(pendingRow))}::jsonb, ${asJson(logged.map(attemptRow))}::jsonb,
      ${isoText(now)}) as id`;
  return new Set(changed.map(({ id }) => id));
}

function endedRow(update: DeliveryUpdate) {
  const { id, fence, state, attempt } = update;
  const row = { id: uuidOf(id), fence, state, n: attempt?.n ?? null };
  return isSoon(update) ? { ...row, ...responseRow(update) } : row;
}

function pendingRow({ id, fence, dueAt, attempt, scheduleStep, outOfOrder }: DeliveryUpdate) {
  return {
    id: uuidOf(id),
    fence,
    due_at: isoTextOrNull(dueAt),
    n: attempt?.n ?? null,
    schedule_step: scheduleStep,
    out_of_order: outOfOrder,
  };
}

function attemptRow(update: DeliveryUpdate) {
  const { id, attempt } = update;
  const { n, result, error } = attempt ?? {};
  return { id: uuidOf(id), n, result, error, ...responseRow(update) };
}

function responseRow({ attempt }: DeliveryUpdate) {
  if (!attempt) return {};
  return {
    at: isoText(attempt.at),
    duration_ms: attempt.durationMs,
    status: attempt.status,
    response_body: attempt.responseBody,
    response_headers: attempt.responseHeaders,
  };
}

/** Releases claims that were not sent; they stay due. */
async function releaseClaims(
  db: Queryable,
  claims: readonly { id: string; fence: number }[],
): Promise<void> {
  const rows = claims.map(({ id, fence }) => ({ id: uuidOf(id), fence }));
  await db.sql`
    update tallyhook.pending_deliveries d set lease_until = null
    from jsonb_to_recordset(${asJson(rows)}::jsonb) as x(id uuid, fence int)
    where d.id = x.id and d.fence = x.fence`;
}
