/** A token as last observed, and its movements in the ledger. */
import { address, count, digits, hash, id, instant, nullable, oneOf, text } from '../fields.ts';
import { resource } from '../resource.ts';

/** A token is absent only after two observations in a row. */
export const PRESENCES = ['present', 'absent'] as const;

export const MOVE_KINDS = ['opening', 'mint', 'transfer', 'burn', 'data_change'] as const;

export const token = resource(
  'Token',
  {
    contract_id: digits('NFT contract'),
    token_id: digits('NFT token', { title: 'Token' }),
    owner: nullable(address('Wallet that owns it')),
    creator: nullable(address()),
    uri: nullable(text(undefined, { title: 'URI' })),
    metadata: nullable(text()),
    extra_data: nullable(text()),
    status: nullable(
      count('Status that the service showed: 0 pending, 1 complete, 2 in progress, 3 failed', {
        title: 'State',
      }),
    ),
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
    seq: digits('Number of the movement, rising in the order of recording, with gaps'),
    kind: oneOf(
      [...MOVE_KINDS, 'reversal'] as const,
      'An opening is of a token that existed when it became known',
    ),
    from_addr: nullable(
      address('Owner before; of a burn the one that the movements before it say', {
        title: 'From',
      }),
    ),
    to_addr: nullable(address('Owner after', { title: 'To' })),
    tx_hash: nullable(
      hash(
        'Chain transaction, also when it became known after the posting; of what was ' +
          'made elsewhere the last one that the token showed',
        { title: 'Hash' },
      ),
    ),
    operation_id: nullable(
      id(
        'op',
        'Our id of the write; null for an opening, for what was made elsewhere, and for ' +
          'their reversals',
      ),
    ),
    reverses: nullable(digits('Of a reversal the seq of the movement that it takes back')),
    not_before: nullable(
      instant(
        'Of what an observation showed: the start of the observation before, which did ' +
          'not show it; null at the first observation',
      ),
    ),
    effective_at: instant(
      'When it took effect, as far as known; of what was made elsewhere the start of ' +
        'the observation that first showed it',
      { title: 'Took effect' },
    ),
    effective_basis: text(
      'What the time rests on: as of a transaction; observed of what observations ' +
        'showed; operation of what a write shows of the owner before it',
    ),
    recorded_at: instant('When it was recorded'),
  },
  { columns: ['effective_at', 'kind', 'from_addr', 'to_addr', 'tx_hash'] },
);
