/**
 * The events by their type, made from their definitions in src/resources/delivery/events.ts by
 * `npx vitest run test/library/events.test.ts -u`. Amounts and numbers of the service are decimal
 * text, instants RFC 3339 in UTC. Fields may be added, so a receiver ignores what it does not know.
 */

interface Body<Type extends string, Data> {
  /** `evt_…`, the same for every endpoint and attempt. */
  id: string;
  type: Type;
  /** When it happened, as far as known. */
  timestamp: string;
  data: Data;
}

export interface OperationAcceptedData {
  /** Our id of the write. */
  operation_id: string;
  kind:
    | 'give'
    | 'receive_from'
    | 'transfer'
    | 'mint'
    | 'mint_sequential'
    | 'burn'
    | 'set_extra_data'
    | 'transfer_from'
    | 'other';
  /** State of the write. */
  state:
    | 'undecided'
    | 'unknown'
    | 'queued'
    | 'sending'
    | 'accepted'
    | 'executed'
    | 'settled'
    | 'not_executed'
    | 'rejected'
    | 'failed'
    | 'cancelled';
  /** What its state means for the ledger. */
  outcome: 'executed' | 'not_executed' | 'open';
  /** Reference that the app gave to the write. */
  reference: string | null;
  /** A repeated write with it is not sent again. */
  idempotency_key: string | null;
  /** Wallet that pays, or the owner before. */
  from_addr: string | null;
  /** Wallet that receives, or the owner after. */
  to_addr: string | null;
  /** Operator wallet that pays a give. */
  operation_no: string | null;
  /** NFT contract. */
  contract_id: string | null;
  /** NFT token. */
  token_id: string | null;
  /** Requested amount, in service tokens. */
  amount: string | null;
  /** Requested fee, in service tokens. */
  fee_amount: string | null;
  /** Reason as sent with the write. */
  reason_type: string | null;
  /** App number that the service answered, of which `tx_log_no` is one. */
  tx_app_no: string | null;
  /** Transaction number that the service answered. */
  tx_log_no: string | null;
  /** Hash that the service answered to an NFT write. */
  tx_hash: string | null;
  /** Why it was rejected, or why its outcome is unknown. */
  error: {
    /** refused, not_sent or unavailable; of a lost outcome unknown, abandoned or restored. */
    class: string;
    status: number | null;
    code: string | null;
    message: string | null;
  } | null;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface OperationResolvedData {
  /** Our id of the write. */
  operation_id: string;
  kind:
    | 'give'
    | 'receive_from'
    | 'transfer'
    | 'mint'
    | 'mint_sequential'
    | 'burn'
    | 'set_extra_data'
    | 'transfer_from'
    | 'other';
  /** State of the write. */
  state:
    | 'undecided'
    | 'unknown'
    | 'queued'
    | 'sending'
    | 'accepted'
    | 'executed'
    | 'settled'
    | 'not_executed'
    | 'rejected'
    | 'failed'
    | 'cancelled';
  /** What its state means for the ledger. */
  outcome: 'executed' | 'not_executed' | 'open';
  /** Reference that the app gave to the write. */
  reference: string | null;
  /** A repeated write with it is not sent again. */
  idempotency_key: string | null;
  /** Wallet that pays, or the owner before. */
  from_addr: string | null;
  /** Wallet that receives, or the owner after. */
  to_addr: string | null;
  /** Operator wallet that pays a give. */
  operation_no: string | null;
  /** NFT contract. */
  contract_id: string | null;
  /** NFT token. */
  token_id: string | null;
  /** Requested amount, in service tokens. */
  amount: string | null;
  /** Requested fee, in service tokens. */
  fee_amount: string | null;
  /** Reason as sent with the write. */
  reason_type: string | null;
  /** App number that the service answered, of which `tx_log_no` is one. */
  tx_app_no: string | null;
  /** Transaction number that the service answered. */
  tx_log_no: string | null;
  /** Hash that the service answered to an NFT write. */
  tx_hash: string | null;
  /** Why it was rejected, or why its outcome is unknown. */
  error: {
    /** refused, not_sent or unavailable; of a lost outcome unknown, abandoned or restored. */
    class: string;
    status: number | null;
    code: string | null;
    message: string | null;
  } | null;
  /** The observations that support the conclusion. */
  evidence: Record<string, unknown>;
  /** The earlier state, if it was final. */
  supersedes: string | null;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface OperationUndecidedData {
  /** Our id of the write. */
  operation_id: string;
  kind:
    | 'give'
    | 'receive_from'
    | 'transfer'
    | 'mint'
    | 'mint_sequential'
    | 'burn'
    | 'set_extra_data'
    | 'transfer_from'
    | 'other';
  /** State of the write. */
  state:
    | 'undecided'
    | 'unknown'
    | 'queued'
    | 'sending'
    | 'accepted'
    | 'executed'
    | 'settled'
    | 'not_executed'
    | 'rejected'
    | 'failed'
    | 'cancelled';
  /** What its state means for the ledger. */
  outcome: 'executed' | 'not_executed' | 'open';
  /** Reference that the app gave to the write. */
  reference: string | null;
  /** A repeated write with it is not sent again. */
  idempotency_key: string | null;
  /** Wallet that pays, or the owner before. */
  from_addr: string | null;
  /** Wallet that receives, or the owner after. */
  to_addr: string | null;
  /** Operator wallet that pays a give. */
  operation_no: string | null;
  /** NFT contract. */
  contract_id: string | null;
  /** NFT token. */
  token_id: string | null;
  /** Requested amount, in service tokens. */
  amount: string | null;
  /** Requested fee, in service tokens. */
  fee_amount: string | null;
  /** Reason as sent with the write. */
  reason_type: string | null;
  /** App number that the service answered, of which `tx_log_no` is one. */
  tx_app_no: string | null;
  /** Transaction number that the service answered. */
  tx_log_no: string | null;
  /** Hash that the service answered to an NFT write. */
  tx_hash: string | null;
  /** Why it was rejected, or why its outcome is unknown. */
  error: {
    /** refused, not_sent or unavailable; of a lost outcome unknown, abandoned or restored. */
    class: string;
    status: number | null;
    code: string | null;
    message: string | null;
  } | null;
  /** The observations that support the conclusion. */
  evidence: Record<string, unknown>;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface OperationStuckData {
  /** Our id of the write. */
  operation_id: string;
  kind:
    | 'give'
    | 'receive_from'
    | 'transfer'
    | 'mint'
    | 'mint_sequential'
    | 'burn'
    | 'set_extra_data'
    | 'transfer_from'
    | 'other';
  /** State of the write. */
  state:
    | 'undecided'
    | 'unknown'
    | 'queued'
    | 'sending'
    | 'accepted'
    | 'executed'
    | 'settled'
    | 'not_executed'
    | 'rejected'
    | 'failed'
    | 'cancelled';
  /** What its state means for the ledger. */
  outcome: 'executed' | 'not_executed' | 'open';
  /** Reference that the app gave to the write. */
  reference: string | null;
  /** A repeated write with it is not sent again. */
  idempotency_key: string | null;
  /** Wallet that pays, or the owner before. */
  from_addr: string | null;
  /** Wallet that receives, or the owner after. */
  to_addr: string | null;
  /** Operator wallet that pays a give. */
  operation_no: string | null;
  /** NFT contract. */
  contract_id: string | null;
  /** NFT token. */
  token_id: string | null;
  /** Requested amount, in service tokens. */
  amount: string | null;
  /** Requested fee, in service tokens. */
  fee_amount: string | null;
  /** Reason as sent with the write. */
  reason_type: string | null;
  /** App number that the service answered, of which `tx_log_no` is one. */
  tx_app_no: string | null;
  /** Transaction number that the service answered. */
  tx_log_no: string | null;
  /** Hash that the service answered to an NFT write. */
  tx_hash: string | null;
  /** Why it was rejected, or why its outcome is unknown. */
  error: {
    /** refused, not_sent or unavailable; of a lost outcome unknown, abandoned or restored. */
    class: string;
    status: number | null;
    code: string | null;
    message: string | null;
  } | null;
  /** When it was accepted, or found to be executed. */
  executed_at: string;
  stuck_after_ms: number;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface TokenMintedData {
  contract_id: string;
  token_id: string;
  /**
   * The id of the operation whose hash or effect proves that it caused the change, 'external' if
   * none of ours did, 'unknown' if one of several did, or while a mint of ours whose outcome is
   * open may have made the token.
   */
  cause: string;
  previous: {
    owner: string | null;
    status: number | null;
    locked: number | null;
    extra_data: string | null;
    last_tx_hash: string | null;
  } | null;
  current: {
    owner: string | null;
    status: number | null;
    locked: number | null;
    extra_data: string | null;
    last_tx_hash: string | null;
  };
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface WalletObservedData {
  addr: string;
  current: {
    balance: string;
    status: number;
  };
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface WalletBalanceChangedData {
  addr: string;
  previous: {
    balance: string;
    status: number;
  };
  current: {
    balance: string;
    status: number;
  };
  explanation: 'explained' | 'undetermined' | 'unexplained';
  /** Operations that explain the change. */
  operations: string[];
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface WalletStatusChangedData {
  addr: string;
  previous: {
    balance: string;
    status: number;
  };
  current: {
    balance: string;
    status: number;
  };
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface WalletVanishedData {
  addr: string;
  /** It is not found, or it is withdrawn and shows another balance. */
  reason: 'not_found' | 'withdrawn';
  ledger_balance: string;
  /** As last observed. */
  last: {
    balance: string;
    status: number;
  };
  last_observed_at: string;
  absent_since: string;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface WalletReappearedData {
  addr: string;
  how: 'observed' | 'emptied';
  ledger_balance: string;
  /** Null if it was not observed. */
  current: {
    balance: string;
    status: number;
  } | null;
  vanished_at: string;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface WalletDriftOpenedData {
  /** Wallet whose observed balance differs from the expected one. */
  addr: string;
  drift_id: string;
  /**
   * Observed minus expected balance, in service tokens; positive if the wallet holds more than is
   * explained, null until it is exact.
   */
  amount: string | null;
  /**
   * The least amount that the observations allow, in service tokens; equal to amount once that is
   * exact.
   */
  amount_min: string;
  /** The greatest amount that the observations allow, in service tokens. */
  amount_max: string;
  /** The change happened after this time. */
  window_from: string | null;
  /** The change happened before this time. */
  window_to: string;
  /** The observations that support the conclusion. */
  evidence: Record<string, unknown>;
  /** The probable cause. */
  cause:
    | 'made_elsewhere'
    | 'fee_rule'
    | 'lost_operation'
    | 'opening'
    | 'operator_wallet';
  /** The other drift of one transfer made elsewhere between two wallets. */
  counterpart: string | null;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface WalletDriftProposedData {
  /** Wallet whose observed balance differs from the expected one. */
  addr: string;
  drift_id: string;
  /**
   * Observed minus expected balance, in service tokens; positive if the wallet holds more than is
   * explained, null until it is exact.
   */
  amount: string | null;
  /**
   * The least amount that the observations allow, in service tokens; equal to amount once that is
   * exact.
   */
  amount_min: string;
  /** The greatest amount that the observations allow, in service tokens. */
  amount_max: string;
  /** The change happened after this time. */
  window_from: string | null;
  /** The change happened before this time. */
  window_to: string;
  /** The observations that support the conclusion. */
  evidence: Record<string, unknown>;
  /** The probable cause. */
  cause:
    | 'made_elsewhere'
    | 'fee_rule'
    | 'lost_operation'
    | 'opening'
    | 'operator_wallet';
  /** The other drift of one transfer made elsewhere between two wallets. */
  counterpart: string | null;
  proposal: Record<string, unknown>;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface WalletDriftAssignedData {
  /** Wallet whose observed balance differs from the expected one. */
  addr: string;
  drift_id: string;
  /**
   * Observed minus expected balance, in service tokens; positive if the wallet holds more than is
   * explained, null until it is exact.
   */
  amount: string | null;
  /**
   * The least amount that the observations allow, in service tokens; equal to amount once that is
   * exact.
   */
  amount_min: string;
  /** The greatest amount that the observations allow, in service tokens. */
  amount_max: string;
  /** The change happened after this time. */
  window_from: string | null;
  /** The change happened before this time. */
  window_to: string;
  /** The observations that support the conclusion. */
  evidence: Record<string, unknown>;
  /** The probable cause. */
  cause:
    | 'made_elsewhere'
    | 'fee_rule'
    | 'lost_operation'
    | 'opening'
    | 'operator_wallet';
  /** The other drift of one transfer made elsewhere between two wallets. */
  counterpart: string | null;
  assignee: string | null;
  assigned_by: string;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface WalletDriftClosedData {
  /** Wallet whose observed balance differs from the expected one. */
  addr: string;
  drift_id: string;
  /**
   * Observed minus expected balance, in service tokens; positive if the wallet holds more than is
   * explained, null until it is exact.
   */
  amount: string | null;
  /**
   * The least amount that the observations allow, in service tokens; equal to amount once that is
   * exact.
   */
  amount_min: string;
  /** The greatest amount that the observations allow, in service tokens. */
  amount_max: string;
  /** The change happened after this time. */
  window_from: string | null;
  /** The change happened before this time. */
  window_to: string;
  /** The observations that support the conclusion. */
  evidence: Record<string, unknown>;
  /** The probable cause. */
  cause:
    | 'made_elsewhere'
    | 'fee_rule'
    | 'lost_operation'
    | 'opening'
    | 'operator_wallet';
  /** The other drift of one transfer made elsewhere between two wallets. */
  counterpart: string | null;
  /** returned, explained, merged, booked, linked or dismissed. */
  how: string;
  /** An observation, or a decision; if merged, the drift_id that contains it. */
  closed_by: Record<string, unknown>;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface WalletDriftReversedData {
  /** Wallet whose observed balance differs from the expected one. */
  addr: string;
  drift_id: string;
  /**
   * Observed minus expected balance, in service tokens; positive if the wallet holds more than is
   * explained, null until it is exact.
   */
  amount: string | null;
  /**
   * The least amount that the observations allow, in service tokens; equal to amount once that is
   * exact.
   */
  amount_min: string;
  /** The greatest amount that the observations allow, in service tokens. */
  amount_max: string;
  /** The change happened after this time. */
  window_from: string | null;
  /** The change happened before this time. */
  window_to: string;
  /** The observations that support the conclusion. */
  evidence: Record<string, unknown>;
  /** The probable cause. */
  cause:
    | 'made_elsewhere'
    | 'fee_rule'
    | 'lost_operation'
    | 'opening'
    | 'operator_wallet';
  /** The other drift of one transfer made elsewhere between two wallets. */
  counterpart: string | null;
  operation_id: string;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface LedgerFeeRuleAppliedData {
  rules: ({
    from: string | null;
    mode: string;
  })[];
  set_at: string;
  /** Writes whose effects changed. */
  changed: number;
  /** Those of them that were reversed and posted again. */
  reposted: number;
  /** Open drifts that it probably explains, 100 at most. */
  drifts: string[];
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface LedgerFeeRuleContradictedData {
  setting: string;
  /** The mode of the rule that is set. */
  set: string;
  /** The mode that explains the observed balances. */
  observed: string;
  /** Writes whose payer drifts by what it changes. */
  votes_against: number;
  /** Other writes with a fee that settled since the first. */
  votes_for: number;
  /** The first of those that contradict. */
  operation_id: string;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface LedgerVerifyFailedData {
  findings: number;
  /** The first ten. */
  listed: {
    kind: string;
    row: string;
    text: string;
  }[];
  /** Transactions in the chain. */
  transactions: string;
  /** <head>:<batches>. */
  chain_head: string;
  /** Prints all findings. */
  command: string;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface ServiceMaintenanceAnnouncedData {
  service: 'upstream';
  previous: 'active' | 'announced' | 'maintenance' | 'unreachable' | null;
  current: 'active' | 'announced' | 'maintenance' | 'unreachable';
  /** The announced start; UTC is assumed. */
  start: string | null;
  /** As the service wrote it. */
  start_text: string | null;
  /** The announced end; UTC is assumed. */
  end: string | null;
  end_text: string | null;
  message: string | null;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface ObserverLateData {
  /** The guaranteed maximum age. */
  observation_age_max_ms: number;
  targets: number;
  oldest_poll_at: string | null;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface ObserverRecoveredData {
  /** The guaranteed maximum age. */
  observation_age_max_ms: number;
  late_since: string;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface AlertRaisedData {
  alert_id: string;
  /** The name of the rule. */
  rule: string;
  kind:
    | 'wallet_below'
    | 'wallet_above'
    | 'unknown_older'
    | 'drift_above';
  addr: string | null;
  operation_id: string | null;
  drift_id: string | null;
  /** The balance of the wallet, or the amount of the drift. */
  amount: string | null;
  /** The amount of the rule. */
  limit: string | null;
  /** The age of the rule. */
  limit_ms: number | null;
  raised_at: string;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface ReportCompletedData {
  report_id: string;
  kind: string;
  period_from: string;
  period_to: string;
  verdict: string;
  breaks: number;
  /** Made while the period still ran. */
  provisional: boolean;
  hash: string;
  chain_head: string | null;
  link: string;
  /** Where its files are delivered to; each appears when it is whole. */
  files: string[];
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface PeriodClosedData {
  period_id: string;
  period_from: string;
  /** End, excluded: what took effect at exactly this instant belongs to the next period. */
  period_to: string;
  /** The report over exactly this period, which is its answer from now on. */
  report_id: string;
  /** SHA-256 of the content of that report. */
  hash: string;
  /** Head of the hash chain and number of batches at the cut-off, as verify --anchor takes them. */
  chain_head: string | null;
  link: string;
  closed_by: string;
  /** Open items that were signed off at the close. */
  signed_off: number;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface PeriodReopenedData {
  period_id: string;
  period_from: string;
  /** End, excluded: what took effect at exactly this instant belongs to the next period. */
  period_to: string;
  /** The report over exactly this period, which is its answer from now on. */
  report_id: string;
  /** SHA-256 of the content of that report. */
  hash: string;
  /** Head of the hash chain and number of batches at the cut-off, as verify --anchor takes them. */
  chain_head: string | null;
  link: string;
  previous: 'closed' | 'signed' | 'reopened';
  reopened_by: string;
  /** Of a signed period, who proposed it. */
  proposed_by: string | null;
  reason: string;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface EndpointDisabledData {
  endpoint_id: string;
  reason: string;
  /** Only its origin. */
  url: string;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface DeliveryExhaustedData {
  endpoint_id: string;
  reason: string;
  /** Only its origin. */
  url: string;
  delivery_id: string;
  event_id: string;
  attempts: number;
  /** Gap-free from 1 per subject. */
  subject_seq: number;
}

export interface EventsByType {
  /** The service accepted a write and returned its number or hash. */
  'operation.accepted': Body<'operation.accepted', OperationAcceptedData>;
  /** The service rejected a write, or the write was provably not sent. */
  'operation.rejected': Body<'operation.rejected', OperationAcceptedData>;
  /** The response to a write was lost; the service may have applied it. */
  'operation.unknown': Body<'operation.unknown', OperationAcceptedData>;
  /** An unknown outcome was resolved by evidence or by a decision. */
  'operation.resolved': Body<'operation.resolved', OperationResolvedData>;
  /** The evidence does not resolve an unknown outcome; a decision by people is required. */
  'operation.undecided': Body<'operation.undecided', OperationUndecidedData>;
  /** The chain or a balance confirmed a write. */
  'operation.settled': Body<'operation.settled', OperationAcceptedData>;
  /** The chain rejected a write that the service had accepted. */
  'operation.failed': Body<'operation.failed', OperationAcceptedData>;
  /** A write takes longer to settle than the learned settle times. */
  'operation.stuck': Body<'operation.stuck', OperationStuckData>;
  /** A token was first observed after a mint. */
  'token.minted': Body<'token.minted', TokenMintedData>;
  /** The owner of a token changed. */
  'token.transferred': Body<'token.transferred', TokenMintedData>;
  /** A token no longer exists, confirmed by two observations. */
  'token.burned': Body<'token.burned', TokenMintedData>;
  /** The status of a token changed. */
  'token.status_changed': Body<'token.status_changed', TokenMintedData>;
  /** A market locked a token. */
  'token.locked': Body<'token.locked', TokenMintedData>;
  /** A market unlocked a token. */
  'token.unlocked': Body<'token.unlocked', TokenMintedData>;
  /** The extra data of a token changed. */
  'token.extra_data_changed': Body<'token.extra_data_changed', TokenMintedData>;
  /** A wallet was first observed. */
  'wallet.observed': Body<'wallet.observed', WalletObservedData>;
  /** The balance of a wallet changed. */
  'wallet.balance_changed': Body<'wallet.balance_changed', WalletBalanceChangedData>;
  /** The status of a wallet changed. */
  'wallet.status_changed': Body<'wallet.status_changed', WalletStatusChangedData>;
  /** The service no longer shows a wallet of which the ledger holds a balance. */
  'wallet.vanished': Body<'wallet.vanished', WalletVanishedData>;
  /** A wallet that had vanished was observed again, or the ledger holds nothing of it any more. */
  'wallet.reappeared': Body<'wallet.reappeared', WalletReappearedData>;
  /** A drift was confirmed: a difference that no operation explains. */
  'wallet.drift_opened': Body<'wallet.drift_opened', WalletDriftOpenedData>;
  /** A resolution of a drift was proposed; another owner must approve it. */
  'wallet.drift_proposed': Body<'wallet.drift_proposed', WalletDriftProposedData>;
  /** A drift was assigned to a person. */
  'wallet.drift_assigned': Body<'wallet.drift_assigned', WalletDriftAssignedData>;
  /** A drift was closed. */
  'wallet.drift_closed': Body<'wallet.drift_closed', WalletDriftClosedData>;
  /** The booking of a drift was reversed, because it was linked to an operation. */
  'wallet.drift_reversed': Body<'wallet.drift_reversed', WalletDriftReversedData>;
  /** Another fee rule was set, and no write is posted under the former one any more. */
  'ledger.fee_rule_applied': Body<'ledger.fee_rule_applied', LedgerFeeRuleAppliedData>;
  /** Observed balances show the other fee rule: change the setting. */
  'ledger.fee_rule_contradicted': Body<
    'ledger.fee_rule_contradicted',
    LedgerFeeRuleContradictedData
  >;
  /** A verification of the hash chain found rows that are not as they were recorded. */
  'ledger.verify_failed': Body<'ledger.verify_failed', LedgerVerifyFailedData>;
  /** The service announced maintenance. */
  'service.maintenance_announced': Body<
    'service.maintenance_announced',
    ServiceMaintenanceAnnouncedData
  >;
  /** The service started maintenance. */
  'service.maintenance_started': Body<
    'service.maintenance_started',
    ServiceMaintenanceAnnouncedData
  >;
  /** The service ended maintenance. */
  'service.maintenance_ended': Body<'service.maintenance_ended', ServiceMaintenanceAnnouncedData>;
  /** The service does not respond. */
  'service.unreachable': Body<'service.unreachable', ServiceMaintenanceAnnouncedData>;
  /** The service responds again. */
  'service.recovered': Body<'service.recovered', ServiceMaintenanceAnnouncedData>;
  /** Targets were not polled within twice the guaranteed maximum age. */
  'observer.late': Body<'observer.late', ObserverLateData>;
  /** All targets are polled in time again. */
  'observer.recovered': Body<'observer.recovered', ObserverRecoveredData>;
  /** A rule of the configuration (alerts.rules) began to hold. */
  'alert.raised': Body<'alert.raised', AlertRaisedData>;
  /** It holds no more. */
  'alert.cleared': Body<'alert.cleared', AlertRaisedData>;
  /** A report was completed. */
  'report.completed': Body<'report.completed', ReportCompletedData>;
  /** A period was closed with its report; another owner signs it. */
  'period.closed': Body<'period.closed', PeriodClosedData>;
  /** A closed or signed period was reopened. */
  'period.reopened': Body<'period.reopened', PeriodReopenedData>;
  /** An endpoint was disabled; it receives no webhooks until it is enabled. */
  'endpoint.disabled': Body<'endpoint.disabled', EndpointDisabledData>;
  /** A failing endpoint accepted a webhook. */
  'endpoint.recovered': Body<'endpoint.recovered', EndpointDisabledData>;
  /** The last attempt of a delivery failed. */
  'delivery.exhausted': Body<'delivery.exhausted', DeliveryExhaustedData>;
  /** A requested test. */
  'endpoint.test': Body<'endpoint.test', EndpointDisabledData>;
}

export type EventType = keyof EventsByType;

/** An event; its `type` says which `data` it has. */
export type TallyhookEvent = EventsByType[EventType];
