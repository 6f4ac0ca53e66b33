/** A drift: a difference between the service and the ledger that no operation explains. */
import {
  address,
  amount,
  count,
  document,
  id,
  instant,
  json,
  list,
  nullable,
  number,
  object,
  oneOf,
  text,
} from '../fields.ts';
import { driftProposal, PROPOSALS } from '../operations/decision.ts';
import { resource } from '../resource.ts';

export const DRIFT_STATES = [
  'open',
  'proposed',
  'booked',
  'linked',
  'dismissed',
  'returned',
  'explained',
  'merged',
] as const;
export type DriftState = (typeof DRIFT_STATES)[number];

export const CAUSES = [
  'made_elsewhere',
  'fee_rule',
  'lost_operation',
  'opening',
  'operator_wallet',
] as const;
export type Cause = (typeof CAUSES)[number];

/** The ages of the summary, youngest first: their `order`. */
const AGES = ['1', '2', '3', '4', '5', '6'] as const;

export const drift = resource(
  'Drift',
  {
    id: id('drf', 'Our id of the drift'),
    addr: address('Wallet whose observed balance differs from the expected one', {
      title: 'Wallet',
    }),
    amount: nullable(
      amount(
        'Observed minus expected balance, in service tokens; positive if the wallet ' +
          'holds more than is explained, null until it is exact',
        {
          title: 'Difference',
        },
      ),
    ),
    amount_min: amount(
      'The least amount that the observations allow, in service tokens; equal to ' +
        'amount once that is exact',
    ),
    amount_max: amount('The greatest amount that the observations allow, in service tokens'),
    state: oneOf(DRIFT_STATES),
    suspected_at: instant('Of the first observation that showed it', { title: 'Since' }),
    opened_at: instant('When a second observation confirmed it'),
    closed_at: nullable(
      instant('When it was closed; null while it is open', { title: 'Ended at' }),
    ),
    window_from: nullable(instant('The change happened after this time')),
    window_to: instant('The change happened before this time'),
    evidence: json(),
    cause: oneOf(CAUSES, 'Probable cause', { title: 'Probable cause' }),
    prepared: nullable(
      document(
        { drift_id: id('drf'), proposal: oneOf(PROPOSALS), operation_id: nullable(id('op')) },
        'The proposal that fits the cause; made when none is named. Null until the amount is ' +
          'exact, and with the cause operator_wallet, which ends once the wallet is mapped',
      ),
    ),
    operator: nullable(
      document(
        { operator_no: text('Number of the operator'), gives: list(id('op')) },
        'With the cause operator_wallet: the operator that seems to pay from the wallet, and its ' +
          'gives that sum to the drift',
      ),
    ),
    counterpart: nullable(
      id(
        'drf',
        'The other drift of one transfer made elsewhere between two wallets; both are ' +
          'ended together',
      ),
    ),
    assignee: nullable(text('Who works on it', { title: 'Assigned to' })),
    proposal: nullable(object(driftProposal, 'The newest one')),
    closed_by: nullable(json('The observation or the decision that closed it')),
  },
  {
    columns: ['suspected_at', 'id', 'addr', 'amount', 'state', 'cause', 'assignee'],
    filters: {
      state: oneOf(['unclosed', ...DRIFT_STATES], '`unclosed` stands for open and proposed'),
      cause: oneOf(CAUSES),
      addr: address(),
      assignee: text(undefined, { max: 200 }),
      age: oneOf(AGES, 'The `order` of an age in the summary'),
      ended_since: instant('Only those that ended since then, as `ended` in the summary'),
    },
  },
);

export const driftDetail = resource('DriftDetail', {
  ...drift.fields,
  actions: list(object({ action: text(), at: instant(), by: text(), detail: json() })),
});

const sums = {
  drifts: count(),
  findings: count('As drifts, but a drift and its counterpart are one'),
  up: amount(),
  down: amount(),
};

export const driftSummary = resource('DriftSummary', {
  by_cause: list(object({ cause: oneOf(CAUSES), ...sums })),
  by_age: list(
    object({ order: count(), bucket: text(), ...sums }),
    'By the time since the first observation, youngest first',
  ),
  ended: object(
    { since: instant(), drifts: count(), median_s: nullable(number()) },
    'Median time from the first observation of a drift to its end',
  ),
});
