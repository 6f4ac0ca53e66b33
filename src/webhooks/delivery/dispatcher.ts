/**
 * One bounded pass of delivery: look which endpoints have work, claim a share of it, hand it to the
 * sends. A pass never waits for a send to end, and no transaction is open while anything is sent.
 * Several daemons pass at the same time; each claims what no other holds.
 */
import type { Db, Tx } from '../../db/connect.ts';
import { type Clock, type Instant, monotonicMs } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import type { Random } from '../../kernel/random.ts';
import type { WebhookSettings } from '../settings.ts';
import { type AttemptClient, type Sent, unsent } from './attempt.ts';
import type { Envelopes } from './envelope.ts';
import { fromRing, inFlightMax, rateAllowance, rateFreeAt, shareOut } from './limits.ts';
import { planClaims } from './plan-store.ts';
import { type Emit, ResultWriter } from './result-writer.ts';
import { type Job, Sender } from './sender.ts';
import * as store from './store.ts';

export interface DispatcherDeps {
  db: Db;
  clock: Clock;
  random: Random;
  log: Log;
  metrics: Metrics;
  settings: WebhookSettings;
  envelopes: Envelopes;
  client: AttemptClient;
  emit: Emit;
  daemons: () => number;
  /** Asks for a pass soon. */
  wake: () => void;
}

/** What one pass did. */
export interface Pass {
  /** Deliveries claimed and handed to the sends. */
  attempted: number;
  /** Whether another pass would find work at once. */
  more: boolean;
  /** When the next delivery that nobody holds is due, as far as this pass saw. */
  nextDueAt?: Instant;
}

/** Endpoints that one pass looks at. */
const EXAMINED_MAX = 1_000;
const CANCELLED_MAX = 1_000;
/** When to look again for want of room, should nobody hear that there is some. */
const RECHECK_MS = 50;
const NEVER = Number.POSITIVE_INFINITY;
/** How long a shutdown waits for the last settlement. */
const LAST_SETTLE_MS = 2_000;

export class Worker {
  private readonly given: DispatcherDeps;
  private readonly sender: Sender;
  private readonly resultWriter: ResultWriter;
  /** Where the next look at the endpoints starts, and who was served last. */
  private page = '';
  private served = '';
  /** Endpoints with work that the last pass had no room for; empty: it had no room at all. */
  private starved: readonly store.ActiveEndpoint[] | undefined;

  constructor(given: DispatcherDeps) {
    this.given = given;
    this.resultWriter = new ResultWriter({ ...given, woken: () => given.wake() });
    this.sender = new Sender({
      clock: given.clock,
      settings: given.settings,
      daemons: given.daemons,
      send: (job, startedAt) => this.send(job, startedAt),
      done: (job, startedAt, sent) => {
        this.resultWriter.add({ job, startedAt, endedAt: given.clock.now(), sent });
      },
      unsent: (jobs) => this.resultWriter.release(jobs),
      moved: () => this.feed(),
    });
  }

  /** Deliveries held by this daemon, on the wire or waiting for their turn. */
  get held(): number {
    return this.sender.held;
  }

  /** @throws DatabaseError when the database is away */
  async runOnce(now: Instant): Promise<Pass> {
    const room = this.sender.room();
    if (room === 0) {
      this.starved = [];
      return { attempted: 0, more: false, nextDueAt: now + RECHECK_MS };
    }
    const observation = await this.given.db.begin((tx) => this.observation(tx, room, now));
    const { active, ready, jobs, parked } = observation;
    this.page = observation.page;
    this.starved = observation.chosen.length === 0 && ready.length > 0 ? ready : undefined;
    this.served = observation.chosen.at(-1)?.endpointId ?? this.served;
    this.sender.take(jobs.filter(({ claimed }) => claimed.body !== null));
    // The event is older than what is kept: there is nothing left to send.
    for (const job of jobs.filter(({ claimed }) => claimed.body === null))
      this.resultWriter.add({ job, startedAt: now, endedAt: now, sent: undefined });
    const more = jobs.length + parked > 0 || observation.cancelled || observation.page !== '';
    if (more) return { attempted: jobs.length, more };
    // What is due and was not claimed had no room, or another daemon is at it.
    const next = Math.min(nextDueAt(active, now), ready.length > 0 ? now + RECHECK_MS : NEVER);
    return { attempted: 0, more, ...(next === NEVER ? {} : { nextDueAt: next }) };
  }

  /** Looks who has work and claims a share of it, in one transaction; changes nothing here. */
  private async observation(tx: Tx, room: number, now: Instant) {
    await planClaims(tx);
    const active = await store.listActive(tx, now, this.page, EXAMINED_MAX);
    const page = (active.length === EXAMINED_MAX && active.at(-1)?.endpointId) || '';
    const deleted = active.filter(({ state }) => state === 'deleted');
    for (const { endpointId } of deleted) await store.cancelOf(tx, endpointId, now, CANCELLED_MAX);
    const ready = active.filter((endpoint) => isReady(endpoint, now));
    const wanted = ready.map(({ endpointId, consecutiveFailures }) => ({
      endpointId,
      n: this.sender.roomFor(endpointId, consecutiveFailures),
    }));
    const fitting = wanted.filter(({ n }) => n > 0);
    const chosen = fromRing(fitting, this.served, room);
    const claimed =
      chosen.length > 0 ? await this.claim(tx, chosen, room, now) : { jobs: [], parked: 0 };
    return { active, page, ready, chosen, cancelled: deleted.length > 0, ...claimed };
  }

  /**
   * Waits until everything claimed is sent and settled. After `timeoutMs` what waits is given back
   * and what is on the wire is broken off, to be repeated with the same id.
   */
  async drain(timeoutMs: number): Promise<void> {
    const endMs = monotonicMs() + timeoutMs;
    for (let left = timeoutMs; this.sender.held > 0 && left > 0; left = endMs - monotonicMs())
      await this.sender.progress(left);
    if (this.sender.held > 0) {
      this.sender.giveBack();
      this.given.client.interrupt();
      while (this.sender.sending > 0) await this.sender.progress(LAST_SETTLE_MS);
    }
    await this.resultWriter.settled();
  }

  /** Asks for a pass when there is room for what the last one had none for. */
  private feed(): void {
    const starved = this.starved;
    if (!starved || this.sender.room() === 0) return;
    const fits = ({ endpointId, consecutiveFailures }: store.ActiveEndpoint) =>
      this.sender.roomFor(endpointId, consecutiveFailures) > 0;
    if (starved.length > 0 && !starved.some(fits)) return;
    this.starved = undefined;
    this.given.wake();
  }

  private async claim(
    tx: Tx,
    chosen: readonly { endpointId: string; n: number }[],
    room: number,
    now: Instant,
  ): Promise<{ jobs: Job[]; parked: number }> {
    const { settings, daemons } = this.given;
    const leaseUntil = now + settings.send.deadlineMs + settings.leaseMarginMs;
    const rooms = chosen.map(({ n }) => n);
    const shares = shareOut(rooms, room);
    const most = new Map(chosen.map(({ endpointId }, i) => [endpointId, shares[i] ?? 0]));
    const endpoints = await store.lockEndpoints(tx, [...most.keys()], now);
    const quotas = endpoints.map((endpoint) => {
      const n = quotaOf(endpoint, most.get(endpoint.endpointId) ?? 0, now, settings, daemons());
      return { endpointId: endpoint.endpointId, ordered: endpoint.ordered, n };
    });
    const plain = quotas.filter((q) => !q.ordered && q.n > 0);
    const ordered = quotas.filter((q) => q.ordered && q.n > 0);
    const claims = plain.length > 0 ? await store.claim(tx, plain, now, leaseUntil) : [];
    let parked = 0;
    if (ordered.length > 0) {
      const inOrder = await store.claimInOrder(tx, ordered, now, leaseUntil);
      parked = inOrder.parked;
      claims.push(...inOrder.claims);
    }
    await store.savePaces(tx, pacesAfter(endpoints, claims, now));
    const byId = new Map(endpoints.map((endpoint) => [endpoint.endpointId, endpoint]));
    const jobs = claims.flatMap((claimed) => {
      const endpoint = byId.get(claimed.endpointId);
      return endpoint ? [{ claimed, endpoint, leaseUntil }] : [];
    });
    return { jobs, parked };
  }

  private async send(job: Job, startedAt: Instant): Promise<Sent> {
    const { envelopes, client, log } = this.given;
    const { claimed, endpoint } = job;
    try {
      const event = { id: claimed.eventId, body: claimed.body ?? '' };
      const sent = await client.post(envelopes.post(endpoint, event, startedAt));
      return { ...sent, body: sent.body && envelopes.withhold(endpoint, sent.body) };
    } catch (err) {
      log.error({ err, endpointId: claimed.endpointId }, 'webhook could not be prepared');
      const refused = err instanceof Failure && err.code === 'url_refused';
      return unsent(refused ? 'blocked_address' : 'not_prepared');
    }
  }
}

function isReady(endpoint: store.ActiveEndpoint, now: Instant): boolean {
  const at = freeAt(endpoint);
  return at !== undefined && at <= now;
}

/** When the next delivery of an endpoint may go; undefined when none may. */
function freeAt(endpoint: store.ActiveEndpoint): Instant | undefined {
  const { state, firstDueAt, holdUntil, ratePerS, pacedUntil } = endpoint;
  if (state !== 'enabled' || firstDueAt === null) return undefined;
  const rateAt = ratePerS === null ? 0 : rateFreeAt(pacedUntil, ratePerS);
  return Math.max(firstDueAt, holdUntil ?? 0, rateAt);
}

/** The next instant at which one of these may be sent to; NEVER when there is none. */
function nextDueAt(active: readonly store.ActiveEndpoint[], now: Instant): Instant {
  const later = active.flatMap((endpoint) => freeAt(endpoint) ?? []).filter((at) => at > now);
  return Math.min(...later, NEVER);
}

function quotaOf(
  endpoint: store.ClaimedEndpoint,
  share: number,
  now: Instant,
  settings: WebhookSettings,
  daemons: number,
): number {
  const { ratePerS, pacedUntil, consecutiveFailures } = endpoint;
  // A failing endpoint gets probes, whatever was thought of it before its row was locked.
  const most =
    consecutiveFailures > 0
      ? Math.min(share, inFlightMax(settings.inFlightPerEndpoint, consecutiveFailures, daemons))
      : share;
  if (ratePerS === null) return most;
  return Math.min(most, rateAllowance(pacedUntil, ratePerS, now).allowed);
}

function pacesAfter(
  endpoints: readonly store.ClaimedEndpoint[],
  claims: readonly store.Claimed[],
  now: Instant,
) {
  return endpoints.flatMap(({ endpointId, ratePerS, pacedUntil }) => {
    const n = claims.filter((claimed) => claimed.endpointId === endpointId).length;
    if (ratePerS === null || n === 0) return [];
    const { pacedUntilAfter } = rateAllowance(pacedUntil, ratePerS, now);
    return [{ endpointId, pacedUntil: pacedUntilAfter(n) }];
  });
}
