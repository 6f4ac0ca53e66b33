/** The table of states in the program and the trigger in the database allow the same sequences. */
import { expect, it } from 'vitest';
import { ENDED_BY, FOLLOWS } from '../../../src/reconciler/drifts/states.ts';
import { DRIFT_STATES, type DriftState } from '../../../src/resources/ledger/drift.ts';
import { useDatabase } from '../../harness/database.ts';

const database = await useDatabase();
const { sql } = database.db;
const KINDS = Object.entries(ENDED_BY).map(([kind, state]) => [state, kind] as const);
let drifts = 0;

async function insertOpen(): Promise<string> {
  const id = `drf_${++drifts}`;
  await sql`
    insert into tallyhook.drifts (id, wallet_key, addr, amount, amount_min, amount_max, state,
      suspected_at, opened_at, window_to, evidence, cause)
    values (${id}, 'w', 'w', 1, 1, 1, 'open', now(), now(), now(), '{}', 'made_elsewhere')`;
  return id;
}

/** Approves what leads to the state, if people decide it. */
async function decide(id: string, state: DriftState, needed: number): Promise<void> {
  const kind = new Map<DriftState, string>(KINDS).get(state);
  if (kind === undefined) return;
  const [made] = await sql<{ n: number }[]>`
    insert into tallyhook.decisions (subject, n, decision, operation_id, reason, approvals_needed,
      proposed_by, proposed_key, proposed_at)
    select ${id}, count(*) + 1, ${kind}, ${kind === 'link' ? 'op_1' : null}, 'r', ${needed}, 'ann',
      'k', now()
    from tallyhook.decisions where subject = ${id} returning n::int as n`;
  await sql`
    insert into tallyhook.approvals (subject, n, proposed_by, owner, key_id, at)
    values (${id}, ${made?.n ?? 0}, 'ann', 'bob', 'k', now())`;
}

const move = (id: string, to: DriftState) => sql`
  update tallyhook.drifts set state = ${to},
    closed_at = case when ${['open', 'proposed'].includes(to)} then null
      else coalesce(closed_at, now()) end,
    closed_by = case when ${['open', 'proposed'].includes(to)} then null else '{}'::jsonb end
  where id = ${id}`;

/** The way from open to each state. */
const WAYS: Record<DriftState, DriftState[]> = {
  open: [],
  proposed: ['proposed'],
  booked: ['proposed', 'booked'],
  linked: ['proposed', 'linked'],
  dismissed: ['proposed', 'dismissed'],
  returned: ['returned'],
  explained: ['explained'],
  merged: ['merged'],
};

it.each(DRIFT_STATES)(
  'After %s the database allows what the table of states allows',
  async (from) => {
    await sql`
    insert into tallyhook.operations (id, kind, state, source, owner, key_id, fingerprint, key_held,
      method, path, request_body, recorded_at)
    values ('op_1', 'other', 'accepted', 'gateway', 'o', 'k', 'f', false, 'POST', '/', '', now())
    on conflict do nothing`;
    const allowed: DriftState[] = [];
    for (const to of DRIFT_STATES) {
      const id = await insertOpen();
      for (const state of WAYS[from]) {
        await decide(id, state, 1);
        await move(id, state);
      }
      await decide(id, to, 1);
      const isAllowed = await move(id, to).then(
        () => true,
        () => false,
      );
      if (isAllowed && to !== from) allowed.push(to);
    }
    expect(allowed.toSorted()).toEqual(FOLLOWS[from].toSorted());
  },
);

it('With one approval of two a drift does not end', async () => {
  const id = await insertOpen();
  await move(id, 'proposed');
  await decide(id, 'booked', 2);
  await expect(move(id, 'booked')).rejects.toMatchObject({ code: 'TH006' });
});

it('A drift begins open, and neither its exact amount nor its identity changes', async () => {
  const id = await insertOpen();
  for (const change of ['amount = 2, amount_min = 2, amount_max = 2', "wallet_key = 'x'"])
    await expect(
      sql.unsafe(`update tallyhook.drifts set ${change} where id = '${id}'`),
    ).rejects.toMatchObject({ code: expect.stringMatching(/^TH00[16]/) });
  const begun = sql`
    insert into tallyhook.drifts (id, wallet_key, addr, amount_min, amount_max, state, suspected_at,
      opened_at, window_to, evidence, cause, closed_at, closed_by)
    values ('drf_x', 'w', 'w', 1, 1, 'returned', now(), now(), now(), '{}', 'opening', now(),
      '{}')`;
  await expect(begun).rejects.toMatchObject({ code: 'TH006' });
});
