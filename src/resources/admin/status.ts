/**
 * The state of the service and of Tallyhook: request budget, backlog of each stage, open work, a
 * freeze; and of a daemon, whether it runs and is ready.
 */
import {
  byName,
  count,
  document,
  id,
  instant,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  text,
} from '../fields.ts';
import { resource } from '../resource.ts';
import { SERVICE_STATES } from '../service.ts';

export const freeze = resource('Freeze', {
  frozen_at: instant(),
  frozen_by: text(),
  reason: text(),
  released_at: nullable(instant()),
  released_by: nullable(text()),
  release_reason: nullable(text()),
});

/** Which parts of Tallyhook a daemon runs. */
export const ROLES = ['gateway', 'api', 'workers', 'delivery'] as const;
export type Role = (typeof ROLES)[number];

const STAGES = ['ledger', 'observer', 'reconciler', 'outbox', 'webhooks'] as const;
export type Stage = (typeof STAGES)[number];

/** A larger number of rows is not counted further. */
export const COUNT_MAX = 10_000;

export const budget = resource('Budget', {
  setting_per_s: nullable(number('The bound that upstream.budget_per_s sets; null: auto')),
  by_apps_per_s: nullable(
    number(
      'Without a setting: 5, or a fourth of the requests of apps that the service answers ' +
        'without throttling, whichever is larger',
    ),
  ),
  learned_per_s: nullable(
    number('What 429, outages or a recent start leave for now; null: no less than that'),
  ),
  effective_per_s: number(
    'The least of these; polls of all daemons together, without requests of apps',
  ),
  rate_per_s: number('The part of each daemon with the role workers'),
  waiting: count('Polls that wait for the budget'),
  next_at: instant(),
  blocked_until: object(
    {
      polls: nullable(instant()),
      app_read: nullable(instant()),
      app_write: nullable(instant()),
      client_token: nullable(instant()),
    },
    'Deadlines that the service set with Retry-After, per class of request',
  ),
});

const open = {
  operations: byName(count(), 'By state'),
  oldest_unknown_at: nullable(instant('When it was recorded')),
  oldest_undecided_at: nullable(instant()),
  drifts: count(),
  oldest_drift_at: nullable(instant()),
  drifts_unassigned: count(),
  drifts_proposed: count('They wait for the approval of an owner'),
  wallets_vanished: count(
    'The service no longer shows them, and the ledger holds a balance of them',
  ),
  oldest_vanished_at: nullable(instant()),
  operators_proposed: count('Operators whose proposed wallet waits for another owner'),
  outcomes_proposed: count('Operations whose proposed outcome waits for another owner'),
};

const polling = {
  budget_per_s: number('Left by polls of open operations; of all daemons together'),
  steady_per_s: number('Of all daemons together'),
  interval_ms: nullable(count('Mean over all steady targets')),
  expected_delay_ms: nullable(
    count('Mean time from a change to its poll, by the learned change rates'),
  ),
  least_delay_ms: nullable(count('The least such mean that any schedule reaches with this budget')),
  eta: nullable(number('The least delay divided by the expected one; 1 is best')),
  price_s: number('Seconds of undetected change that a poll must be expected to save'),
  oldest_poll_at: nullable(instant('Of the target polled longest ago; a few seconds old')),
  next_due_at: nullable(instant('Of any target; in the past while polls are late')),
};

export const status = resource('Status', {
  version: text('Of the program of the daemon that answers'),
  now: instant('The time of the database, which all daemons use'),
  clock_correction_ms: count(
    'Part of `now` that corrects a step of the clock of the database; it decays',
  ),
  daemons: object(
    { gateway: count(), api: count(), workers: count(), delivery: count() },
    'Living daemons that perform each role; that of webhooks counts while it runs',
  ),
  service: object({
    state: oneOf([...SERVICE_STATES, 'not_probed']),
    since: nullable(instant()),
    announced: nullable(
      document(
        {
          start: nullable(instant()),
          start_text: nullable(text()),
          end: nullable(instant()),
          end_text: nullable(text()),
          message: nullable(text()),
        },
        'As the service announced it; UTC is assumed',
      ),
    ),
  }),
  freeze: nullable(object(freeze, 'The freeze in effect; no write is accepted')),
  reports: object(
    {
      time_zone: text('IANA name of the zone whose days reports and periods mean'),
      today: text('The day of `now` in it, such as 2026-12-01'),
      last_day: object({ from: instant(), to: instant('Exclusive') }, 'The day before'),
    },
    'The calendar of reports and periods',
  ),
  budget: object(budget),
  stages: list(
    object({
      stage: oneOf(STAGES),
      waiting: count(`Rows that wait; every number is counted up to ${COUNT_MAX}`),
      lag_ms: count('Age of the oldest row that waits'),
    }),
  ),
  open: object(open),
  webhooks: object({
    endpoints_failing: count('They fail, or failures disabled them'),
    deliveries_exhausted: count('Every attempt failed'),
  }),
  consumers: object({
    count: count(),
    expired: count('Events were pruned before they were pulled'),
    behind: count('Events that the last of them has not acknowledged or read'),
    oldest_event_at: nullable(instant('When the oldest of these was recorded')),
  }),
  periods: object({
    to_sign: count('Closed, and not signed by another owner'),
    to_close_since: nullable(
      instant('When the next period ended that is as long as the last one; else null'),
    ),
    to_reopen_since: nullable(
      instant('Since when the reopening of a signed one waits for another owner; else null'),
    ),
    to_reopen_proposed_by: nullable(text('Owner of the key that proposed that; else null')),
  }),
  quarantined: object(
    {
      operation: count(),
      posting_request: count(),
      observed_holder: count(),
      observation: count(),
    },
    'What waits for a release; see /api/quarantine',
  ),
  drift_resolution_median_s: nullable(
    number('Median time from the first observation of a drift to its end, over 30 days'),
  ),
  stale_wallets: count('Wallets whose newest processed observation is older than stale_after_ms'),
  targets: count('Wallets and tokens that are polled'),
  observation_age_max_ms: count(
    'No steady target is left without a poll for longer, while the service answers',
  ),
  polling: object(polling, 'Polls of steady targets'),
});

export const health = resource('Health', { status: oneOf(['ok']) });

export const readiness = resource('Readiness', {
  status: oneOf(['ok']),
  roles: list(oneOf(ROLES), 'What this daemon runs'),
  delivery: optional(
    oneOf(
      ['running', 'starting'],
      'The process that sends webhooks, of a daemon with that role; starting also after it ended',
    ),
  ),
});

export const webhookKeys = resource('WebhookKeys', {
  keys: list(object({ endpoint_id: id('ep'), public_key: text() })),
});
