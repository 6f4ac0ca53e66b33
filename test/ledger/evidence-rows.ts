/** Evidence of all stages, as rows that tests insert and change. */
import type { TestDatabase } from '../harness/database.ts';

export const EVIDENCE = [
  'transitions',
  'drifts',
  'drift_actions',
  'decisions',
  'approvals',
  'quarantine_releases',
  'periods',
  'period_actions',
];
/** One row of each source, but two transitions. */
export const ROWS = [
  `insert into tallyhook.transitions (operation_id, from_state, to_state, at, cause, evidence)
    values ('op_1', null, 'recorded', now(), 'intent', null),
      ('op_1', 'recorded', 'settled', now(), 'a balance', '{"balance":123456789012345678901}')`,
  `insert into tallyhook.drifts (id, wallet_key, addr, amount, amount_min, amount_max, state,
      suspected_at, opened_at, window_to, evidence, cause)
    values ('drf_1', 'w', 'W', 1, 1, 1, 'open', now(), now(), now(), '{"seen":7}',
      'made_elsewhere')`,
  `insert into tallyhook.drift_actions (drift_id, action, at, by, detail)
    values ('drf_1', 'assigned', now(), 'ann', '{"to":"bob"}')`,
  `insert into tallyhook.decisions (subject, n, decision, reason, approvals_needed, proposed_by,
      proposed_key, proposed_at)
    values ('per_1', 1, 'close', 'the month is over', 1, 'ann', 'key_1', now())`,
  `insert into tallyhook.approvals (subject, n, proposed_by, owner, key_id, at)
    values ('per_1', 1, 'ann', 'bob/ops', 'key_2', now())`,
  `insert into tallyhook.quarantine_releases (kind, subject, problem, released_at, released_by,
      released_key, reason)
    values ('operation', 'op_1', 'none', now(), 'ann', 'key_1', 'naïve "quoted"')`,
  `insert into tallyhook.reports (id, kind, period_from, period_to, known_at, requested_by, verdict,
      breaks, provisional, content, hash, created_at)
    values ('rpt_1', 'reconciliation', '2025-12-01', '2026-01-01', now(), 'ann', 'balanced', 0,
      false, '{}', 'h', now())`,
  `insert into tallyhook.periods (id, period_from, period_to, report_id, report_hash, last_batch,
      known_at, decision, closed_by, closed_at)
    values ('per_1', '2025-12-01', '2026-01-01', 'rpt_1', 'h', 0, now(), 1, 'ann', now())`,
  `insert into tallyhook.period_actions (period_id, action, at, by, key_id)
    values ('per_1', 'closed', now(), 'ann', 'key_1')`,
];

export const transition = (id: string, count = 1) => `
  insert into tallyhook.transitions (operation_id, to_state, at, cause)
  select '${id}', 'recorded', now(), 'intent' from generate_series(1, ${count})`;

/** Runs statements as a superuser who switched the guards and foreign keys off. */
export async function tamperWith(owner: TestDatabase['owner'], statements: string): Promise<void> {
  const tables = [...EVIDENCE, 'chained_rows', 'unchained_rows', 'chain', 'batches'];
  await owner.begin(async ({ sql }) => {
    for (const table of tables)
      await sql.unsafe(`alter table tallyhook.${table} disable trigger all`);
    await sql.unsafe(statements);
    for (const table of tables)
      await sql.unsafe(`alter table tallyhook.${table} enable trigger all`);
  });
}
