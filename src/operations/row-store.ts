/** How a row of `operations` is read: one list of columns under our names, for every query. */
import type { Sql } from '../db/connect.ts';

/**
 * The columns of an Operation, for `select ${operationColumns(sql)} from tallyhook.operations o`.
 */
export function operationColumns(sql: Sql) {
  return sql`o.id, o.kind, o.state, o.outcome, o.source, o.owner,
    o.idempotency_key,
    o.reference, o.from_addr, o.to_addr,
    o.operation_no, o.contract_id, o.token_id,
    o.amount, o.fee_amount, o.reason_type,
    o.token_uri, o.meta_data, o.extra_data,
    o.tx_app_no, o.tx_log_no, o.tx_hash,
    o.error_class, o.error_status, o.error_code,
    o.error_message, o.pre_image, o.evidence,
    o.recorded_at, o.sent_at, o.send_deadline_at,
    o.answered_at, o.effective_at,
    o.effective_basis, o.settled_at,
    o.expires_at, o.ambiguous, o.in_ledger`;
}
