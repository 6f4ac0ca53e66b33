/** A refusal, and what became of each of many that were acted on at once. */
import { ERRORS, type ErrorCode } from '../kernel/errors.ts';
import { observationAge } from './admin/watch.ts';
import {
  count,
  document,
  flag,
  id,
  list,
  nullable,
  object,
  oneOf,
  optional,
  text,
} from './fields.ts';
import { drift } from './ledger/drift.ts';
import { STATES } from './operations/operation.ts';
import { resource } from './resource.ts';

const CODES = Object.keys(ERRORS) as ErrorCode[];

export const problem = resource(
  'Problem',
  {
    type: text(),
    title: text(),
    status: count(),
    code: oneOf(CODES, 'Stable identifier of the error'),
    detail: optional(text()),
    errors: optional(
      list(document({ path: text(), message: text() }), 'The invalid fields of the request'),
    ),
  },
  { isOpen: true },
);

export const driftResults = resource('DriftResults', {
  data: list(
    object({ id: id('drf'), drift: nullable(object(drift)), problem: nullable(object(problem)) }),
    'Each drift as it is now, or why it stayed as it was',
  ),
});

export const reportResult = resource('ReportResult', {
  line: count('Number of the report, from 1'),
  result: oneOf(['recorded', 'known', 'refused']),
  operation_id: nullable(id('op')),
  state: nullable(oneOf(STATES)),
  problem: nullable(object(problem, 'Why the report was refused')),
});

export const reportResults = resource('ReportResults', {
  data: list(object(reportResult)),
  recorded: count(),
  known: count(),
  refused: count(),
});

/** How many lines of a stream of watches were read, and what they changed. */
const lineCounts = {
  lines: count(),
  added: optional(count('Or, where watches are removed, `removed`')),
  watched: optional(count('They were watched already; or `not_watched`')),
  removed: optional(count()),
  not_watched: optional(count()),
  refused: count(),
};

/** A line of the answer to a stream: a refused line, the progress, or the summary at its end. */
export const watchLine = resource('WatchLine', {
  line: optional(count('The number of a refused line')),
  result: optional(oneOf(['refused'])),
  problem: optional(object(problem, 'Why this line, or every further one, was refused')),
  progress: optional(object(lineCounts)),
  summary: optional(object({ ...lineCounts, dry_run: flag(), ...observationAge })),
});
