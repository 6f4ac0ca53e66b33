/** The ledger: accounts, transactions with their entries, and the trial balance. */
import { amount, digits, id, instant, list, nullable, object, oneOf, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const TRANSACTION_KINDS = [
  'give',
  'receive_from',
  'transfer',
  'opening',
  'booking',
  'reversal',
] as const;

/** Of a posting that books a drift. */
export const bookingFields = {
  drift_id: nullable(
    id('drf', 'The drift that it books, or whose booking it reverses; null for any other'),
  ),
  reason: nullable(text('Why people decided that, as the proposer wrote it')),
  decided_by: nullable(
    text('Who decided it: the owner that proposed it, then those that approved it'),
  ),
};

export const account = resource('Account', {
  account: text(
    'Name: wallet:<address>, operator:<number>, fees, collection, opening (balances ' +
      'before the first known entry) or external (suspense: unexplained differences)',
  ),
  kind: text('wallet, operator, fees, collection, opening or external'),
  asset: text('Always service_token'),
  balance: amount('Sum of all its entries, in service tokens'),
  entries: amount('How many it has'),
  opened_at: instant('When the account was opened', { title: 'Opened' }),
});

export const transaction = resource(
  'Transaction',
  {
    id: digits('The transaction; numbered from 1 without gaps', { title: 'Number' }),
    batch_id: digits(),
    kind: oneOf(TRANSACTION_KINDS),
    ...bookingFields,
    operation_id: nullable(id('op', 'The write that it posts; null for openings and bookings')),
    reverses: nullable(digits('The transaction that this one reverses')),
    reason_type: nullable(
      text('Reason as sent with the write; null for postings that are not of a write'),
    ),
    reference: nullable(text('Reference that the app gave to the write')),
    tx_app_no: nullable(digits('App number of the service')),
    tx_log_no: nullable(
      digits(
        'Transaction number of the service, also when it became known after the ' +
          'posting; null while unknown',
      ),
    ),
    requested_by: nullable(
      text('Owner of the key, or the part of Tallyhook that requested the posting', {
        title: 'By',
      }),
    ),
    effective_at: instant('When it took effect, as far as known', { title: 'Took effect' }),
    effective_basis: text(
      'How that is known: answer, observed, recorded, reported or decision (of people)',
    ),
    recorded_at: instant('When it was recorded'),
    entries: list(
      object({ account: text(), amount: amount(), balance_after: amount() }),
      'Their amounts sum to zero',
    ),
  },
  {
    columns: ['id', 'effective_at', 'kind', 'entries', 'requested_by'],
    filters: { account: text(), operation_id: id('op') },
  },
);

export const trialLine = resource('TrialLine', {
  account: text(),
  asset: text(),
  debit: amount(),
  credit: amount(),
});

export const trialBalance = resource(
  'TrialBalance',
  {
    as_of: nullable(instant()),
    known_at: nullable(instant()),
    debit: amount('Total of all accounts; equals credit'),
    credit: amount(),
    data: list(object(trialLine)),
    next_cursor: nullable(text('The cursor of the next page; null on the last page')),
  },
  { filters: { as_of: instant(), known_at: instant() } },
);
