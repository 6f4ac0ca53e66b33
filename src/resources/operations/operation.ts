/** An operation: a write asked of the service, or one made elsewhere that was reported. */
import {
  address,
  amount,
  count,
  digits,
  flag,
  hash,
  id,
  instant,
  json,
  list,
  nullable,
  object,
  oneOf,
  text,
} from '../fields.ts';
import { resource } from '../resource.ts';
import { decision } from './decision.ts';

const TOKEN = ['give', 'receive_from', 'transfer'] as const;
const NFT = ['mint', 'mint_sequential', 'burn', 'set_extra_data', 'transfer_from'] as const;

/** `other` is a write on a path that the interface does not document. */
export const KINDS = [...TOKEN, ...NFT, 'other'] as const;
export type Kind = (typeof KINDS)[number];

/** Writes of service tokens, which change balances. */
export const TOKEN_KINDS: readonly Kind[] = TOKEN;
/** Writes of NFTs, which the chain confirms. */
export const NFT_KINDS: readonly Kind[] = NFT;

/** First those that people look for. */
export const STATES = [
  'undecided',
  'unknown',
  'queued',
  'sending',
  'accepted',
  'executed',
  'settled',
  'not_executed',
  'rejected',
  'failed',
  'cancelled',
] as const;
export type State = (typeof STATES)[number];

const OPERATION_OUTCOMES = ['executed', 'not_executed', 'open'] as const;
export type Outcome = (typeof OPERATION_OUTCOMES)[number];

const TEXT_MAX = 1_000;

const parties = {
  from_addr: nullable(address('Wallet that pays, or the owner before', { title: 'From' })),
  to_addr: nullable(address('Wallet that receives, or the owner after', { title: 'To' })),
  operation_no: nullable(digits('Operator wallet that pays a give', { title: 'Operator' })),
  contract_id: nullable(digits('NFT contract', { title: 'Contract' })),
  token_id: nullable(digits('NFT token', { title: 'Token' })),
  amount: nullable(amount('Requested amount, in service tokens')),
  fee_amount: nullable(amount('Requested fee, in service tokens', { title: 'Fee' })),
  reason_type: nullable(text('Reason as sent with the write', { title: 'Reason' })),
};

/** What is asked of the service; the kind of a write decides which of them it has. */
export const writeFields = {
  ...parties,
  token_uri: nullable(text()),
  meta_data: nullable(text()),
  extra_data: nullable(text()),
};

/** What its events say of it. */
export const operationData = resource('OperationData', {
  operation_id: id('op', 'Our id of the write'),
  kind: oneOf(KINDS),
  state: oneOf(STATES, 'State of the write'),
  outcome: oneOf(OPERATION_OUTCOMES, 'What its state means for the ledger'),
  reference: nullable(text('Reference that the app gave to the write')),
  idempotency_key: nullable(text('A repeated write with it is not sent again')),
  ...parties,
  tx_app_no: nullable(digits('App number that the service answered, of which `tx_log_no` is one')),
  tx_log_no: nullable(digits('Transaction number that the service answered', { title: 'Number' })),
  tx_hash: nullable(hash('Hash that the service answered to an NFT write', { title: 'Hash' })),
  error: nullable(
    object(
      {
        class: text(
          'refused, not_sent or unavailable; of a lost outcome unknown, abandoned or restored',
        ),
        status: nullable(count()),
        code: nullable(text()),
        message: nullable(text()),
      },
      'Why it was rejected, or why its outcome is unknown',
    ),
  ),
});

export const operation = resource(
  'Operation',
  {
    id: id('op'),
    ...operationData.fields,
    source: oneOf(['gateway', 'report'], '`report` for one that was made elsewhere'),
    token_uri: writeFields.token_uri,
    extra_data: writeFields.extra_data,
    ambiguous: flag('Sent while another open operation could not be told apart by the balances'),
    recorded_at: instant(undefined, { title: 'Recorded' }),
    sent_at: nullable(instant('When it was sent')),
    answered_at: nullable(
      instant('When the service answered; null when it did not or its answer was lost'),
    ),
    settled_at: nullable(instant('When a balance or the chain confirmed it')),
    effective_at: nullable(
      instant(
        'When it took effect, as far as known; its entries in the ledger have that ' +
          'time, also if the service answers later',
        { title: 'Took effect' },
      ),
    ),
    effective_basis: nullable(
      text('Source of effective_at: answer, observed, reported or decision', {
        title: 'Known from',
      }),
    ),
    expires_at: nullable(
      instant('A queued operation is not sent after this time', { title: 'Expires' }),
    ),
  },
  {
    columns: [
      'recorded_at',
      'id',
      'kind',
      'state',
      'from_addr',
      'to_addr',
      'amount',
      'tx_log_no',
      'reference',
    ],
    filters: {
      state: oneOf(STATES),
      kind: oneOf(KINDS),
      addr: address(),
      contract_id: digits(),
      token_id: digits(),
      tx_log_no: digits(),
      tx_hash: hash(),
      idempotency_key: text(undefined, { max: TEXT_MAX }),
      reference: text(undefined, { max: TEXT_MAX }),
      open: flag('Only those whose state is not final, as `open` in the status'),
      proposed: flag('Only operations whose proposed outcome waits for another owner'),
      since: instant(),
      until: instant(),
    },
  },
);

export const operationDetail = resource('OperationDetail', {
  ...operation.fields,
  transitions: list(
    object({
      from_state: nullable(text()),
      to_state: text(),
      at: instant(),
      cause: text(),
      evidence: json(),
    }),
  ),
  sends: list(
    object({
      n: count(),
      started_at: instant(),
      deadline_at: instant(),
      after: nullable(text('Why the previous send allowed another one')),
    }),
    'Every attempt to deliver it to the service',
  ),
  decisions: list(object(decision)),
  waits_for: nullable(
    object(
      { drifts: list(id('drf')), operations: list(id('op')) },
      'Why an executed operation does not settle although its balance is explained: these ' +
        'open drifts and unknown operations could hold the same difference',
    ),
  ),
  pre_image: json('Last observation of its wallets or token before it was sent'),
  evidence: json('Why the outcome is known, if not by the answer of the service'),
});

/** As a file has operations: the columns of `finance_v1.operations`, then further fields. */
export const operationExport = {
  ...operation,
  columns: [
    'operation_id',
    'kind',
    'state',
    'outcome',
    'tx_app_no',
    'tx_log_no',
    'tx_hash',
    'from_addr',
    'to_addr',
    'operation_no',
    'contract_id',
    'token_id',
    'amount',
    'fee_amount',
    'reason_type',
    'reference',
    'sent_at',
    'answered_at',
    'settled_at',
    'effective_at',
    'recorded_at',
    'source',
  ] satisfies (keyof typeof operation.fields)[],
};
