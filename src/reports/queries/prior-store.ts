/** SQL of prior-period lines: what a closed period did not know yet when it was closed. */
import type { Instant } from '../../kernel/clock.ts';
import type { ReportParams } from '../params.ts';

export interface PriorLine {
  transactionId: bigint;
  account: string;
  amount: bigint;
  kind: string;
  reasonType: string | null;
  operationId: string | null;
  effectiveAt: Instant;
  recordedAt: Instant;
  total: number;
}

/** Entries in a closed period that were recorded after its cut-off, in the order of recording. */
export async function listPriorLines(params: ReportParams): Promise<PriorLine[]> {
  const { tx, closed, limits } = params;
  if (!closed) return [];
  return tx.sql<PriorLine[]>`
    select t.id as transaction_id, a.name as account, e.amount, t.kind, t.reason_type,
      t.operation_id, t.effective_at, t.recorded_at, (count(*) over ())::int as total
    from tallyhook.transactions t
    join tallyhook.entries e on e.transaction_id = t.id
    join tallyhook.accounts a on a.id = e.account_id
    where t.id > coalesce((select c.last_transaction from tallyhook.chain c
        where c.batch_id = ${closed.lastBatch.toString()}::bigint), 0)
      and t.effective_at < ${closed.to}
    order by t.id, e.line limit ${limits.listMax}`;
}
