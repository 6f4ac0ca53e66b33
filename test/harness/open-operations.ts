/** What a test changes in `operations` by itself, `open_operations` has to follow. */
import type { Db } from '../../src/db/connect.ts';

/** Statements for the owner: the open operations as their rows say. */
export const REFILL_OPEN = [
  'delete from tallyhook.open_operations',
  `insert into tallyhook.open_operations (state, changed_at, id, recorded_at, contract_id,
    conflict_key)
  select o.state, tallyhook.changed_at(o), o.id, o.recorded_at, o.contract_id, o.conflict_key
  from tallyhook.operations o where tallyhook.is_open(o.kind, o.state)
  on conflict do nothing`,
];

export async function refillOpen(owner: Db): Promise<void> {
  await owner.begin(async ({ sql }) => {
    for (const statement of REFILL_OPEN) await sql.unsafe(statement);
  });
}

/** Operations that are open and not listed as they are, or listed and not open. */
export async function listMisplaced({ sql }: Db): Promise<readonly object[]> {
  return sql<object[]>`
    with open as (
      select o.state, tallyhook.changed_at(o) as changed_at, o.id, o.recorded_at, o.contract_id,
        o.conflict_key
      from tallyhook.operations o where tallyhook.is_open(o.kind, o.state)
    ), listed as (
      select state, changed_at, id, recorded_at, contract_id, conflict_key
      from tallyhook.open_operations
    )
    (select * from open except select * from listed)
    union all (select * from listed except select * from open)`;
}
