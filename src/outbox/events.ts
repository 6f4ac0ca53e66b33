/**
 * The public events: their types, descriptions and the shape of their `data`. This is the contract
 * with receivers; /api/event-types, the OpenAPI document and the types in our code derive from it.
 * Amounts and service numbers are decimal text, instants RFC 3339 UTC.
 */
import { z } from '@hono/zod-openapi';
import {
  alert,
  digits,
  drift,
  endpoint,
  evidence,
  instantText,
  observer,
  operation,
  period,
  service,
  subjectSeq,
  tokenChange,
  wallet,
  walletState,
} from './event-data.ts';

const row = <S extends z.ZodObject>(description: string, data: S) => ({
  description,
  data: data.extend({ subject_seq: subjectSeq }),
});

export const EVENTS = {
  'operation.accepted': row(
    'The service accepted a write and returned its number or hash.',
    operation,
  ),
  'operation.rejected': row(
    'The service rejected a write, or the write was provably not sent.',
    operation,
  ),
  'operation.unknown': row(
    'The response to a write was lost; the service may have applied it.',
    operation,
  ),
  'operation.resolved': row(
    'An unknown outcome was resolved by evidence or by a decision.',
    operation.extend({ evidence, supersedes: z.string().nullable() }),
  ),
  'operation.undecided': row(
    'The evidence does not resolve an unknown outcome; a decision by people is required.',
    operation.extend({ evidence }),
  ),
  'operation.settled': row('The chain or a balance confirmed a write.', operation),
  'operation.failed': row('The chain rejected a write that the service had accepted.', operation),
  'operation.stuck': row(
    'A write takes longer to settle than the learned settle times.',
    operation.extend({
      executed_at: instantText.describe('When it was accepted, or found to be executed'),
      stuck_after_ms: z.number().int(),
    }),
  ),
  'token.minted': row('A token was first observed after a mint.', tokenChange),
  'token.transferred': row('The owner of a token changed.', tokenChange),
  'token.burned': row('A token no longer exists, confirmed by two observations.', tokenChange),
  'token.status_changed': row('The status of a token changed.', tokenChange),
  'token.locked': row('A market locked a token.', tokenChange),
  'token.unlocked': row('A market unlocked a token.', tokenChange),
  'token.extra_data_changed': row('The extra data of a token changed.', tokenChange),
  'wallet.observed': row('A wallet was first observed.', wallet.extend({ current: walletState })),
  'wallet.balance_changed': row(
    'The balance of a wallet changed.',
    wallet.extend({
      previous: walletState,
      current: walletState,
      explanation: z.enum(['explained', 'undetermined', 'unexplained']),
      operations: z.array(z.string()).describe('Operations that explain the change'),
    }),
  ),
  'wallet.status_changed': row(
    'The status of a wallet changed.',
    wallet.extend({ previous: walletState, current: walletState }),
  ),
  'wallet.vanished': row(
    'The service no longer shows a wallet of which the ledger holds a balance.',
    wallet.extend({
      reason: z
        .enum(['not_found', 'withdrawn'])
        .describe('It is not found, or it is withdrawn and shows another balance'),
      ledger_balance: digits,
      last: walletState.describe('As last observed'),
      last_observed_at: instantText,
      absent_since: instantText,
    }),
  ),
  'wallet.reappeared': row(
    'A wallet that had vanished was observed again, or the ledger holds nothing of it any more.',
    wallet.extend({
      how: z.enum(['observed', 'emptied']),
      ledger_balance: digits,
      current: walletState.nullable().describe('Null if it was not observed'),
      vanished_at: instantText,
    }),
  ),
  'wallet.drift_opened': row(
    'A drift was confirmed: a difference that no operation explains.',
    drift,
  ),
  'wallet.drift_proposed': row(
    'A resolution of a drift was proposed; another owner must approve it.',
    drift.extend({ proposal: z.record(z.string(), z.unknown()) }),
  ),
  'wallet.drift_assigned': row(
    'A drift was assigned to a person.',
    drift.extend({ assignee: z.string().nullable(), assigned_by: z.string() }),
  ),
  'wallet.drift_closed': row(
    'A drift was closed.',
    drift.extend({
      how: z.string().describe('returned, explained, merged, booked, linked or dismissed'),
      closed_by: z
        .record(z.string(), z.unknown())
        .describe('An observation, or a decision; if merged, the drift_id that contains it'),
    }),
  ),
  'wallet.drift_reversed': row(
    'The booking of a drift was reversed, because it was linked to an operation.',
    drift.extend({ operation_id: z.string() }),
  ),
  'ledger.fee_rule_applied': row(
    'Another fee rule was set, and no write is posted under the former one any more.',
    z.object({
      rules: z.array(z.object({ from: instantText.nullable(), mode: z.string() })),
      set_at: instantText,
      changed: z.number().int().describe('Writes whose effects changed'),
      reposted: z.number().int().describe('Those of them that were reversed and posted again'),
      drifts: z.array(z.string()).describe('Open drifts that it probably explains, 100 at most'),
    }),
  ),
  'ledger.fee_rule_contradicted': row(
    'Observed balances show the other fee rule: change the setting.',
    z.object({
      setting: z.string(),
      set: z.string().describe('The mode of the rule that is set'),
      observed: z.string().describe('The mode that explains the observed balances'),
      votes_against: z.number().int().describe('Writes whose payer drifts by what it changes'),
      votes_for: z.number().int().describe('Other writes with a fee that settled since the first'),
      operation_id: z.string().describe('The first of those that contradict'),
    }),
  ),
  'ledger.verify_failed': row(
    'A verification of the hash chain found rows that are not as they were recorded.',
    z.object({
      findings: z.number().int(),
      listed: z
        .array(z.object({ kind: z.string(), row: z.string(), text: z.string() }))
        .describe('The first ten'),
      transactions: z.string().describe('Transactions in the chain'),
      chain_head: z.string().describe('<head>:<batches>'),
      command: z.string().describe('Prints all findings'),
    }),
  ),
  'service.maintenance_announced': row('The service announced maintenance.', service),
  'service.maintenance_started': row('The service started maintenance.', service),
  'service.maintenance_ended': row('The service ended maintenance.', service),
  'service.unreachable': row('The service does not respond.', service),
  'service.recovered': row('The service responds again.', service),
  'observer.late': row(
    'Targets were not polled within twice the guaranteed maximum age.',
    observer.extend({ targets: z.number().int(), oldest_poll_at: instantText.nullable() }),
  ),
  'observer.recovered': row(
    'All targets are polled in time again.',
    observer.extend({ late_since: instantText }),
  ),
  'alert.raised': row('A rule of the configuration (alerts.rules) began to hold.', alert),
  'alert.cleared': row('It holds no more.', alert),
  'report.completed': row(
    'A report was completed.',
    z.object({
      report_id: z.string(),
      kind: z.string(),
      period_from: instantText,
      period_to: instantText,
      verdict: z.string(),
      breaks: z.number().int(),
      provisional: z.boolean().describe('Made while the period still ran'),
      hash: z.string(),
      chain_head: z.string().nullable(),
      link: z.string(),
      files: z
        .array(z.string())
        .describe('Where its files are delivered to; each appears when it is whole'),
    }),
  ),
  'period.closed': row(
    'A period was closed with its report; another owner signs it.',
    period.extend({
      closed_by: z.string(),
      signed_off: z.number().int().describe('Open items that were signed off at the close'),
    }),
  ),
  'period.reopened': row(
    'A closed or signed period was reopened.',
    period.extend({ previous: z.string(), reopened_by: z.string(), reason: z.string() }),
  ),
  'endpoint.disabled': row(
    'An endpoint was disabled; it receives no webhooks until it is enabled.',
    endpoint,
  ),
  'endpoint.recovered': row('A failing endpoint accepted a webhook.', endpoint),
  'delivery.exhausted': row(
    'The last attempt of a delivery failed.',
    endpoint.extend({ delivery_id: z.string(), event_id: z.string(), attempts: z.number().int() }),
  ),
  'endpoint.test': row('A requested test.', endpoint),
} as const;

export type EventType = keyof typeof EVENTS;
/** The `data` of an event without `subject_seq`, which the outbox adds. */
export type EventData<T extends EventType> = Omit<
  z.input<(typeof EVENTS)[T]['data']>,
  'subject_seq'
>;

export type EventDraft = {
  [T in EventType]: { type: T; subject: string; occurredAt: number; data: EventData<T> };
}[EventType] & {
  /** No event about the subject can follow, so that its counter is not kept. */
  last?: boolean;
};

/** A recorded event. */
export interface OutboxEvent {
  id: string;
  type: EventType;
  subject: string;
  subjectSeq: bigint;
  occurredAt: number;
  recordedAt: number;
}

/** True for an event type, `group.*` of a known group, or `*`. */
export function isEventPattern(pattern: string): boolean {
  if (pattern === '*' || Object.hasOwn(EVENTS, pattern)) return true;
  const group = /^([a-z]+\.)\*$/.exec(pattern)?.[1];
  return group !== undefined && Object.keys(EVENTS).some((type) => type.startsWith(group));
}
