/** The ledger: accounts, transactions with their entries, and the trial balance. */
import {
  amount,
  digits,
  flag,
  id,
  instant,
  list,
  nullable,
  object,
  oneOf,
  text,
} from './fields.ts';
import { resource } from './resource.ts';

export const TRANSACTION_KINDS = [
  'give',
  'receive_from',
  'transfer',
  'opening',
  'booking',
  'reversal',
] as const;

export const account = resource('Account', {
  account: text('Such as wallet:0x…, operator:1, fees, collection, opening'),
  kind: text(),
  asset: text(),
  balance: amount(),
  entries: amount('How many it has'),
  opened_at: instant(undefined, { title: 'Opened' }),
});

export const transaction = resource(
  'Transaction',
  {
    id: digits(undefined, { title: 'Number' }),
    batch_id: digits(),
    kind: oneOf(TRANSACTION_KINDS),
    operation_id: nullable(id('op')),
    reverses: nullable(digits('Of a reversal: the transaction that it takes back')),
    reason_type: nullable(text()),
    reference: nullable(text()),
    tx_app_no: nullable(digits()),
    tx_log_no: nullable(digits()),
    requested_by: nullable(text(undefined, { title: 'By' })),
    effective_at: instant(undefined, { title: 'Took effect' }),
    effective_basis: text('What gave the time of effect, such as answer, observed or reported'),
    recorded_at: instant(),
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

/** Since when, and with what balance, a wallet is known. */
const opening = resource('Opening', {
  addr: text(),
  opening: nullable(amount('Null without an opening')),
  opened_at: nullable(
    instant('The observation that the opening rests on; what took effect before is part of it'),
  ),
  known_since: nullable(
    instant('Where the opening stands: before opened_at when older entries moved it'),
  ),
  observed_at: nullable(instant()),
  drift: amount('Sum of its open drifts'),
});

export const openings = resource('Openings', {
  data: list(object(opening)),
  posting: flag('True while reported operations are not posted'),
});
