/** A period that is closed with its report, and what prevents a close. */
import {
  amount,
  count,
  digits,
  document,
  flag,
  hash,
  id,
  instant,
  list,
  nullable,
  object,
  oneOf,
  text,
} from '../fields.ts';
import { resource } from '../resource.ts';

/** How dates of the books are named, in help texts and refusals; see moments.ts. */
export const SPAN_WORDS =
  'a day, month, quarter or year of the reports, such as 2026-11-30, 2026-11, 2026-Q4 or 2026';
export const MOMENT_WORDS = `an RFC 3339 instant, or the begin of ${SPAN_WORDS}`;

/** What a report says of its period. */
export const REPORT_VERDICTS = ['balanced', 'breaks'] as const;

export const PERIOD_STATES = ['closed', 'signed', 'reopened'] as const;
export type PeriodState = (typeof PERIOD_STATES)[number];

/** What the closing owner signed off. */
export const signOff = { kind: text(), subject: text(), reason: text() };

export const period = resource(
  'Period',
  {
    id: id('per'),
    state: oneOf(PERIOD_STATES, 'A reopened one is no longer in force'),
    period_from: instant(undefined, { title: 'From' }),
    period_to: instant(
      'End, excluded: what took effect at exactly this instant belongs to the next period',
      { title: 'To' },
    ),
    report_id: id('rep', 'The report over exactly this period, which is its answer from now on', {
      title: 'Report',
    }),
    report_hash: hash('SHA-256 of the content of that report'),
    last_batch: digits('Cut-off: the last ledger batch in the report, 0 without one'),
    known_at: instant(
      'Time of that batch; what was recorded later and took effect in the period is a ' +
        'prior-period line of later reports',
    ),
    chain_head: nullable(
      text(
        'Head of the hash chain and number of batches at the cut-off, as verify ' +
          '--anchor takes them',
      ),
    ),
    closed_by: text('Owner of the key that closed it'),
    closed_at: instant('When it was closed'),
    sign_offs: list(
      document(signOff),
      'Open items that the closing owner signed off, in their order',
      { title: 'Signed off' },
    ),
    signed_by: nullable(
      text('Owner of the key that signed it, never the one that closed it; null until then'),
    ),
    signed_at: nullable(instant('When it was signed')),
    reopen_proposal: nullable(
      count('Number of the newest proposal to reopen it, which an approval names'),
    ),
    reopen_proposed_by: nullable(
      text('Owner of the key that proposed to reopen it after it was signed'),
    ),
    reopened_by: nullable(
      text('Owner of the key that reopened it, or approved that; never the one that proposed it'),
    ),
    reopened_at: nullable(instant('When it was reopened')),
    reopen_reason: nullable(text('Why, as that person wrote it')),
  },
  {
    columns: [
      'id',
      'period_from',
      'period_to',
      'state',
      'report_id',
      'closed_by',
      'sign_offs',
      'signed_by',
      'reopen_proposed_by',
      'reopened_by',
    ],
    filters: { state: oneOf(PERIOD_STATES) },
  },
);

const obstacle = {
  kind: text(),
  subject: nullable(text()),
  amount: nullable(amount()),
  since: nullable(instant()),
  next: text('What to do'),
  can_sign_off: flag('With a reason, in `sign_offs`; a damaged ledger never'),
};

export const periodClose = resource('PeriodClose', {
  period: nullable(object(period, 'Null after a dry run')),
  period_from: instant(),
  period_to: instant(),
  verdict: oneOf(REPORT_VERDICTS),
  breaks: count(),
  obstacles: list(document(obstacle), 'What prevents the close'),
});
