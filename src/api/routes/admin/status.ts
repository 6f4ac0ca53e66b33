/** `/api/status`: state of the service, request budget, backlog of each stage, open work. */
import { z } from '@hono/zod-openapi';
import type { Db, Tx } from '../../../db/connect.ts';
import { listLiving } from '../../../db/leases.ts';
import { DAY_MS, type Instant } from '../../../kernel/clock.ts';
import { VERSION } from '../../../kernel/version.ts';
import { countProposedOperators, countUnposted } from '../../../ledger/ledger.ts';
import {
  announcementFields,
  countBacklog,
  countTargets,
  findService,
  type Pricing,
} from '../../../observer/observer.ts';
import { countOpen, countProposed, findFreeze } from '../../../operations/operations.ts';
import { type ConsumerLag, countUnnumbered, findConsumerLag } from '../../../outbox/outbox.ts';
import {
  countEnded,
  countOpenDrifts,
  countQuarantined,
  countStaleWallets,
  countVanished,
  type OpenDrifts,
} from '../../../reconciler/reconciler.ts';
import { findDays, findWaitingPeriods } from '../../../reports/reports.ts';
import {
  type budget,
  COUNT_MAX,
  type Role,
  type Stage,
  status,
} from '../../../resources/admin/status.ts';
import type { QuarantineKind } from '../../../resources/operations/quarantine.ts';
import type { Row } from '../../../resources/resource.ts';
import { countExhausted, countFailing, countPending } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Router } from '../../http/router.ts';

type StatusDeps = Pick<ApiDeps, 'db' | 'clock' | 'observer' | 'upstream' | 'staleAfterMs'>;

export function addStatus(router: Router, deps: StatusDeps): void {
  // Every tab of the console reads it; together they take one connection at most.
  const read = oneAtATime(() => readStatus(deps));
  router.answer({
    method: 'get',
    path: '/api/status',
    tag: 'operating',
    summary: 'Read the state of the service, the request budget and the backlog',
    scope: 'read',
    request: z.object({}),
    response: 'The current status',
    answer: status,
    handle: read,
  });
}

/** In one snapshot, but for what the daemon itself knows of its polls. */
async function readStatus(deps: StatusDeps): Promise<Row<typeof status>> {
  const { db, clock, observer, upstream, staleAfterMs } = deps;
  const now = clock.now();
  const stored = db.begin((tx) => readStored(tx, now, staleAfterMs), { snapshot: true });
  const polls = Promise.all([observer.pricing(), observer.nextPollAt()]);
  const [found, [pricing, nextPollAt]] = await Promise.all([stored, polls]);
  const clockCorrectionMs = clock.correctionMs();
  const own = { version: VERSION, now, clockCorrectionMs, budget: budgetOf(upstream) };
  return { ...own, ...found, ...pollingOf(pricing, nextPollAt) };
}

async function readStored(tx: Tx, now: Instant, staleAfterMs: number) {
  const [living, freeze, service, counts, targets, reports] = await Promise.all([
    listLiving(tx, now),
    findFreeze(tx),
    findService(tx),
    readWork(tx, now, staleAfterMs),
    countTargets(tx),
    findDays(tx, now),
  ]);
  return {
    daemons: countRoles(living),
    service: {
      state: service?.state ?? ('not_probed' as const),
      since: service?.since ?? null,
      announced: service?.announced ? announcementFields(service.announced) : null,
    },
    freeze: freeze ?? null,
    ...counts,
    targets,
    reports,
  };
}

function countRoles(living: readonly Role[][]) {
  const count = (role: Role) => living.filter((roles) => roles.includes(role)).length;
  const [gateway, api] = [count('gateway'), count('api')];
  return { gateway, api, workers: count('workers'), delivery: count('delivery') };
}

function pollingOf(pricing: Pricing, nextDueAt: Instant | null) {
  const { price, bounds, budgetPerS, perS, intervalMs, delay, oldestPollAt } = pricing;
  return {
    observationAgeMaxMs: Math.round(bounds.maxMs),
    polling: {
      budgetPerS,
      steadyPerS: perS,
      intervalMs: intervalMs === null ? null : Math.round(intervalMs),
      expectedDelayMs: delay ? Math.round(delay.expectedMs) : null,
      leastDelayMs: delay ? Math.round(delay.leastMs) : null,
      eta: delay ? delay.leastMs / delay.expectedMs : null,
      priceS: price,
      oldestPollAt,
      nextDueAt,
    },
  };
}

export function budgetOf(upstream: ApiDeps['upstream']): Row<typeof budget> {
  const { budget: polls, blockedUntil } = upstream;
  const { setting, byApps, learned, effective } = polls.bounds();
  return {
    settingPerS: setting,
    byAppsPerS: byApps,
    learnedPerS: learned,
    effectivePerS: effective,
    ratePerS: polls.ratePerS(),
    waiting: polls.waiting(),
    nextAt: Math.round(polls.nextAt()),
    blockedUntil: {
      polls: blockedUntil('polls') ?? null,
      appRead: blockedUntil('app-read') ?? null,
      appWrite: blockedUntil('app-write') ?? null,
      clientToken: blockedUntil('client-token') ?? null,
    },
  };
}

async function readWork(tx: Tx, now: Instant, staleAfterMs: number) {
  const [
    counts,
    operatorsProposed,
    outcomesProposed,
    periods,
    endpointsFailing,
    deliveriesExhausted,
  ] = await Promise.all([
    countIn(tx, now, staleAfterMs),
    countProposedOperators(tx, COUNT_MAX),
    countProposed(tx, COUNT_MAX),
    findWaitingPeriods(tx, now),
    countFailing(tx),
    countExhausted(tx, COUNT_MAX),
  ]);
  const {
    stages,
    operations,
    drifts,
    vanished,
    driftMedianS,
    quarantined,
    staleWallets,
    consumers,
  } = counts;
  const oldestOf = (state: string) =>
    operations.find((open) => open.state === state)?.oldestAt ?? null;
  return {
    stages: stages.map(({ since, ...stage }) => {
      return { ...stage, lagMs: since === null ? 0 : Math.max(0, now - since) };
    }),
    open: {
      operations: Object.fromEntries(operations.map(({ state, count }) => [state, count])),
      oldestUnknownAt: oldestOf('unknown'),
      oldestUndecidedAt: oldestOf('undecided'),
      drifts: drifts.open,
      oldestDriftAt: drifts.oldestAt,
      driftsUnassigned: drifts.unassigned,
      driftsProposed: drifts.proposed,
      walletsVanished: vanished.count,
      oldestVanishedAt: vanished.oldestAt,
      operatorsProposed,
      outcomesProposed,
    },
    webhooks: { endpointsFailing, deliveriesExhausted },
    consumers,
    periods,
    driftResolutionMedianS: driftMedianS,
    quarantined: {
      operation: quarantined.operation,
      postingRequest: quarantined.posting_request,
      observedHolder: quarantined.observed_holder,
      observation: quarantined.observation,
    },
    staleWallets,
  };
}

/** How far back ended drifts count for their median: 30 days. */
export const ENDED_MS = 30 * DAY_MS;

export interface Counts {
  /** Rows that wait per stage, and since when the oldest does. */
  stages: { stage: Stage; waiting: number; since: Instant | null }[];
  /** Operations by state that is not final, and when the oldest was recorded. */
  operations: { state: string; count: number; oldestAt: Instant | null }[];
  drifts: OpenDrifts;
  /** Median time from suspicion to end of the drifts that ended in the last 30 days, in s. */
  driftMedianS: number | null;
  quarantined: Record<QuarantineKind, number>;
  staleWallets: number;
  vanished: { count: number; oldestAt: Instant | null };
  consumers: ConsumerLag;
}

/** @param staleAfterMs age at which the newest observation of a wallet is stale */
export function readCounts(db: Db, now: Instant, staleAfterMs: number): Promise<Counts> {
  return db.begin((tx) => countIn(tx, now, staleAfterMs), { snapshot: true });
}

/** As `readCounts`, inside the caller's snapshot; the statements are pipelined. */
async function countIn(tx: Tx, now: Instant, staleAfterMs: number): Promise<Counts> {
  const [operations, drifts, ended, quarantined, staleWallets, vanished, consumers, ...backlogs] =
    await Promise.all([
      countOpen(tx, COUNT_MAX),
      countOpenDrifts(tx, COUNT_MAX),
      countEnded(tx, now - ENDED_MS),
      countQuarantined(tx, COUNT_MAX),
      countStaleWallets(tx, now - staleAfterMs, COUNT_MAX),
      countVanished(tx, COUNT_MAX),
      findConsumerLag(tx),
      countUnposted(tx, COUNT_MAX),
      countBacklog(tx, now, COUNT_MAX),
      countUnnumbered(tx, COUNT_MAX),
      countPending(tx, COUNT_MAX),
    ]);
  const [ledger, observed, outbox, webhooks] = backlogs;
  const { due, dueSince, unprocessed, unprocessedSince } = observed;
  const stages = [
    { stage: 'ledger' as const, ...ledger },
    { stage: 'observer' as const, waiting: due, since: dueSince },
    { stage: 'reconciler' as const, waiting: unprocessed, since: unprocessedSince },
    { stage: 'outbox' as const, ...outbox },
    { stage: 'webhooks' as const, ...webhooks },
  ];
  const { medianS: driftMedianS } = ended;
  const work = { stages, operations, drifts, driftMedianS, quarantined, staleWallets, vanished };
  return { ...work, consumers };
}

/** Runs `load` once at a time; a call gets the result of a run that began after it. */
function oneAtATime<T>(load: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  const run = () => {
    next = undefined;
    const result = load();
    running = result.catch(() => {});
    return result;
  };
  return () => {
    next ??= running.then(run);
    return next;
  };
}
