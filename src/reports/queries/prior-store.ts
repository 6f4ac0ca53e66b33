/** SQL of prior-period lines: what a closed period did not know yet when it was closed. */
import type { Instant } from '../../kernel/clock.ts';
import type { ReportParams } from '../params.ts';
import { entriesOf, lateTransactions } from './entries-store.ts';

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
    from (${lateTransactions(tx, closed.to, closed.recordedSince)}) t
    ${entriesOf(tx)}
    join tallyhook.accounts a on a.id = e.account_id
    order by t.id, e.line limit ${limits.listMax}`;
}
