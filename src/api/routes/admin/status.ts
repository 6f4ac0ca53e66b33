/** `/api/status`: state of the service, request budget, backlog of each stage, open work. */
import { z } from '@hono/zod-openapi';
import type { Tx } from '../../../db/connect.ts';
import { listLiving } from '../../../db/leases.ts';
import type { Instant } from '../../../kernel/clock.ts';
import type { Role } from '../../../kernel/roles.ts';
import {
  announcementFields,
  countTargets,
  findService,
  type Pricing,
} from '../../../observer/observer.ts';
import { countProposed, findFreeze } from '../../../operations/operations.ts';
import { findWaitingPeriods } from '../../../reports/reports.ts';
import { countExhausted, countFailing } from '../../../webhooks/webhooks.ts';
import { COUNT_MAX, countIn, STAGES } from '../../counts.ts';
import type { ApiDeps } from '../../deps.ts';
import { oneAtATime } from '../../http/cached.ts';
import { instant, instantText } from '../../http/fields.ts';
import type { Router } from '../../http/router.ts';
import { freeze, freezeOutput } from './freeze.ts';

export const budget = z
  .object({
    setting_per_s: z
      .number()
      .nullable()
      .openapi({ description: 'The bound that upstream.budget_per_s sets; null: auto' }),
    by_apps_per_s: z
      .number()
      .nullable()
      .openapi({
        description:
          'Without a setting: 5, or a fourth of the requests of apps that the service answers ' +
          'without throttling, whichever is larger',
      }),
    learned_per_s: z.number().nullable().openapi({
      description: 'What 429, outages or a recent start leave for now; null: no less than that',
    }),
    effective_per_s: z.number().openapi({
      description: 'The least of these; polls of all daemons together, without requests of apps',
    }),
    rate_per_s: z.number().openapi({
      description: 'The part of each daemon with the role workers',
    }),
    waiting: z.int().openapi({ description: 'Polls that wait for the budget' }),
    next_at: instant,
    blocked_until: z
      .object({
        polls: instant.nullable(),
        app_read: instant.nullable(),
        app_write: instant.nullable(),
        client_token: instant.nullable(),
      })
      .openapi({
        description: 'Deadlines that the service set with Retry-After, per class of request',
      }),
  })
  .openapi('Budget');

const status = z
  .object({
    now: instant.openapi({ description: 'The time of the database, which all daemons use' }),
    clock_correction_ms: z.int().openapi({
      description: 'Part of `now` that corrects a step of the clock of the database; it decays',
    }),
    daemons: z
      .object({ gateway: z.int(), api: z.int(), workers: z.int(), delivery: z.int() })
      .openapi({
        description: 'Living daemons that perform each role; that of webhooks counts while it runs',
      }),
    service: z.object({
      state: z.enum(['active', 'announced', 'maintenance', 'unreachable', 'not_probed']),
      since: instant.nullable(),
      announced: z
        .object({
          start: instant.nullable(),
          start_text: z.string().nullable(),
          end: instant.nullable(),
          end_text: z.string().nullable(),
          message: z.string().nullable(),
        })
        .nullable()
        .openapi({ description: 'As the service announced it; UTC is assumed' }),
    }),
    freeze: freeze
      .nullable()
      .openapi({ description: 'The freeze in effect; no write is accepted' }),
    budget,
    stages: z.array(
      z.object({
        stage: z.enum(STAGES),
        waiting: z
          .int()
          .openapi({ description: `Rows that wait; every number is counted up to ${COUNT_MAX}` }),
        lag_ms: z.int().openapi({ description: 'Age of the oldest row that waits' }),
      }),
    ),
    open: z.object({
      operations: z.record(z.string(), z.int()).openapi({ description: 'By state' }),
      oldest_unknown_at: instant.nullable().openapi({ description: 'When it was recorded' }),
      oldest_undecided_at: instant.nullable(),
      drifts: z.int(),
      oldest_drift_at: instant.nullable(),
      drifts_unassigned: z.int(),
      drifts_proposed: z.int().openapi({ description: 'They wait for the approval of an owner' }),
      wallets_vanished: z.int().openapi({
        description: 'The service no longer shows them, and the ledger holds a balance of them',
      }),
      oldest_vanished_at: instant.nullable(),
      outcomes_proposed: z.int().openapi({
        description: 'Operations whose proposed outcome waits for another owner',
      }),
    }),
    webhooks: z.object({
      endpoints_failing: z.int().openapi({ description: 'They fail, or failures disabled them' }),
      deliveries_exhausted: z.int().openapi({ description: 'Every attempt failed' }),
    }),
    periods: z.object({
      to_sign: z.int().openapi({ description: 'Closed, and not signed by another owner' }),
      to_close_since: instant.nullable().openapi({
        description: 'When the next period ended that is as long as the last one; else null',
      }),
    }),
    quarantined: z
      .object({
        operation: z.int(),
        posting_request: z.int(),
        observed_holder: z.int(),
        observation: z.int(),
      })
      .openapi({ description: 'What waits for a release; see /api/quarantine' }),
    drift_resolution_median_s: z.number().nullable().openapi({
      description: 'Median time from the first observation of a drift to its end, over 30 days',
    }),
    stale_wallets: z.int().openapi({
      description: 'Wallets whose newest processed observation is older than stale_after_ms',
    }),
    targets: z.int().openapi({ description: 'Wallets and tokens that are polled' }),
    observation_age_max_ms: z.int().openapi({
      description: 'No steady target is left without a poll for longer, while the service answers',
    }),
    polling: z
      .object({
        budget_per_s: z.number().openapi({
          description: 'Left by polls of open operations; of all daemons together',
        }),
        steady_per_s: z.number().openapi({ description: 'Of all daemons together' }),
        interval_ms: z.int().nullable().openapi({ description: 'Mean over all steady targets' }),
        expected_delay_ms: z.int().nullable().openapi({
          description: 'Mean time from a change to its poll, by the learned change rates',
        }),
        least_delay_ms: z.int().nullable().openapi({
          description: 'The least such mean that any schedule reaches with this budget',
        }),
        eta: z.number().nullable().openapi({
          description: 'The least delay divided by the expected one; 1 is best',
        }),
        price_s: z.number().openapi({
          description: 'Seconds of undetected change that a poll must be expected to save',
        }),
        oldest_poll_at: instant
          .nullable()
          .openapi({ description: 'Of the target polled longest ago; a few seconds old' }),
        next_due_at: instant
          .nullable()
          .openapi({ description: 'Of any target; in the past while polls are late' }),
      })
      .openapi({ description: 'Polls of steady targets' }),
  })
  .openapi('Status');

type StatusDeps = Pick<ApiDeps, 'db' | 'clock' | 'observer' | 'upstream' | 'staleAfterMs'>;

export function addStatus(router: Router, deps: StatusDeps): void {
  // Every tab of the console reads it; together they take one connection at most.
  const read = oneAtATime(() => readStatus(deps));
  router.add({
    method: 'get',
    path: '/api/status',
    tag: 'operating',
    summary: 'Read the state of the service, the request budget and the backlog',
    scope: 'read',
    request: z.object({}),
    response: 'The current status',
    schema: status,
    handle: read,
  });
}

/** In one snapshot, but for what the daemon itself knows of its polls. */
async function readStatus({ db, clock, observer, upstream, staleAfterMs }: StatusDeps) {
  const now = clock.now();
  const stored = db.begin((tx) => storedOutput(tx, now, staleAfterMs), { snapshot: true });
  const polls = Promise.all([observer.pricing(), observer.nextPollAt()]);
  const [output, [pricing, nextPollAt]] = await Promise.all([stored, polls]);
  return {
    now: instantText(now),
    clock_correction_ms: clock.correctionMs(),
    budget: budgetOutput(upstream),
    ...output,
    ...pollingOutput(pricing, nextPollAt),
  };
}

async function storedOutput(tx: Tx, now: Instant, staleAfterMs: number) {
  const [living, frozen, service, counts, targets] = await Promise.all([
    listLiving(tx, now),
    findFreeze(tx),
    serviceOutput(tx),
    countsOutput(tx, now, staleAfterMs),
    countTargets(tx),
  ]);
  const daemons = rolesOutput(living);
  return { daemons, service, freeze: frozen ? freezeOutput(frozen) : null, ...counts, targets };
}

function rolesOutput(living: readonly Role[][]) {
  const count = (role: Role) => living.filter((roles) => roles.includes(role)).length;
  const [gateway, api] = [count('gateway'), count('api')];
  return { gateway, api, workers: count('workers'), delivery: count('delivery') };
}

function pollingOutput(pricing: Pricing, nextDueAt: Instant | null) {
  const { price, bounds, budgetPerS, perS, intervalMs, delay, oldestPollAt } = pricing;
  return {
    observation_age_max_ms: Math.round(bounds.maxMs),
    polling: {
      budget_per_s: budgetPerS,
      steady_per_s: perS,
      interval_ms: intervalMs === null ? null : Math.round(intervalMs),
      expected_delay_ms: delay ? Math.round(delay.expectedMs) : null,
      least_delay_ms: delay ? Math.round(delay.leastMs) : null,
      eta: delay ? delay.leastMs / delay.expectedMs : null,
      price_s: price,
      oldest_poll_at: instantText(oldestPollAt),
      next_due_at: instantText(nextDueAt),
    },
  };
}

async function serviceOutput(tx: Tx) {
  const found = await findService(tx);
  return {
    state: found?.state ?? ('not_probed' as const),
    since: instantText(found?.since ?? null),
    announced: found?.announced ? announcementFields(found.announced) : null,
  };
}

export function budgetOutput(upstream: ApiDeps['upstream']) {
  const { budget } = upstream;
  const { setting, byApps, learned, effective } = budget.bounds();
  return {
    setting_per_s: setting,
    by_apps_per_s: byApps,
    learned_per_s: learned,
    effective_per_s: effective,
    rate_per_s: budget.ratePerS(),
    waiting: budget.waiting(),
    next_at: instantText(Math.round(budget.nextAt())),
    blocked_until: {
      polls: instantText(upstream.blockedUntil('polls') ?? null),
      app_read: instantText(upstream.blockedUntil('app-read') ?? null),
      app_write: instantText(upstream.blockedUntil('app-write') ?? null),
      client_token: instantText(upstream.blockedUntil('client-token') ?? null),
    },
  };
}

async function countsOutput(tx: Tx, now: Instant, staleAfterMs: number) {
  const [counts, outcomesProposed, periods, failing, exhausted] = await Promise.all([
    countIn(tx, now, staleAfterMs),
    countProposed(tx, COUNT_MAX),
    findWaitingPeriods(tx, now),
    countFailing(tx),
    countExhausted(tx, COUNT_MAX),
  ]);
  const { stages, operations, drifts, driftMedianS, quarantined, staleWallets } = counts;
  const { vanished } = counts;
  const oldestOf = (state: string) =>
    instantText(operations.find((open) => open.state === state)?.oldestAt ?? null);
  return {
    stages: stages.map(({ stage, waiting, since }) => ({
      stage,
      waiting,
      lag_ms: since === null ? 0 : Math.max(0, now - since),
    })),
    open: {
      operations: Object.fromEntries(operations.map(({ state, count }) => [state, count])),
      oldest_unknown_at: oldestOf('unknown'),
      oldest_undecided_at: oldestOf('undecided'),
      drifts: drifts.open,
      oldest_drift_at: instantText(drifts.oldestAt),
      drifts_unassigned: drifts.unassigned,
      drifts_proposed: drifts.proposed,
      wallets_vanished: vanished.count,
      oldest_vanished_at: instantText(vanished.oldestAt),
      outcomes_proposed: outcomesProposed,
    },
    webhooks: { endpoints_failing: failing, deliveries_exhausted: exhausted },
    periods: { to_sign: periods.toSign, to_close_since: instantText(periods.toCloseSince) },
    drift_resolution_median_s: driftMedianS,
    quarantined,
    stale_wallets: staleWallets,
  };
}
