/**
 * The closed list of public events: what each means and what its `data` holds. This is our contract
 * with receivers; /api/event-types, the OpenAPI document and the types in our own code all come
 * from here. Amounts and service numbers are decimal text, instants RFC 3339 UTC.
 */
import { z } from '@hono/zod-openapi';

const digits = z
  .string()
  .regex(/^-?\d+$/)
  .describe('A whole number of any size, as decimal text');
const instantText = z.string().describe('RFC 3339 UTC');
const subjectSeq = z.number().int().positive().describe('Gap-free from 1 per subject');
const evidence = z.record(z.string(), z.unknown()).describe('What the conclusion rests on');

const operation = z.object({
  operation_id: z.string(),
  kind: z.string(),
  state: z.string(),
  outcome: z.enum(['executed', 'not_executed', 'open']),
  reference: z.string().nullable(),
  idempotency_key: z.string().nullable(),
  from_addr: z.string().nullable(),
  to_addr: z.string().nullable(),
  operation_no: digits.nullable(),
  contract_id: digits.nullable(),
  token_id: digits.nullable(),
  amount: digits.nullable(),
  fee_amount: digits.nullable(),
  reason_type: z.string().nullable(),
  tx_app_no: digits.nullable(),
  tx_log_no: digits.nullable(),
  tx_hash: z.string().nullable(),
  error: z
    .object({
      class: z.string(),
      status: z.number().int().nullable(),
      code: z.string().nullable(),
      message: z.string().nullable(),
    })
    .nullable(),
});

const token = z.object({ contract_id: digits, token_id: digits });
const tokenState = z.object({
  owner: z.string().nullable(),
  status: z.number().int().nullable(),
  locked: z.number().int().nullable(),
  extra_data: z.string().nullable(),
  last_tx_hash: z.string().nullable(),
});
const cause = z.string().describe("The id of our operation that caused it, or 'external'");
const tokenChange = token.extend({ cause, previous: tokenState.nullable(), current: tokenState });

const wallet = z.object({ addr: z.string() });
const walletState = z.object({ balance: digits, status: z.number().int() });
const drift = wallet.extend({
  drift_id: z.string(),
  amount: digits.describe('Observed minus explained; positive when the wallet holds more'),
  window_from: instantText.nullable(),
  window_to: instantText,
  evidence,
});
const service = z.object({
  service: z.literal('upstream'),
  previous: z.string().nullable(),
  current: z.string(),
  start: z.string().nullable(),
  end: z.string().nullable(),
  message: z.string().nullable(),
});
const endpoint = z.object({ endpoint_id: z.string(), reason: z.string(), url: z.string() });

const row = <S extends z.ZodObject>(description: string, data: S) => ({
  description,
  data: data.extend({ subject_seq: subjectSeq }),
});

export const EVENTS = {
  'operation.accepted': row('The service answered a write with its number or hash.', operation),
  'operation.rejected': row('The service refused a write, or it provably never left.', operation),
  'operation.unknown': row(
    'The answer to a write was lost: it may or may not be applied.',
    operation,
  ),
  'operation.resolved': row(
    'An unknown outcome was settled by evidence or by people.',
    operation.extend({ evidence, supersedes: z.string().nullable() }),
  ),
  'operation.undecided': row(
    'The evidence does not decide an unknown outcome: people must.',
    operation.extend({ evidence }),
  ),
  'operation.settled': row('The chain or the balance confirms a write.', operation),
  'operation.failed': row('The chain refused a write that the service had accepted.', operation),
  'operation.stuck': row('A write is overdue against learned settle times.', operation),
  'token.minted': row('A token is seen for the first time after a mint.', tokenChange),
  'token.transferred': row('The owner of a token changed.', tokenChange),
  'token.burned': row('A token is gone, confirmed by two looks.', tokenChange),
  'token.status_changed': row('The status of a token changed.', tokenChange),
  'token.locked': row('A market locked a token.', tokenChange),
  'token.unlocked': row('A token is free again.', tokenChange),
  'token.extra_data_changed': row('The extra data of a token changed.', tokenChange),
  'wallet.observed': row('First sight of a wallet.', wallet.extend({ current: walletState })),
  'wallet.balance_changed': row(
    'The balance that the service shows changed.',
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
  'wallet.drift_opened': row('A confirmed difference that nothing of ours explains.', drift),
  'wallet.drift_proposed': row(
    'Somebody proposed how to end a drift; another owner must approve.',
    drift.extend({ proposal: z.record(z.string(), z.unknown()) }),
  ),
  'wallet.drift_closed': row('A drift ended.', drift.extend({ how: z.string() })),
  'service.maintenance_announced': row('The service announced maintenance.', service),
  'service.maintenance_started': row('The service is down for maintenance.', service),
  'service.maintenance_ended': row('The service is back from maintenance.', service),
  'service.unreachable': row('The service does not answer.', service),
  'service.recovered': row('The service answers again.', service),
  'report.completed': row(
    'A report is ready.',
    z.object({
      report_id: z.string(),
      kind: z.string(),
      period_from: instantText,
      period_to: instantText,
      verdict: z.string(),
      breaks: z.number().int(),
      hash: z.string(),
      link: z.string(),
    }),
  ),
  'endpoint.disabled': row('An endpoint gets no more webhooks until it is enabled.', endpoint),
  'endpoint.recovered': row('An endpoint answers again after failing.', endpoint),
  'delivery.exhausted': row(
    'Every attempt for one delivery failed.',
    endpoint.extend({ delivery_id: z.string(), event_id: z.string(), attempts: z.number().int() }),
  ),
  'endpoint.test': row('A test that somebody asked for.', endpoint),
} as const;

export type EventType = keyof typeof EVENTS;
/** The `data` of an event as its producer gives it: `subject_seq` is added by the outbox. */
export type EventData<T extends EventType> = Omit<
  z.input<(typeof EVENTS)[T]['data']>,
  'subject_seq'
>;

/** An event that a producer hands to the outbox inside its own transaction. */
export type EventDraft = {
  [T in EventType]: { type: T; subject: string; occurredAt: number; data: EventData<T> };
}[EventType];

/** A recorded event. */
export interface OutboxEvent {
  id: string;
  type: EventType;
  subject: string;
  subjectSeq: bigint;
  occurredAt: number;
  recordedAt: number;
  body: string;
}

/** True for an exact type of the list, `group.*` with a known group, or `*`. */
export function isEventPattern(pattern: string): boolean {
  if (pattern === '*' || Object.hasOwn(EVENTS, pattern)) return true;
  const group = /^([a-z]+\.)\*$/.exec(pattern)?.[1];
  return group !== undefined && Object.keys(EVENTS).some((type) => type.startsWith(group));
}
