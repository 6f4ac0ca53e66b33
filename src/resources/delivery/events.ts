/**
 * The public events: what each says, the fields of its data, and what its example has instead of
 * the examples of the fields. This is the contract with receivers; the types of our code, the
 * schemas, /api/event-types and the webhooks of the API's document derive from it. What a release
 * had stays: ../../../test/resources/event-contract.test.ts compares with the last one.
 */
import { ADDR, AT, HASH, UUID } from '../example.ts';
import {
  address,
  amount,
  count,
  digits,
  type Fields,
  flag,
  hash,
  id,
  instant,
  list,
  nullable,
  object,
  oneOf,
  record,
  type ShownOf,
  text,
} from '../fields.ts';
import { CAUSES, drift } from '../ledger/drift.ts';
import { PERIOD_STATES, period } from '../ledger/period.ts';
import { operationData } from '../operations/operation.ts';
import { SERVICE_STATES } from '../service.ts';

interface EventDefinition<F extends Fields = Fields> {
  readonly description: string;
  /** Of its data, without `subject_seq`, which the outbox adds. */
  readonly data: F;
  readonly example: Partial<ShownOf<F>>;
  /** The first version that has it. */
  readonly since: string;
}

const FIRST_VERSION = '0.2.0';

function event<F extends Fields>(
  description: string,
  data: F,
  example: Partial<ShownOf<F>> = {},
  since: string = FIRST_VERSION,
): EventDefinition<F> {
  return { description, data, example, since };
}

const OTHER = '0xffeeddccbbaa99887766554433221100ffeeddcc';
const EVIDENCE = { observations: [`obs_${UUID}`] };
const CHAIN_HEAD = `${'a7'.repeat(32)}:1042`;

const word = (example: string, description?: string) => text(description, { example });
const number = (example: number, description?: string) => count(description, { example });
const whole = (example: string, description?: string) => amount(description, { example });
const evidence = record('The observations that support the conclusion', { example: EVIDENCE });

const operation = operationData.fields;
const TRANSFER = {
  kind: 'transfer',
  state: 'accepted',
  outcome: 'executed',
  reference: 'order 1234',
  idempotency_key: 'order-1234',
  from_addr: ADDR,
  to_addr: OTHER,
  amount: '1200',
  fee_amount: '3',
  reason_type: 'purchase',
  tx_app_no: '7',
  tx_log_no: '90071992547409930001',
} as const;
const UNKNOWN = {
  ...TRANSFER,
  state: 'unknown',
  outcome: 'open',
  tx_app_no: null,
  tx_log_no: null,
} as const;

const tokenState = {
  owner: nullable(address()),
  status: nullable(count()),
  locked: nullable(count()),
  extra_data: nullable(text()),
  last_tx_hash: nullable(hash()),
};
const tokenChange = {
  contract_id: digits(undefined, { example: '12' }),
  token_id: digits(undefined, { example: '34' }),
  cause: word(
    `op_${UUID}`,
    'The id of the operation whose hash or effect proves that it caused the change, ' +
      "'external' if none of ours did, 'unknown' if one of several did, or while a mint of ours " +
      'whose outcome is open may have made the token',
  ),
  previous: nullable(object(tokenState)),
  current: object(tokenState),
};
type TokenState = ShownOf<typeof tokenState>;

/** An example of a change, from and to what differs from this token. */
function changed(previous: Partial<TokenState> | null, current: Partial<TokenState> = {}) {
  const token = {
    owner: ADDR,
    status: 1,
    locked: 0,
    extra_data: 'level=3',
    last_tx_hash: HASH,
  };
  return { previous: previous && { ...token, ...previous }, current: { ...token, ...current } };
}

const wallet = { addr: address() };
const balanceAndStatus = { balance: whole('5000'), status: number(1) };
const walletState = object(balanceAndStatus);
const walletChange = { ...wallet, previous: walletState, current: walletState };

const { addr, amount: exact, amount_min, amount_max, window_from, window_to } = drift.fields;
const driftData = {
  addr,
  drift_id: id('drf'),
  amount: nullable({ ...exact, example: '-250' }),
  amount_min: { ...amount_min, example: '-250' },
  amount_max: { ...amount_max, example: '-250' },
  window_from: nullable({ ...window_from, example: AT }),
  window_to: { ...window_to, example: '2026-01-31T09:05:00.000Z' },
  evidence,
  cause: oneOf(CAUSES, 'The probable cause'),
  counterpart: nullable(
    id('drf', 'The other drift of one transfer made elsewhere between two wallets'),
  ),
};

const service = {
  service: oneOf(['upstream']),
  previous: nullable(oneOf(SERVICE_STATES, undefined, { example: 'active' })),
  current: oneOf(SERVICE_STATES, undefined, { example: 'maintenance' }),
  start: nullable(word('2026-01-31T10:00:00.000Z', 'The announced start; UTC is assumed')),
  start_text: nullable(word('2026-01-31 10:00:00', 'As the service wrote it')),
  end: nullable(word('2026-01-31T12:00:00.000Z', 'The announced end; UTC is assumed')),
  end_text: nullable(word('2026-01-31 12:00:00')),
  message: nullable(word('Scheduled maintenance')),
};
const UNANNOUNCED = { start: null, end: null, message: null };

const observer = { observation_age_max_ms: number(60_000, 'The guaranteed maximum age') };

const alert = {
  alert_id: id('alr'),
  rule: word('operator-low', 'The name of the rule'),
  kind: oneOf(['wallet_below', 'wallet_above', 'unknown_older', 'drift_above']),
  addr: nullable(address()),
  operation_id: nullable(id('op')),
  drift_id: nullable(id('drf')),
  amount: nullable(whole('900', 'The balance of the wallet, or the amount of the drift')),
  limit: nullable(whole('1000', 'The amount of the rule')),
  limit_ms: nullable(count('The age of the rule')),
  raised_at: instant(),
};

const { period_from, period_to, report_id, report_hash, chain_head } = period.fields;
const periodData = {
  period_id: id('per'),
  period_from: { ...period_from, example: '2026-01-01T00:00:00.000Z' },
  period_to: { ...period_to, example: '2026-02-01T00:00:00.000Z' },
  report_id,
  hash: { ...report_hash, example: '5f'.repeat(32) },
  chain_head: nullable({ ...chain_head, example: CHAIN_HEAD }),
  link: word(`/api/reports/rep_${UUID}`),
};

const endpoint = {
  endpoint_id: id('ep'),
  reason: text(),
  url: word('https://shop.example', 'Only its origin'),
};

export const EVENTS = {
  'operation.accepted': event(
    'The service accepted a write and returned its number or hash.',
    operation,
    TRANSFER,
  ),
  'operation.rejected': event(
    'The service rejected a write, or the write was provably not sent.',
    operation,
    {
      ...UNKNOWN,
      state: 'rejected',
      outcome: 'not_executed',
      error: { class: 'refused', status: 400, code: '294', message: 'Amount too small' },
    },
  ),
  'operation.unknown': event(
    'The response to a write was lost; the service may have applied it.',
    operation,
    UNKNOWN,
  ),
  'operation.resolved': event(
    'An unknown outcome was resolved by evidence or by a decision.',
    { ...operation, evidence, supersedes: nullable(text('The earlier state, if it was final')) },
    { ...UNKNOWN, state: 'executed', outcome: 'executed' },
  ),
  'operation.undecided': event(
    'The evidence does not resolve an unknown outcome; a decision by people is required.',
    { ...operation, evidence },
    { ...UNKNOWN, state: 'undecided' },
  ),
  'operation.settled': event('The chain or a balance confirmed a write.', operation, {
    ...TRANSFER,
    state: 'settled',
  }),
  'operation.failed': event(
    'The chain rejected a write that the service had accepted.',
    operation,
    { ...TRANSFER, state: 'failed', outcome: 'not_executed' },
  ),
  'operation.stuck': event(
    'A write takes longer to settle than the learned settle times.',
    {
      ...operation,
      executed_at: instant('When it was accepted, or found to be executed'),
      stuck_after_ms: number(60_000),
    },
    TRANSFER,
  ),
  'token.minted': event('A token was first observed after a mint.', tokenChange, changed(null)),
  'token.transferred': event(
    'The owner of a token changed.',
    tokenChange,
    changed({}, { owner: OTHER }),
  ),
  'token.burned': event(
    'A token no longer exists, confirmed by two observations.',
    tokenChange,
    changed({}, { owner: null, status: null }),
  ),
  'token.status_changed': event(
    'The status of a token changed.',
    tokenChange,
    changed({ status: 0 }),
  ),
  'token.locked': event('A market locked a token.', tokenChange, changed({}, { locked: 1 })),
  'token.unlocked': event('A market unlocked a token.', tokenChange, changed({ locked: 1 })),
  'token.extra_data_changed': event(
    'The extra data of a token changed.',
    tokenChange,
    changed({ extra_data: 'level=2' }),
  ),
  'wallet.observed': event('A wallet was first observed.', { ...wallet, current: walletState }),
  'wallet.balance_changed': event(
    'The balance of a wallet changed.',
    {
      ...walletChange,
      explanation: oneOf(['explained', 'undetermined', 'unexplained']),
      operations: list(id('op'), 'Operations that explain the change'),
    },
    { current: { balance: '3797', status: 1 } },
  ),
  'wallet.status_changed': event('The status of a wallet changed.', walletChange, {
    current: { balance: '5000', status: 2 },
  }),
  'wallet.vanished': event(
    'The service no longer shows a wallet of which the ledger holds a balance.',
    {
      ...wallet,
      reason: oneOf(
        ['not_found', 'withdrawn'],
        'It is not found, or it is withdrawn and shows another balance',
      ),
      ledger_balance: whole('5000'),
      last: object(balanceAndStatus, 'As last observed'),
      last_observed_at: instant(),
      absent_since: instant(),
    },
  ),
  'wallet.reappeared': event(
    'A wallet that had vanished was observed again, or the ledger holds nothing of it any more.',
    {
      ...wallet,
      how: oneOf(['observed', 'emptied']),
      ledger_balance: whole('5000'),
      current: nullable(object(balanceAndStatus, 'Null if it was not observed')),
      vanished_at: instant(),
    },
    { current: { balance: '5000', status: 1 } },
  ),
  'wallet.drift_opened': event(
    'A drift was confirmed: a difference that no operation explains.',
    driftData,
  ),
  'wallet.drift_proposed': event(
    'A resolution of a drift was proposed; another owner must approve it.',
    { ...driftData, proposal: record() },
    {
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
  ),
  'wallet.drift_assigned': event('A drift was assigned to a person.', {
    ...driftData,
    assignee: nullable(word('ann')),
    assigned_by: word('bob'),
  }),
  'wallet.drift_closed': event(
    'A drift was closed.',
    {
      ...driftData,
      how: word('returned', 'returned, explained, merged, booked, linked or dismissed'),
      closed_by: record('An observation, or a decision; if merged, the drift_id that contains it'),
    },
    {
      closed_by: {
        observation: `obs_${UUID}`,
        observed_at: AT,
        addr: ADDR,
        observed_balance: '5000',
      },
    },
  ),
  'wallet.drift_reversed': event(
    'The booking of a drift was reversed, because it was linked to an operation.',
    { ...driftData, operation_id: id('op') },
  ),
  'ledger.fee_rule_applied': event(
    'Another fee rule was set, and no write is posted under the former one any more.',
    {
      rules: list(object({ from: nullable(instant()), mode: text() })),
      set_at: instant(),
      changed: number(310, 'Writes whose effects changed'),
      reposted: number(305, 'Those of them that were reversed and posted again'),
      drifts: list(id('drf'), 'Open drifts that it probably explains, 100 at most'),
    },
    {
      rules: [
        { from: null, mode: 'on_top' },
        { from: AT, mode: 'deducted' },
      ],
    },
  ),
  'ledger.fee_rule_contradicted': event(
    'Observed balances show the other fee rule: change the setting.',
    {
      setting: word('ledger.fee_mode'),
      set: word('on_top', 'The mode of the rule that is set'),
      observed: word('deducted', 'The mode that explains the observed balances'),
      votes_against: number(3, 'Writes whose payer drifts by what it changes'),
      votes_for: number(0, 'Other writes with a fee that settled since the first'),
      operation_id: id('op', 'The first of those that contradict'),
    },
  ),
  'ledger.verify_failed': event(
    'A verification of the hash chain found rows that are not as they were recorded.',
    {
      findings: number(1),
      listed: list(
        object({
          kind: word('changed'),
          row: word('transaction 12'),
          text: word('transaction 12 was changed: its digest is not the one of the chain'),
        }),
        'The first ten',
      ),
      transactions: word('2084', 'Transactions in the chain'),
      chain_head: word(CHAIN_HEAD, '<head>:<batches>'),
      command: word('npx tallyhook verify', 'Prints all findings'),
    },
  ),
  'service.maintenance_announced': event('The service announced maintenance.', service, {
    current: 'announced',
  }),
  'service.maintenance_started': event('The service started maintenance.', service),
  'service.maintenance_ended': event('The service ended maintenance.', service, {
    previous: 'maintenance',
    current: 'active',
  }),
  'service.unreachable': event('The service does not respond.', service, {
    ...UNANNOUNCED,
    current: 'unreachable',
  }),
  'service.recovered': event('The service responds again.', service, {
    ...UNANNOUNCED,
    previous: 'unreachable',
    current: 'active',
  }),
  'observer.late': event('Targets were not polled within twice the guaranteed maximum age.', {
    ...observer,
    targets: number(17),
    oldest_poll_at: nullable(instant(undefined, { example: AT })),
  }),
  'observer.recovered': event('All targets are polled in time again.', {
    ...observer,
    late_since: instant(),
  }),
  'alert.raised': event('A rule of the configuration (alerts.rules) began to hold.', alert, {
    addr: ADDR,
  }),
  'alert.cleared': event('It holds no more.', alert, {
    addr: ADDR,
    amount: '5000',
  }),
  'report.completed': event('A report was completed.', {
    report_id: id('rep'),
    kind: word('reconciliation'),
    period_from: instant(undefined, { example: '2026-01-30T00:00:00.000Z' }),
    period_to: instant(undefined, { example: '2026-01-31T00:00:00.000Z' }),
    verdict: word('balanced'),
    breaks: number(0),
    provisional: flag('Made while the period still ran'),
    hash: word('5f'.repeat(32)),
    chain_head: nullable(word(CHAIN_HEAD)),
    link: word(`/api/reports/rep_${UUID}`),
    files: list(
      word(`/srv/finance/reconciliation_20260130T0000Z_20260131T0000Z_rep_${UUID}.html`),
      'Where its files are delivered to; each appears when it is whole',
    ),
  }),
  'period.closed': event('A period was closed with its report; another owner signs it.', {
    ...periodData,
    closed_by: word('ann'),
    signed_off: number(0, 'Open items that were signed off at the close'),
  }),
  'period.reopened': event('A closed or signed period was reopened.', {
    ...periodData,
    previous: oneOf(PERIOD_STATES, undefined, { example: 'signed' }),
    reopened_by: word('bob'),
    proposed_by: nullable(word('ann', 'Of a signed period, who proposed it')),
    reason: word('receipt 17'),
  }),
  'endpoint.disabled': event(
    'An endpoint was disabled; it receives no webhooks until it is enabled.',
    endpoint,
    { reason: 'failing' },
  ),
  'endpoint.recovered': event('A failing endpoint accepted a webhook.', endpoint, {
    reason: 'delivered',
  }),
  'delivery.exhausted': event(
    'The last attempt of a delivery failed.',
    { ...endpoint, delivery_id: id('dlv'), event_id: id('evt'), attempts: number(10) },
    { reason: 'attempts_exhausted' },
  ),
  'endpoint.test': event('A requested test.', endpoint, { reason: 'requested' }),
};

export type EventType = keyof typeof EVENTS;
export type EventData<T extends EventType> = ShownOf<(typeof EVENTS)[T]['data']>;

export const EVENT_TYPES = Object.keys(EVENTS) as EventType[];

/** The patterns that match an event type, the most exact one first; in SQL `patterns_of`. */
export function patternsOf(type: string): [type: string, group: string, all: string] {
  return [type, `${type.split('.')[0]}.*`, '*'];
}

/** True for an event type, `group.*` of a known group, or `*`. */
export function isEventPattern(pattern: string): boolean {
  return EVENT_TYPES.some((type) => patternsOf(type).includes(pattern));
}
