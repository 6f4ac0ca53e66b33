/** A token as last observed, and its movements in the ledger. */
import { address, count, digits, hash, id, instant, nullable, oneOf, text } from './fields.ts';
import { resource } from './resource.ts';

/** A token is absent only after two observations in a row. */
export const PRESENCES = ['present', 'absent'] as const;

export const MOVE_KINDS = ['opening', 'mint', 'transfer', 'burn', 'data_change'] as const;

export const token = resource(
  'Token',
  {
    contract_id: digits(),
    token_id: digits(undefined, { title: 'Token' }),
    owner: nullable(address()),
    creator: nullable(address()),
    uri: nullable(text(undefined, { title: 'URI' })),
    metadata: nullable(text()),
    extra_data: nullable(text()),
    status: nullable(count('0 pending, 1 complete, 2 progress, 3 fail', { title: 'State' })),
    locked: nullable(count('1 while it is on a market', { title: 'Market' })),
    last_tx_hash: nullable(hash(undefined, { title: 'Last transaction' })),
    created_text: nullable(text('Text of the service', { title: 'Created' })),
    owned_text: nullable(text('Text of the service', { title: 'Owned since' })),
    observed_at: instant(undefined, { title: 'Last observed' }),
    presence: oneOf(PRESENCES),
    absent_since: nullable(instant(undefined, { title: 'Not found since' })),
  },
  { columns: ['token_id', 'status', 'owner', 'locked', 'observed_at'] },
);

export const tokenMovement = resource(
  'TokenMovement',
  {
    seq: digits('Its number in the ledger'),
    kind: oneOf([...MOVE_KINDS, 'reversal'] as const),
    from_addr: nullable(address(undefined, { title: 'From' })),
    to_addr: nullable(address(undefined, { title: 'To' })),
    tx_hash: nullable(hash(undefined, { title: 'Hash' })),
    operation_id: nullable(
      id('op', 'Null for an opening, for what was made elsewhere, and for their reversals'),
    ),
    reverses: nullable(digits('Of a reversal: what it takes back')),
    not_before: nullable(instant('Start of the observation before the one that showed it')),
    effective_at: instant(undefined, { title: 'Took effect' }),
    effective_basis: text('What gave the time of effect, such as answer, observed or reported'),
    recorded_at: instant(),
  },
  { columns: ['effective_at', 'kind', 'from_addr', 'to_addr', 'tx_hash'] },
);
