/** `/api/status`: whether the service answers, what the budget allows, what waits in each stage. */
import { createRoute, z } from '@hono/zod-openapi';
import type { Instant } from '../../../kernel/clock.ts';
import { countUnposted } from '../../../ledger/ledger.ts';
import { countBacklog, findService } from '../../../observer/observer.ts';
import { countOpen } from '../../../operations/operations.ts';
import { countUnnumbered } from '../../../outbox/outbox.ts';
import { countOpenDrifts } from '../../../reconciler/reconciler.ts';
import { countPending } from '../../../webhooks/webhooks.ts';
import type { Api, ApiDeps } from '../../deps.ts';
import { deps, guarded, reply } from '../../http/auth.ts';
import { instantOut, timeText } from '../../http/fields.ts';
import { json, refusals } from '../../http/problems.ts';
import { freeze, shownFreeze } from './freeze.ts';

/** Rows that wait are counted up to here. */
const COUNT_MAX = 10_000;
const STAGES = ['ledger', 'observer', 'reconciler', 'outbox', 'webhooks'] as const;

const status = z
  .object({
    now: instantOut.openapi({ description: 'The clock of the database, which all daemons follow' }),
    service: z.object({
      state: z.enum(['active', 'announced', 'maintenance', 'unreachable', 'not_probed']),
      since: instantOut.nullable(),
      announced: z
        .object({
          start: z.string().nullable(),
          end: z.string().nullable(),
          message: z.string().nullable(),
        })
        .nullable()
        .openapi({ description: "The service's own texts" }),
    }),
    freeze: freeze.nullable().openapi({ description: 'The freeze that stands: no write is taken' }),
    budget: z.object({
      rate_per_s: z.number().openapi({ description: 'Looks that this daemon may make' }),
      learned_per_s: z.number().openapi({ description: 'Of all daemons together' }),
      waiting: z.int(),
      next_at: instantOut,
      blocked_until: z
        .object({
          polls: instantOut.nullable(),
          app_read: instantOut.nullable(),
          app_write: instantOut.nullable(),
        })
        .openapi({ description: 'Until when the service asked a class of traffic to be silent' }),
    }),
    stages: z
      .array(
        z.object({
          stage: z.enum(STAGES),
          waiting: z.int().openapi({ description: `Counted up to ${COUNT_MAX} or twice that` }),
          lag_ms: z.int().openapi({ description: 'How long the oldest of them has waited' }),
        }),
      )
      .openapi({ description: 'What waits in each stage' }),
    open: z.object({
      operations: z.record(z.string(), z.int()).openapi({ description: 'By state' }),
      drifts: z.int(),
      drifts_unassigned: z.int(),
    }),
    targets: z.int().openapi({ description: 'Wallets, tokens and contracts under observation' }),
    observation_age_max_ms: z.int(),
  })
  .openapi('Status');

const statusRoute = createRoute({
  method: 'get',
  path: '/api/status',
  tags: ['operating'],
  summary: 'The state of the service, the budget, and what waits or is open',
  ...deps('read'),
  responses: { 200: json('As things stand', status), ...refusals },
});

export function addStatus(app: Api, deps: ApiDeps): void {
  app.openapi(guarded(deps, statusRoute), async (c) => {
    const now = deps.clock.now();
    const frozen = await deps.operations.currentFreeze();
    return reply(
      c,
      {
        now: timeText(now),
        service: await shownService(deps),
        freeze: frozen ? shownFreeze(frozen) : null,
        budget: shownBudget(deps),
        ...(await readCounts(deps, now)),
        observation_age_max_ms: Math.round(await deps.observer.observationAgeMaxMs()),
      },
      200,
    );
  });
}

async function shownService({ db }: ApiDeps) {
  const found = await findService(db);
  return {
    state: found?.state ?? ('not_probed' as const),
    since: timeText(found?.since ?? null),
    announced: found?.announced ?? null,
  };
}

function shownBudget({ upstream }: ApiDeps) {
  const { budget } = upstream;
  return {
    rate_per_s: budget.ratePerS(),
    learned_per_s: budget.learnedPerS(),
    waiting: budget.waiting(),
    next_at: timeText(Math.round(budget.nextAt())),
    blocked_until: {
      polls: timeText(upstream.blockedUntil('polls') ?? null),
      app_read: timeText(upstream.blockedUntil('app-read') ?? null),
      app_write: timeText(upstream.blockedUntil('app-write') ?? null),
    },
  };
}

async function readCounts({ db }: ApiDeps, now: Instant) {
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
