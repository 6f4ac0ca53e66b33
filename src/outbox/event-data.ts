/** Shapes in the `data` of public events that several types of event share. */
import { z } from '@hono/zod-openapi';

export const digits = z
  .string()
  .regex(/^-?\d+$/)
  .describe('A whole number of any size, as decimal text');
export const instantText = z.string().describe('RFC 3339 UTC');
export const subjectSeq = z.number().int().positive().describe('Gap-free from 1 per subject');
export const evidence = z
  .record(z.string(), z.unknown())
  .describe('The observations that support the conclusion');

export const operation = z.object({
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
const cause = z
  .string()
  .describe(
    'The id of the operation whose hash or effect proves that it caused the change, ' +
      "'external' if none of ours did, 'unknown' if one of several did, or while a mint of ours " +
      'whose outcome is open may have made the token',
  );
export const tokenChange = token.extend({
  cause,
  previous: tokenState.nullable(),
  current: tokenState,
});

export const wallet = z.object({ addr: z.string() });
export const walletState = z.object({ balance: digits, status: z.number().int() });
export const drift = wallet.extend({
  drift_id: z.string(),
  amount: digits
    .nullable()
    .describe('Observed minus expected balance; null while only its bounds are known'),
  amount_min: digits.describe('The least amount that the observations allow'),
  amount_max: digits.describe('The greatest one'),
  window_from: instantText.nullable(),
  window_to: instantText,
  evidence,
  cause: z.string().describe('The probable cause'),
  counterpart: z
    .string()
    .nullable()
    .describe('The other drift of one transfer made elsewhere between two wallets'),
});
export const service = z.object({
  service: z.literal('upstream'),
  previous: z.string().nullable(),
  current: z.string(),
  start: z.string().nullable().describe('The announced start; UTC is assumed'),
  start_text: z.string().nullable().describe('As the service wrote it'),
  end: z.string().nullable().describe('The announced end; UTC is assumed'),
  end_text: z.string().nullable(),
  message: z.string().nullable(),
});
export const observer = z.object({
  observation_age_max_ms: z.number().int().describe('The guaranteed maximum age'),
});
export const alert = z.object({
  alert_id: z.string(),
  rule: z.string().describe('The name of the rule'),
  kind: z.enum(['wallet_below', 'wallet_above', 'unknown_older', 'drift_above']),
  addr: z.string().nullable(),
  operation_id: z.string().nullable(),
  drift_id: z.string().nullable(),
  amount: digits.nullable().describe('The balance of the wallet, or the amount of the drift'),
  limit: digits.nullable().describe('The amount of the rule'),
  limit_ms: z.number().int().nullable().describe('The age of the rule'),
  raised_at: instantText,
});
export const period = z.object({
  period_id: z.string(),
  period_from: instantText,
  period_to: instantText.describe('Exclusive'),
  report_id: z.string(),
  hash: z.string().describe('SHA-256 of the content of the report'),
  chain_head: z.string().nullable(),
  link: z.string(),
});
export const endpoint = z.object({ endpoint_id: z.string(), reason: z.string(), url: z.string() });
