/** SQL of writes whose effects another fee rule changes. */
import { asJson, type Tx } from '../../db/connect.ts';
import type { Operation } from '../operation.ts';
import { operationColumns } from '../store.ts';
import type { Effect } from './effects.ts';
import type { FeeMode } from './fee-rule.ts';

/** A write with a fee, and the rule by which its effects were computed. */
export interface WriteWithFee extends Operation {
  feeMode: FeeMode;
}

/** Writes with a fee, locked so that their states do not change before the end of `tx`. */
export async function lockWithFees(tx: Tx, ids: readonly string[]): Promise<WriteWithFee[]> {
  return tx.sql<WriteWithFee[]>`
    select ${operationColumns(tx.sql)}, o.fee_mode from tallyhook.operations o
    where o.id = any(${ids as string[]}::text[]) and o.fee_mode is not null
    order by o.id for no key update`;
}

/** The lines of writes as they are stored, by operation id, zeros included. */
export async function listLines(
  tx: Tx,
  ids: readonly string[],
): Promise<Map<string, (Effect & { line: number })[]>> {
  const rows = await tx.sql<(Effect & { operationId: string; line: number })[]>`
    select operation_id, line, account, amount from tallyhook.operation_effects
    where operation_id = any(${ids as string[]}::text[]) order by operation_id, line`;
  return Map.groupBy(rows, ({ operationId }) => operationId);
}

/** Stores the effects of writes under another rule; lines keep their accounts. */
export async function changeFees(
  tx: Tx,
  writes: readonly { id: string; feeMode: FeeMode; amounts: readonly bigint[] }[],
): Promise<void> {
  if (writes.length === 0) return;
  await tx.sql`
    with x as (
      select * from jsonb_to_recordset(${asJson(writes)}::jsonb)
        as x(id text, "feeMode" text, amounts jsonb)
    ), marked as (
      update tallyhook.operations o set fee_mode = x."feeMode" from x where o.id = x.id
    )
    update tallyhook.operation_effects e set amount = a.amount::numeric
    from x cross join jsonb_array_elements_text(x.amounts) with ordinality as a(amount, line)
    where e.operation_id = x.id and e.line = a.line and e.amount <> a.amount::numeric`;
}
