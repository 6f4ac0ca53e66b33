/** What happened over time, in steps of equal length, for plots. */
import { count, instant, list, nullable, number, object, oneOf } from '../fields.ts';
import { resource } from '../resource.ts';
import { SERVICE_STATES } from '../service.ts';

const steps = {
  since: instant(),
  step_s: count('Length of a step; a step without any row is left out'),
  steps: count('From `since` until now'),
};
export const activitySteps = resource('ActivitySteps', steps);

/** The writes of a step. */
export const writeStep = resource('WriteStep', {
  at: instant(),
  writes: count(),
  not_executed: count('Without effect at the service'),
  open: count('Whose outcome is still open or undecided'),
  answer_p95_ms: nullable(
    number('How long the service took to answer, in milliseconds: the 95th of a hundred'),
  ),
});

/** The attempts of a step to deliver webhooks. */
export const attemptStep = resource('AttemptStep', {
  at: instant(),
  delivered: count(),
  failed: count(),
  mean_ms: number('How long receivers took to answer'),
  slowest_ms: count(),
});

/** Means over the minutes of a step; of the oldest poll, the greatest age. */
export const pollStep = resource('PollStep', {
  at: instant(),
  requests_per_s: number('Polls'),
  allowed_per_s: number(),
  expected_delay_ms: nullable(
    number('Mean time from a change to its poll, by the learned change rates'),
  ),
  oldest_poll_ms: nullable(
    number('The greatest age of the oldest poll: no change was undetected for longer'),
  ),
});

export const activity = resource('Activity', {
  ...steps,
  writes: list(object(writeStep.fields)),
  attempts: list(object(attemptStep.fields), 'Attempts to deliver webhooks'),
  polling: list(
    object(pollStep.fields),
    'The use of the request budget, and the delay of detection',
  ),
  service: list(
    object({ from: instant(), to: instant(), state: oneOf(SERVICE_STATES) }),
    'The states of the service, as far as they are known',
  ),
});

export const endpointActivity = resource('EndpointActivity', {
  ...steps,
  attempts: list(object(attemptStep.fields)),
});
