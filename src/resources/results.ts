/** What became of each of many that were acted on at once. */
import { drift } from './drift.ts';
import { id, list, nullable, object } from './fields.ts';
import { problem } from './problem.ts';
import { resource } from './resource.ts';

export const driftResults = resource('DriftResults', {
  data: list(
    object({ id: id('drf'), drift: nullable(object(drift)), problem: nullable(object(problem)) }),
    'Each drift as it is now, or why it stayed as it was',
  ),
});
