/**
 * Completes operations that a test inserted or changed by SQL as recording and transitions leave
 * them: their effects with the right phase, the due postings that their states make, and whether
 * they are open.
 */
import { asJson, type Db } from '../../src/db/connect.ts';
import {
  type EffectSettings,
  findOperations,
  recordedEffectsOf,
} from '../../src/operations/operations.ts';
import { refillOpen } from './open-operations.ts';

export async function completeRecords(db: Db, settings: EffectSettings): Promise<void> {
  const bare = await db.sql<{ id: string }[]>`
    select id from tallyhook.operations o where not exists (
      select from tallyhook.operation_effects e where e.operation_id = o.id)`;
  const operations = await findOperations(
    db,
    bare.map(({ id }) => id),
  );
  const recorded = [...operations.values()].map((operation) => {
    return { id: operation.id, ...recordedEffectsOf(operation, settings) };
  });
  const effects = recorded.flatMap(({ id, effects: some }) =>
    some.map((effect, i) => ({ ...effect, id, line: i + 1 })),
  );
  const marked = recorded.filter(({ feeMode }) => feeMode !== null);
  await db.sql`
    update tallyhook.operations o set fee_mode = x."feeMode"
    from jsonb_to_recordset(${asJson(marked.map(({ id, feeMode }) => ({ id, feeMode })))}::jsonb)
      as x(id text, "feeMode" text)
    where o.id = x.id`;
  await db.sql`
    insert into tallyhook.operation_effects (operation_id, line, account, amount, phase)
    select id, line, account, amount, 'open' from jsonb_to_recordset(${asJson(effects)}::jsonb)
      as x(id text, line smallint, account text, amount numeric)
    on conflict do nothing`;
  await db.sql`
    update tallyhook.operation_effects e set phase = p.phase
    from tallyhook.operations o cross join lateral (select case
      when o.state in ('queued', 'undecided', 'settled') then o.state
      when o.outcome = 'not_executed' and exists (
        select from tallyhook.transactions t where t.operation_id = o.id) then 'taken_back'
      else o.outcome end as phase) p
    where o.id = e.operation_id and e.phase <> p.phase and e.phase <> 'taken_back'`;
  await db.sql`
    insert into tallyhook.due_postings (operation_id, due_at)
    select o.id, o.recorded_at from tallyhook.operations o
    left join lateral (select max(posting) as last from (
      select posting from tallyhook.transactions where operation_id = o.id
      union all select posting from tallyhook.nft_movements where operation_id = o.id) x) p on true
    where o.in_ledger <> (coalesce(p.last, 0) % 2 = 1)
    on conflict do nothing`;
  await refillOpen(db);
}
