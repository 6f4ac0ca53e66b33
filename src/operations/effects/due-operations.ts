/** What the ledger posts of operations. */
import type { Tx } from '../../db/connect.ts';
import type { Operation } from '../operation.ts';
import { operationColumns } from '../store.ts';
import type { Effect } from './effects.ts';

/** Operations by id, with their effects in order; those that cannot be posted have none. */
export async function findWithEffects(
  { sql }: Tx,
  ids: readonly string[],
): Promise<Map<string, { operation: Operation; effects: Effect[] }>> {
  type Row = Operation & { effectAccounts: string[] | null; effectAmounts: bigint[] | null };
  const rows = await sql<Row[]>`
    select ${operationColumns(sql)}, e.effect_accounts, e.effect_amounts
    from tallyhook.operations o cross join lateral (
      select array_agg(account order by line) as effect_accounts,
        array_agg(amount order by line) as effect_amounts
      from tallyhook.operation_effects where operation_id = o.id and amount <> 0) e
    where o.id = any(${ids as string[]}::text[])`;
  return new Map(
    rows.map(({ effectAccounts, effectAmounts, ...operation }) => [
      operation.id,
      {
        operation,
        effects: (effectAccounts ?? []).map((account, n) => ({
          account,
          amount: effectAmounts?.[n] ?? 0n,
        })),
      },
    ]),
  );
}
