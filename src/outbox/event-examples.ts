/** An example body of every event type; the compiler checks that none is missing. */
import type { EventData, EventType } from './events.ts';

const UUID = '0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
const AT = '2026-01-31T09:00:00.000Z';
const ADDR = '0x00112233445566778899aabbccddeeff00112233';
const OTHER = '0xffeeddccbbaa99887766554433221100ffeeddcc';
const HASH = `0x${'1f'.repeat(32)}`;
const EVIDENCE = { observations: [`obs_${UUID}`] };

const operation: EventData<'operation.accepted'> = {
  operation_id: `op_${UUID}`,
  kind: 'transfer',
  state: 'accepted',
  outcome: 'executed',
  reference: 'order 1234',
  idempotency_key: 'order-1234',
  from_addr: ADDR,
  to_addr: OTHER,
  operation_no: null,
  contract_id: null,
  token_id: null,
  amount: '1200',
  fee_amount: '3',
  reason_type: 'purchase',
  tx_app_no: '7',
  tx_log_no: '90071992547409930001',
  tx_hash: null,
  error: null,
};
const open = { state: 'unknown', outcome: 'open', tx_app_no: null, tx_log_no: null } as const;
const refused = { class: 'refused', status: 400, code: '294', message: 'Amount too small' };

interface TokenState {
  owner: string | null;
  status: number | null;
  locked: number;
  extra_data: string;
  last_tx_hash: string;
}
const token: TokenState = {
  owner: ADDR,
  status: 1,
  locked: 0,
  extra_data: 'level=3',
  last_tx_hash: HASH,
};
function tokenChange(
  previous: Partial<TokenState> | null,
  current: Partial<TokenState> = {},
): EventData<'token.minted'> {
  return {
    contract_id: '12',
    token_id: '34',
    cause: `op_${UUID}`,
    previous: previous && { ...token, ...previous },
    current: { ...token, ...current },
  };
}

const balances = {
  addr: ADDR,
  previous: { balance: '5000', status: 1 },
  current: { balance: '3797', status: 1 },
};
const drift = {
  addr: ADDR,
  drift_id: `drf_${UUID}`,
  amount: '-250',
  amount_min: '-250',
  amount_max: '-250',
  window_from: AT,
  window_to: '2026-01-31T09:05:00.000Z',
  evidence: EVIDENCE,
  cause: 'made_elsewhere',
  counterpart: null,
};
const service = {
  service: 'upstream' as const,
  previous: 'active',
  current: 'maintenance',
  start: '2026-01-31T10:00:00.000Z',
  start_text: '2026-01-31 10:00:00',
  end: '2026-01-31T12:00:00.000Z',
  end_text: '2026-01-31 12:00:00',
  message: 'Scheduled maintenance',
};
const period = {
  period_id: `per_${UUID}`,
  period_from: '2026-01-01T00:00:00.000Z',
  period_to: '2026-02-01T00:00:00.000Z',
  report_id: `rep_${UUID}`,
  hash: '5f'.repeat(32),
  chain_head: `${'a7'.repeat(32)}:1042`,
  link: `/api/reports/rep_${UUID}`,
};
const alert: EventData<'alert.raised'> = {
  alert_id: `alr_${UUID}`,
  rule: 'operator-low',
  kind: 'wallet_below',
  addr: ADDR,
  operation_id: null,
  drift_id: null,
  amount: '900',
  limit: '1000',
  limit_ms: null,
  raised_at: AT,
};
const endpoint = { endpoint_id: `ep_${UUID}`, url: 'https://shop.example' };

const DATA: { [T in EventType]: EventData<T> } = {
  'operation.accepted': operation,
  'operation.rejected': {
    ...operation,
    ...open,
    state: 'rejected',
    outcome: 'not_executed',
    error: refused,
  },
  'operation.unknown': { ...operation, ...open },
  'operation.resolved': {
    ...operation,
    ...open,
    state: 'executed',
    outcome: 'executed',
    evidence: EVIDENCE,
    supersedes: null,
  },
  'operation.undecided': { ...operation, ...open, state: 'undecided', evidence: EVIDENCE },
  'operation.settled': { ...operation, state: 'settled' },
  'operation.failed': { ...operation, state: 'failed', outcome: 'not_executed' },
  'operation.stuck': { ...operation, executed_at: AT, stuck_after_ms: 60_000 },
  'token.minted': tokenChange(null),
  'token.transferred': tokenChange({}, { owner: OTHER }),
  'token.burned': tokenChange({}, { owner: null, status: null }),
  'token.status_changed': tokenChange({ status: 0 }),
  'token.locked': tokenChange({}, { locked: 1 }),
  'token.unlocked': tokenChange({ locked: 1 }),
  'token.extra_data_changed': tokenChange({ extra_data: 'level=2' }),
  'wallet.observed': { addr: ADDR, current: balances.previous },
  'wallet.balance_changed': {
    ...balances,
    explanation: 'explained',
    operations: [`op_${UUID}`],
  },
  'wallet.status_changed': { ...balances, current: { balance: '5000', status: 2 } },
  'wallet.vanished': {
    addr: ADDR,
    reason: 'not_found',
    ledger_balance: '5000',
    last: balances.previous,
    last_observed_at: AT,
    absent_since: AT,
  },
  'wallet.reappeared': {
    addr: ADDR,
    how: 'observed',
    ledger_balance: '5000',
    current: balances.previous,
    vanished_at: AT,
  },
  'wallet.drift_opened': drift,
  'wallet.drift_assigned': { ...drift, assignee: 'ann', assigned_by: 'bob' },
  'wallet.drift_proposed': {
    ...drift,
    proposal: {
      n: 1,
      kind: 'book',
      operation_id: null,
      reason: 'paid in cash',
      proposed_by: 'ann',
      approvals_needed: 1,
      approved_by: [],
    },
  },
  'wallet.drift_closed': {
    ...drift,
    how: 'returned',
    closed_by: {
      observation: `obs_${UUID}`,
      observed_at: AT,
      addr: ADDR,
      observed_balance: '5000',
    },
  },
  'wallet.drift_reversed': { ...drift, operation_id: `op_${UUID}` },
  'ledger.fee_rule_applied': {
    rules: [
      { from: null, mode: 'on_top' },
      { from: AT, mode: 'deducted' },
    ],
    set_at: AT,
    changed: 310,
    reposted: 305,
    drifts: [`drf_${UUID}`],
  },
  'ledger.fee_rule_contradicted': {
    setting: 'ledger.fee_mode',
    set: 'on_top',
    observed: 'deducted',
    votes_against: 3,
    votes_for: 0,
    operation_id: `op_${UUID}`,
  },
  'ledger.verify_failed': {
    findings: 1,
    listed: [
      {
        kind: 'changed',
        row: 'transaction 12',
        text: 'transaction 12 was changed: its digest is not the one of the chain',
      },
    ],
    transactions: '2084',
    chain_head: `${'a7'.repeat(32)}:1042`,
    command: 'npx tallyhook verify',
  },
  'service.maintenance_announced': { ...service, current: 'announced' },
  'service.maintenance_started': service,
  'service.maintenance_ended': { ...service, previous: 'maintenance', current: 'active' },
  'service.unreachable': {
    ...service,
    current: 'unreachable',
    start: null,
    end: null,
    message: null,
  },
  'service.recovered': {
    ...service,
    previous: 'unreachable',
    current: 'active',
    start: null,
    end: null,
    message: null,
  },
  'observer.late': { observation_age_max_ms: 60_000, targets: 17, oldest_poll_at: AT },
  'observer.recovered': { observation_age_max_ms: 60_000, late_since: AT },
  'alert.raised': alert,
  'alert.cleared': { ...alert, amount: '5000' },
  'report.completed': {
    report_id: `rep_${UUID}`,
    kind: 'reconciliation',
    period_from: '2026-01-30T00:00:00.000Z',
    period_to: '2026-01-31T00:00:00.000Z',
    verdict: 'balanced',
    breaks: 0,
    provisional: false,
    hash: '5f'.repeat(32),
    chain_head: `${'a7'.repeat(32)}:1042`,
    link: `/api/reports/rep_${UUID}`,
    files: [`/srv/finance/reconciliation_20260130T0000Z_20260131T0000Z_rep_${UUID}.html`],
  },
  'period.closed': { ...period, closed_by: 'ann', signed_off: 0 },
  'period.reopened': { ...period, previous: 'signed', reopened_by: 'bob', reason: 'receipt 17' },
  'endpoint.disabled': { ...endpoint, reason: 'failing' },
  'endpoint.recovered': { ...endpoint, reason: 'delivered' },
  'delivery.exhausted': {
    ...endpoint,
    reason: 'attempts_exhausted',
    delivery_id: `dlv_${UUID}`,
    event_id: `evt_${UUID}`,
    attempts: 10,
  },
  'endpoint.test': { ...endpoint, reason: 'requested' },
};

export function exampleOf(type: EventType) {
  return { id: `evt_${UUID}`, type, timestamp: AT, data: { ...DATA[type], subject_seq: 1 } };
}
