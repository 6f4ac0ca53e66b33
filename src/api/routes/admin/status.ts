/** `/api/status`: whether the service answers, what the budget allows, what waits in each stage. */
import { createRoute, z } from '@hono/zod-openapi';
import { countOpen } from '../../../operations/operations.ts';
import type { Instant } from '../../../kernel/clock.ts';
import { countUnposted } from '../../../ledger/ledger.ts';
import { countBacklog, findService } from '../../../observer/observer.ts';
import { countUnnumbered } from '../../../outbox/outbox.ts';
import { countOpenDrifts } from '../../../reconciler/reconciler.ts';
import { countPending } from '../../../webhooks/webhooks.ts';
import { guarded, needs, reply } from '../../http/auth.ts';
import type { Api, ApiDoors } from '../../deps.ts';
import { instantOut, timeText } from '../../http/fields.ts';
import { freeze, shownFreeze } from './freeze.ts';
import { json, refusals } from '../../http/problems.ts';

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
          looks: instantOut.nullable(),
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
    objects: z.int().openapi({ description: 'Wallets, tokens and contracts under observation' }),
    look_age_max_ms: z.int(),
  })
  .openapi('Status');

const statusRoute = createRoute({
  method: 'get',
  path: '/api/status',
  tags: ['operating'],
  summary: 'The state of the service, the budget, and what waits or is open',
  ...needs('read'),
  responses: { 200: json('As things stand', status), ...refusals },
});

export function addStatus(app: Api, doors: ApiDoors): void {
  app.openapi(guarded(doors, statusRoute), async (c) => {
    const now = doors.clock.now();
    const frozen = await doors.journal.currentFreeze();
    return reply(
      c,
      {
        now: timeText(now),
        service: await shownService(doors),
        freeze: frozen ? shownFreeze(frozen) : null,
        budget: shownBudget(doors),
        ...(await readCounts(doors, now)),
        look_age_max_ms: Math.round(await doors.observer.lookAgeMaxMs()),
      },
      200,
    );
  });
}

async function shownService({ db }: ApiDoors) {
  const found = await findService(db);
  return {
    state: found?.state ?? ('not_probed' as const),
    since: timeText(found?.since ?? null),
    announced: found?.announced ?? null,
  };
}

function shownBudget({ upstream }: ApiDoors) {
  const { budget } = upstream;
  return {
    rate_per_s: budget.ratePerS(),
    learned_per_s: budget.learnedPerS(),
    waiting: budget.waiting(),
    next_at: timeText(Math.round(budget.nextAt())),
    blocked_until: {
      looks: timeText(upstream.blockedUntil('looks') ?? null),
      app_read: timeText(upstream.blockedUntil('app-read') ?? null),
      app_write: timeText(upstream.blockedUntil('app-write') ?? null),
    },
  };
}

async function readCounts({ db }: ApiDoors, now: Instant) {
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
      stage('observer', observed.due, observed.due_since),
      stage('reconciler', observed.unjudged, observed.unjudged_since),
      stage('outbox', unnumbered.waiting, unnumbered.since),
      stage('webhooks', pending.waiting, pending.since),
    ],
    open: {
      operations: Object.fromEntries(operations.map(({ state, count }) => [state, count])),
      drifts: drifts.open,
      drifts_unassigned: drifts.unassigned,
    },
    objects: observed.objects,
  };
}
