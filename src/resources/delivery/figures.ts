/** Figures of attempts to deliver webhooks: how many there were, succeeded, and their durations. */
import { count, id, instant, list, nullable, number, object, oneOf, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const FIGURE_STEPS = ['minute', 'hour', 'day'] as const;
export type FigureStep = (typeof FIGURE_STEPS)[number];

const ABOUT = 'estimated from a histogram, each bucket of which ends 1.4 times later';

const counts = {
  delivered: count('Attempts that delivered'),
  failed: count('Attempts that failed'),
  success_rate: number('The delivered part of all attempts, from 0 to 1'),
  mean_ms: number('Mean duration of an attempt, up to the status of the answer'),
  p50_ms: number(`Half of the attempts took no longer, ${ABOUT}`),
  p95_ms: number(`95 of a hundred attempts took no longer, ${ABOUT}`),
  slowest_ms: count(),
};

export const figures = resource('Figures', {
  endpoint_id: nullable(id('ep', 'Null for all endpoints')),
  type: nullable(text('Attempts for events of this type; null for all types')),
  step: oneOf(FIGURE_STEPS),
  since: instant('The begin of the first step, in UTC'),
  until: instant(),
  total: nullable(object(counts, 'Null without any attempt')),
  steps: list(
    object({ at: instant('Its begin'), ...counts }),
    'Oldest first; a step without an attempt is left out',
  ),
  types: list(object({ type: text(), ...counts }), 'By event type'),
});
