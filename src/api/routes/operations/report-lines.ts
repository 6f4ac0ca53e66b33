/** The JSON of a reported operation: the fields of each kind of write, and their translation. */
import { z } from '@hono/zod-openapi';
import type { Instant } from '../../../kernel/clock.ts';
import { Failure } from '../../../kernel/errors.ts';
import { canonicalJson, type Json } from '../../../kernel/json.ts';
import { NO_FIELDS, type Report } from '../../../operations/operations.ts';
import { givenOf } from '../../../resources/fields.ts';
import { writeFields } from '../../../resources/operations/operation.ts';
import {
  addressInput,
  decimalInput,
  idInput,
  instantInput,
  positiveDecimalInput,
  textInput,
  txHashInput,
} from '../../http/fields.ts';
import { errorsOf, invalidRequest } from '../../http/problems.ts';

const common = {
  occurred_at: instantInput.openapi({
    description: 'When the service executed it, as far as known',
  }),
  reference: textInput(255).optional(),
  operation_id: idInput('op')
    .optional()
    .openapi({ description: 'The recorded operation that the report is about' }),
  distinct: z.boolean().optional().openapi({
    description: 'True if it is a different write from every open operation that matches it',
  }),
};
const numbered = {
  ...common,
  tx_log_no: decimalInput,
  tx_app_no: decimalInput.optional().openapi({ description: 'Default: the app of this client' }),
  reason_type: textInput(1_000).optional(),
};
const hashed = {
  ...common,
  tx_hash: txHashInput,
  contract_id: decimalInput,
  token_id: decimalInput,
};
const amount = positiveDecimalInput;
const minted = {
  ...hashed,
  to_addr: addressInput,
  token_uri: textInput(8_000).optional(),
  meta_data: textInput(8_000).optional(),
  extra_data: textInput(8_000).optional(),
};
const kind = <K extends Report['kind']>(name: K) => z.literal(name);

export const reportInput = z
  .discriminatedUnion('kind', [
    z.strictObject({
      kind: kind('give'),
      to_addr: addressInput,
      operation_no: decimalInput,
      amount,
      ...numbered,
    }),
    z.strictObject({
      kind: kind('receive_from'),
      from_addr: addressInput,
      amount,
      fee_amount: decimalInput.optional(),
      ...numbered,
    }),
    z.strictObject({
      kind: kind('transfer'),
      from_addr: addressInput,
      to_addr: addressInput,
      amount,
      fee_amount: decimalInput.optional(),
      ...numbered,
    }),
    z.strictObject({ kind: kind('mint'), ...minted }),
    z.strictObject({ kind: kind('mint_sequential'), ...minted }),
    z.strictObject({ kind: kind('burn'), ...hashed }),
    z.strictObject({ kind: kind('set_extra_data'), ...hashed, extra_data: textInput(8_000) }),
    z.strictObject({
      kind: kind('transfer_from'),
      from_addr: addressInput,
      to_addr: addressInput,
      ...hashed,
    }),
  ])
  .openapi('ReportedOperation');

/** What identifies it at the service, of all kinds. */
type Members = { tx_app_no?: bigint | undefined; tx_log_no?: bigint; tx_hash?: string };

/** How far occurred_at may lie ahead of the time of the database. */
const AHEAD_MAX_MS = 300_000;

/** @throws Failure `invalid_request` with the invalid fields */
export function readReport(document: Json, now: Instant): Report {
  const read = reportInput.safeParse(document);
  if (!read.success) throw invalidRequest(errorsOf(read.error));
  const { data } = read;
  if (data.occurred_at > now + AHEAD_MAX_MS)
    throw new Failure(
      'invalid_request',
      'occurred_at: is in the future; use RFC 3339 with a time zone',
    );
  const members: Members = data;
  return {
    kind: data.kind,
    txAppNo: members.tx_app_no ?? null,
    txLogNo: members.tx_log_no ?? null,
    txHash: members.tx_hash ?? null,
    occurredAt: data.occurred_at,
    fields: { ...NO_FIELDS, ...givenOf(writeFields, data) },
    reference: data.reference ?? null,
    operationId: data.operation_id ?? null,
    distinct: data.distinct ?? false,
    body: canonicalJson(document),
  };
}
