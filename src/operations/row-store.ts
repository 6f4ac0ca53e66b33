/** How a row of `operations` is read: one list of columns under our names, for every query. */
import type { Sql } from '../db/connect.ts';

/**
 * The columns of an Operation, for `select ${operationColumns(sql)} from tallyhook.operations o`.
 */
export function operationColumns(sql: Sql) {
  return sql`o.id, o.kind, o.state, o.outcome, o.source, o.owner,
    o.idempotency_key as "idempotencyKey",
    o.reference, o.from_addr as "fromAddr", o.to_addr as "toAddr",
    o.operation_no as "operationNo", o.contract_id as "contractId", o.token_id as "tokenId",
    o.amount, o.fee_amount as "feeAmount", o.reason_type as "reasonType",
    o.token_uri as "tokenUri", o.meta_data as "metaData", o.extra_data as "extraData",
    o.tx_app_no as "txAppNo", o.tx_log_no as "txLogNo", o.tx_hash as "txHash",
    o.error_class as "errorClass", o.error_status as "errorStatus", o.error_code as "errorCode",
    o.error_message as "errorMessage", o.pre_image as "preImage", o.evidence,
    o.recorded_at as "recordedAt", o.sent_at as "sentAt", o.send_deadline_at as "sendDeadlineAt",
    o.answered_at as "answeredAt", o.effective_at as "effectiveAt",
    o.effective_basis as "effectiveBasis", o.settled_at as "settledAt",
    o.expires_at as "expiresAt", o.ambiguous, o.postings, o.in_books as "inBooks"`;
}
