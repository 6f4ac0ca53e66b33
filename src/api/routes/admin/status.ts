/** `/api/status`: state of the service, request budget, backlog of each stage, open work. */
import { z } from '@hono/zod-openapi';
import type { Instant } from '../../../kernel/clock.ts';
import { countUnposted } from '../../../ledger/ledger.ts';
import { countBacklog, findService } from '../../../observer/observer.ts';
import { countOpen } from '../../../operations/operations.ts';
import { countUnnumbered } from '../../../outbox/outbox.ts';
import { countOpenDrifts } from '../../../reconciler/reconciler.ts';
import { countPending } from '../../../webhooks/webhooks.ts';
import type { ApiDeps } from '../../deps.ts';
import { instant, instantText } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';
import { freeze, freezeOutput } from './freeze.ts';

/** A larger backlog is not counted further. */
const COUNT_MAX = 10_000;
const STAGES = ['ledger', 'observer', 'reconciler', 'outbox', 'webhooks'] as const;

const status = z
  .object({
    now: instant.openapi({ description: 'The time of the database, which all daemons use' }),
    clock_correction_ms: z.int().openapi({
      description: 'Part of `now` that corrects a step of the clock of the database; it decays',
    }),
    service: z.object({
      state: z.enum(['active', 'announced', 'maintenance', 'unreachable', 'not_probed']),
      since: instant.nullable(),
      announced: z
        .object({
          start: z.string().nullable(),
          end: z.string().nullable(),
          message: z.string().nullable(),
        })
        .nullable()
        .openapi({ description: 'As the service announced it' }),
    }),
    freeze: freeze
      .nullable()
      .openapi({ description: 'The freeze in effect; no write is accepted' }),
    budget: z.object({
      rate_per_s: z.number().openapi({ description: 'Polls that this daemon may send' }),
      learned_per_s: z.number().openapi({ description: 'Budget of all daemons together' }),
      waiting: z.int().openapi({ description: 'Polls that wait for the budget' }),
      next_at: instant,
      blocked_until: z
        .object({
          polls: instant.nullable(),
          app_read: instant.nullable(),
          app_write: instant.nullable(),
        })
        .openapi({
          description: 'Deadlines that the service set with Retry-After, per class of request',
        }),
    }),
    stages: z.array(
      z.object({
        stage: z.enum(STAGES),
        waiting: z
          .int()
          .openapi({ description: `Rows that wait; counted up to ${COUNT_MAX} per kind` }),
        lag_ms: z.int().openapi({ description: 'Age of the oldest row that waits' }),
      }),
    ),
    open: z.object({
      operations: z.record(z.string(), z.int()).openapi({ description: 'By state' }),
      drifts: z.int(),
      drifts_unassigned: z.int(),
    }),
    targets: z.int().openapi({ description: 'Wallets, tokens and contracts that are polled' }),
    observation_age_max_ms: z.int(),
  })
  .openapi('Status');

export function addStatus(
  router: Router,
  deps: Pick<ApiDeps, 'db' | 'clock' | 'operations' | 'observer' | 'upstream'>,
): void {
  const { db, clock, operations, observer, upstream } = deps;
  router.add({
    method: 'get',
    path: '/api/status',
    tag: 'operating',
    summary: 'Read the state of the service, the request budget and the backlog',
    scope: 'read',
    request: z.object({}),
    response: 'The current status',
    schema: status,
    async handle() {
      const now = clock.now();
      const frozen = await operations.currentFreeze();
      return {
        now: instantText(now),
        clock_correction_ms: clock.correctionMs(),
        service: await serviceOutput(db),
        freeze: frozen ? freezeOutput(frozen) : null,
        budget: budgetOutput(upstream),
        ...(await readCounts(db, now)),
        observation_age_max_ms: Math.round(await observer.observationAgeMaxMs()),
      };
    },
  });
}

async function serviceOutput(db: ApiDeps['db']) {
  const found = await findService(db);
  return {
    state: found?.state ?? ('not_probed' as const),
    since: instantText(found?.since ?? null),
    announced: found?.announced ?? null,
  };
}

function budgetOutput(upstream: ApiDeps['upstream']) {
  const { budget } = upstream;
  return {
    rate_per_s: budget.ratePerS(),
    learned_per_s: budget.learnedPerS(),
    waiting: budget.waiting(),
    next_at: instantText(Math.round(budget.nextAt())),
    blocked_until: {
      polls: instantText(upstream.blockedUntil('polls') ?? null),
      app_read: instantText(upstream.blockedUntil('app-read') ?? null),
      app_write: instantText(upstream.blockedUntil('app-write') ?? null),
    },
  };
}

async function readCounts(db: ApiDeps['db'], now: Instant) {
  const [operations, drifts, unposted, observed, unnumbered, pending] = await Promise.all([
    countOpen(db),
    countOpenDrifts(db),
    countUnposted(db, COUNT_MAX),
    countBacklog(db, now, COUNT_MAX),
    countUnnumbered(db, COUNT_MAX),
    countPending(db, COUNT_MAX),
  ]);
  const stage = (name: (typeof STAGES)[number], waiting: number, since: Instant | null) => ({
    stage: name,
    waiting,
    lag_ms: since === null ? 0 : Math.max(0, now - since),
  });
  return {
    stages: [
      stage('ledger', unposted.waiting, unposted.since),
      stage('observer', observed.due, observed.dueSince),
      stage('reconciler', observed.unprocessed, observed.unprocessedSince),
      stage('outbox', unnumbered.waiting, unnumbered.since),
      stage('webhooks', pending.waiting, pending.since),
    ],
    open: {
      operations: Object.fromEntries(operations.map(({ state, count }) => [state, count])),
      drifts: drifts.open,
      drifts_unassigned: drifts.unassigned,
    },
    targets: observed.targets,
  };
}
