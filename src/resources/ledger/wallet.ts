/** A wallet as the ledger has it and as it was last observed, its statement and observations. */
import {
  address,
  amount,
  count,
  digits,
  flag,
  id,
  instant,
  list,
  nullable,
  object,
  oneOf,
  only,
  text,
} from '../fields.ts';
import { resource } from '../resource.ts';
import { drift } from './drift.ts';
import { TRANSACTION_KINDS } from './ledger.ts';

/** `unopened`: shown, and never in drift, because the ledger has no opening of it yet. */
export const VERDICTS = ['unopened', 'explained', 'drifting', 'vanished'] as const;

const RESULTS = ['seen', 'absent', 'inconclusive'] as const;

export const wallet = resource(
  'Wallet',
  {
    addr: address('Address of the wallet', { title: 'Wallet' }),
    status: nullable(
      count(
        'Status that the service showed: 1 normal, 2 suspended, 3 user request, 9 ' +
          'withdrawn; null before the first observation',
      ),
    ),
    opened_at: nullable(instant('Time of the opening; drift is computed from then on')),
    verdict: oneOf(VERDICTS, 'Whether operations and drifts explain the last observation'),
    cause: nullable(text('Why the verdict is not certain')),
    ledger_balance: amount('Posted balance, in service tokens', { title: 'Ledger' }),
    unposted: amount(
      'Sum of executed writes and posting requests that are not posted yet, in ' +
        'service tokens; normally for less than a second',
    ),
    in_flight: amount('Sum of the writes that are sent and not answered yet, in service tokens'),
    unknown: amount(
      'Sum of the writes whose answer was lost and whose outcome is unknown, in ' +
        'service tokens',
    ),
    best_case: amount('ledger_balance + unposted + every open write that increases it'),
    worst_case: amount('ledger_balance + unposted + every open write that decreases it'),
    observed_balance: nullable(
      amount('Balance that the service showed at the newest processed observation', {
        title: 'Observed',
      }),
    ),
    observed_at: nullable(instant('When that observation began', { title: 'Last observed' })),
    ledger_at_observation: nullable(
      amount('What the ledger held when that observation was processed, posting requests included'),
    ),
    drift: amount(
      'Sum of its open drifts, in service tokens; positive when the wallet holds more ' +
        'than is explained',
    ),
  },
  {
    columns: [
      'addr',
      'verdict',
      'ledger_balance',
      'observed_balance',
      'drift',
      'in_flight',
      'observed_at',
    ],
    filters: {
      stale: flag('Only those that `stale_wallets` in the status counts'),
      vanished: flag('Only those that `wallets_vanished` in the status counts'),
    },
  },
);

/** An entry of a wallet with its transaction. */
export const statementLine = resource(
  'StatementLine',
  {
    transaction_id: digits(),
    effective_at: instant(undefined, { title: 'Took effect' }),
    recorded_at: instant(),
    kind: oneOf(TRANSACTION_KINDS),
    reason_type: nullable(text(undefined, { title: 'Reason' })),
    reference: nullable(text()),
    tx_log_no: nullable(digits(undefined, { title: 'Number' })),
    operation_id: nullable(id('op')),
    counterparty: list(text(), 'The other accounts of the transaction', { title: 'With' }),
    amount: amount(),
    fee: amount(
      'Part of an outgoing amount that is the fee of the write; negative where a reversal ' +
        'returns it, else 0',
    ),
    balance_after: amount(),
  },
  {
    columns: [
      'effective_at',
      'kind',
      'counterparty',
      'reason_type',
      'tx_log_no',
      'reference',
      'amount',
      'fee',
      'balance_after',
    ],
  },
);

export const walletObservation = resource(
  'WalletObservation',
  {
    id: id('obs'),
    unchanged_since: instant('Since when it has been observed like this', { title: 'From' }),
    started_at: instant('Of the last poll that showed it'),
    ended_at: instant(undefined, { title: 'Until' }),
    result: oneOf(RESULTS),
    cause: nullable(text('Why it is inconclusive')),
    balance: nullable(amount()),
    status: nullable(digits()),
  },
  { columns: ['unchanged_since', 'ended_at', 'result', 'balance'] },
);

/** Why a wallet holds what it holds: its balances at both ends of a period, and what moved it. */
export const explanation = resource('Explanation', {
  addr: address(),
  from: instant(),
  to: instant('Exclusive'),
  opening: nullable(amount('Of the ledger; null while it is not known')),
  closing: nullable(amount()),
  movements: list(
    object({
      kind: text(),
      reason_type: nullable(text()),
      entries: count(),
      up: amount(),
      down: amount(),
    }),
    'Sums of the entries of one kind and reason',
  ),
  observed: nullable(
    object(
      {
        at: instant(),
        balance: nullable(amount()),
        ledger: nullable(amount('At that observation')),
        verdict: oneOf(VERDICTS),
      },
      'What was observed last; null for a wallet that was never observed',
    ),
  ),
  drifts: list(
    object(
      only(
        drift.fields,
        'id',
        'addr',
        'amount',
        'amount_min',
        'amount_max',
        'state',
        'cause',
        'window_from',
        'window_to',
        'closed_at',
      ),
    ),
    'Those that were open, or began, in the period',
  ),
});
