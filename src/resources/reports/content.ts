/**
 * The content of a reconciliation report, which is stored, hashed and rendered. It depends only on
 * the database and the parameters: the same cut-off gives the same bytes.
 */
import {
  amount,
  count,
  digits,
  document,
  type Fields,
  flag,
  instant,
  list,
  nullable,
  object,
  oneOf,
  optional,
  text,
} from '../fields.ts';
import { REPORT_VERDICTS } from '../ledger/period.ts';
import { type Resource, type Row, resource, type Shown } from '../resource.ts';
import { findingList } from './finding.ts';
import { report } from './report.ts';

/** A list of bounded length. */
const bounded = <F extends Fields>(of: Resource<F>) => ({
  total: count('Listed or not'),
  listed: list(object(of)),
});

const movementSums = {
  operations: count('Posted operations minus reversed ones'),
  amount: amount(),
  fees: amount(),
};

export const movement = resource(
  'ReportMovement',
  {
    kind: text(),
    reason_type: nullable(text(undefined, { title: 'Reason' })),
    ...movementSums,
    before: optional(
      object(movementSums, 'The same of the period before; reports of earlier releases have none'),
    ),
  },
  { columns: ['kind', 'reason_type', 'operations', 'amount', 'fees'] },
);

const flows = {
  opening: amount(),
  prior_period: amount(
    'Part of the opening that the closed period before did not know at its cut-off; without one, ' +
      'what was recorded after this period had begun',
    { title: 'of which prior period' },
  ),
  incoming: amount(undefined, { title: '+\u00a0In' }),
  outgoing: amount(undefined, { title: '−\u00a0Out' }),
  fees: amount(undefined, { title: '−\u00a0Fees' }),
  closing: amount(undefined, { title: '=\u00a0Closing' }),
};

/** Opening + incoming − outgoing − fees = closing. */
export const rollForward = resource('ReportRollForward', {
  name: text('Kind of the accounts, or name of one account', { title: 'Accounts' }),
  accounts: count(undefined, { title: 'Number' }),
  ...flows,
});

/** Operators, fees and collection. */
export const ownAccount = resource(
  'ReportOwnAccount',
  {
    ...rollForward.fields,
    name: text(undefined, { title: 'Account' }),
    observed: flag('Whether the account is a configured wallet', { title: 'Compared' }),
  },
  { columns: ['name', 'observed', ...(Object.keys(flows) as (keyof typeof flows)[])] },
);

/** An entry that took effect in a closed period and was recorded after its cut-off. */
export const priorLine = resource(
  'ReportPriorLine',
  {
    transaction: digits(),
    account: text(),
    amount: amount(),
    kind: text(),
    reason_type: nullable(text()),
    operation_id: nullable(text(undefined, { title: 'Operation or transaction' })),
    effective_at: instant(undefined, { title: 'Took effect' }),
    recorded_at: instant(undefined, { title: 'Recorded' }),
  },
  { columns: ['account', 'amount', 'kind', 'operation_id', 'effective_at', 'recorded_at'] },
);

/**
 * From the ledger to the observed balance at the end of the period, over all wallets that were
 * opened by then; sums to `observed`.
 */
export const statement = resource('ReportStatement', {
  wallets: count('Opened wallets'),
  ledger: amount(undefined, { title: 'Balance of the ledger at the end of the period' }),
  not_yet_posted: amount(undefined, { title: 'Executed, not yet posted' }),
  in_transit: amount(undefined, { title: 'In flight or unknown, and included' }),
  drift_up: amount(undefined, { title: 'Open drifts up' }),
  drift_down: amount(undefined, { title: 'Open drifts down' }),
  unexplained_up: amount(undefined, { title: 'Not explained, up' }),
  unexplained_down: amount(undefined, { title: 'Not explained, down' }),
  observed: amount(
    'As of the newest observations, without what took effect after the period, and with what did ' +
      'in it and after the observation',
    { title: 'Observed balance, carried to the end of the period' },
  ),
});

const side = { count: count(), amount: amount() };

export const driftAge = resource('ReportDriftAge', {
  bucket: text('Time since the first observation', { title: 'Open drifts of this age' }),
  count: count(undefined, { title: 'Number' }),
  up: amount(),
  down: amount(),
});

/** Open operations that the newest observation of a wallet includes. */
export const inTransit = resource('ReportInTransit', {
  addr: text(undefined, { title: 'Wallet' }),
  amount: amount(),
  operations: list(text(), undefined, {
    title: 'Open operations that the observation includes',
  }),
});

/** Opening + minted − burned + found − missing + surplus = held, in tokens. */
export const supply = resource('ReportSupply', {
  contract_id: digits(undefined, { title: 'Contract' }),
  opening: count(),
  minted: count(undefined, { title: '+ Minted' }),
  burned: count(undefined, { title: '− Burned' }),
  found: count('Held, but not in the ledger', { title: '+ Found' }),
  missing: count('In the ledger, but no longer held', { title: '− Missing' }),
  surplus: count('Burned in the ledger, but held', { title: '+ Surplus' }),
  held: count(undefined, { title: '= Held' }),
});

/** Wallets by their newest observation; with their causes they are all in scope. */
export const coverageCounts = { checked: count(), stale: count(), never_observed: count() };

const causes = list(object({ cause: text(), count: count() }));

export const reconciliation = resource('Reconciliation', {
  format: count(),
  headline: text('`balanced`, or the number of breaks'),
  verdict: oneOf(REPORT_VERDICTS),
  organisation: nullable(text('Printed above the title; null: none is set')),
  time_zone: text('IANA name of the zone in which people are shown times'),
  period: object({ from: instant(), to: instant('Exclusive') }),
  provisional: flag('True while the period still runs; the same report later has other figures'),
  as_of: instant(
    'The end of the period, or of a provisional report when it was made. What began later is ' +
      'left out, and ages are counted up to it; observations may be newer, up to the cut-off',
  ),
  cut_off: object({
    known_at: nullable(instant()),
    batch: digits(),
    transactions: amount(),
    entries: amount(),
    chain_head: nullable(text('`<head>:<batches>`, as `verify --anchor` takes it')),
  }),
  breaks: object(findingList),
  open_items: object(findingList),
  movements: object({
    ...bounded(movement),
    before: optional(
      object(
        { from: instant(), to: instant(), fees: amount() },
        'The period that this one is compared with',
      ),
    ),
  }),
  fees: amount(),
  trial_balance: object({ accounts: count(), debit: amount(), credit: amount() }),
  roll_forward: list(object(rollForward)),
  prior_period: object(
    { closed_until: nullable(instant()), known_at: nullable(instant()), ...bounded(priorLine) },
    'Of the newest closed period that ends at or before the begin of this one, if any',
  ),
  own_accounts: object(bounded(ownAccount)),
  wallets: object({
    statement: object(statement),
    drift: object({ up: object(side), down: object(side) }, 'Never netted'),
    drift_ages: list(object(driftAge), 'Youngest first'),
    drifts_closed: list(object({ state: text(), count: count() })),
    drift_resolution_median_s: nullable(
      count('Median time from the first observation to the end of those drifts'),
    ),
    in_transit: object(bounded(inTransit)),
  }),
  tokens: object({
    supply: object(bounded(supply)),
    writes: object({ settled: count(), failed: count(), pending: count() }),
  }),
  coverage: object({
    in_scope: count(),
    ...coverageCounts,
    inconclusive: causes,
    unopened: causes,
    oldest_check_at: nullable(instant()),
  }),
});
export type Reconciliation = Shown<typeof reconciliation>;

export const reportWithContent = resource('ReportWithContent', {
  ...report.fields,
  content: document(reconciliation.fields),
});
export type Report = Row<typeof reportWithContent>;
