/**
 * A report of a write made elsewhere, as JSON: which fields each kind of write has, and what the
 * journal is told. Pure. One schema serves the document, single reports and each line of many.
 */
import { z } from '@hono/zod-openapi';
import type { Instant } from '../../../kernel/clock.ts';
import { Failure } from '../../../kernel/errors.ts';
import { canonicalJson, type Json } from '../../../kernel/json.ts';
import type { Report, WriteFields } from '../../../operations/operations.ts';
import {
  addressIn,
  decimalPositive,
  idIn,
  instantIn,
  numberIn,
  textIn,
  txHashIn,
} from '../../http/fields.ts';
import { errorsOf } from '../../http/problems.ts';

const about = {
  occurred_at: instantIn.openapi({ description: 'When the service applied it, as far as known' }),
  reference: textIn(255).optional(),
  operation_id: idIn('op').optional().openapi({ description: 'The operation that it is about' }),
  distinct: z.boolean().optional().openapi({
    description: 'True: it is none of the open operations that look like it',
  }),
};
const numbered = {
  ...about,
  tx_log_no: numberIn,
  tx_app_no: numberIn.optional().openapi({ description: 'Our own app when left out' }),
  reason_type: textIn(1_000).optional(),
};
const hashed = { ...about, tx_hash: txHashIn, contract_id: numberIn, token_id: numberIn };
const amount = decimalPositive;
const minted = {
  ...hashed,
  to_addr: addressIn,
  token_uri: textIn(8_000).optional(),
  meta_data: textIn(8_000).optional(),
  extra_data: textIn(8_000).optional(),
};
const kind = <K extends Report['kind']>(name: K) => z.literal(name);

export const reportIn = z
  .discriminatedUnion('kind', [
    z.strictObject({
      ...{ kind: kind('give'), to_addr: addressIn, operation_no: numberIn, amount },
      ...numbered,
    }),
    z.strictObject({
      ...{ kind: kind('receive_from'), from_addr: addressIn, amount },
      ...{ fee_amount: numberIn.optional(), ...numbered },
    }),
    z.strictObject({
      ...{ kind: kind('transfer'), from_addr: addressIn, to_addr: addressIn, amount },
      ...{ fee_amount: numberIn.optional(), ...numbered },
    }),
    z.strictObject({ kind: kind('mint'), ...minted }),
    z.strictObject({ kind: kind('mint_sequential'), ...minted }),
    z.strictObject({ kind: kind('burn'), ...hashed }),
    z.strictObject({ kind: kind('set_extra_data'), ...hashed, extra_data: textIn(8_000) }),
    z.strictObject({
      ...{ kind: kind('transfer_from'), from_addr: addressIn, to_addr: addressIn },
      ...hashed,
    }),
  ])
  .openapi('Report');

/** The members of every kind, as the schema reads them. */
type Members = Partial<
  Record<'from_addr' | 'to_addr' | 'reason_type' | 'token_uri' | 'meta_data' | 'extra_data', string>
> &
  Partial<Record<'operation_no' | 'contract_id' | 'token_id' | 'amount' | 'fee_amount', bigint>> & {
    tx_app_no?: bigint | undefined;
    tx_log_no?: bigint;
    tx_hash?: string;
  };

/** How far the clock of a reporter may be ahead of ours. */
const AHEAD_MAX_MS = 300_000;

/** The report in a parsed document. @throws Failure `invalid_request` naming what is wrong */
export function readReport(document: Json, now: Instant): Report {
  const read = reportIn.safeParse(document);
  if (!read.success) {
    const errors = errorsOf(read.error);
    const detail = errors.map(({ path, message }) => `${path || 'body'}: ${message}`).join('; ');
    throw new Failure('invalid_request', detail.slice(0, 500), { errors: errors.slice(0, 20) });
  }
  const { data } = read;
  if (data.occurred_at > now + AHEAD_MAX_MS)
    throw new Failure(
      'invalid_request',
      'occurred_at: lies in the future; use RFC 3339 with a zone',
    );
  const members: Members = data;
  return {
    kind: data.kind,
    txAppNo: members.tx_app_no ?? null,
    txLogNo: members.tx_log_no ?? null,
    txHash: members.tx_hash ?? null,
    occurredAt: data.occurred_at,
    fields: fieldsOf(members),
    reference: data.reference ?? null,
    operationId: data.operation_id ?? null,
    distinct: data.distinct ?? false,
    body: canonicalJson(document),
  };
}

function fieldsOf(members: Members): Required<WriteFields> {
  return {
    fromAddr: members.from_addr ?? null,
    toAddr: members.to_addr ?? null,
    operationNo: members.operation_no ?? null,
    contractId: members.contract_id ?? null,
    tokenId: members.token_id ?? null,
    amount: members.amount ?? null,
    feeAmount: members.fee_amount ?? null,
    reasonType: members.reason_type ?? null,
    tokenUri: members.token_uri ?? null,
    metaData: members.meta_data ?? null,
    extraData: members.extra_data ?? null,
  };
}
