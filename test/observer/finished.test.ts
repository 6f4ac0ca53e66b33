/** Targets that the service does not know and nothing needs are deleted. */
import { beforeEach, describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { addTargets, deleteFinished } from '../../src/observer/targets.ts';
import { useDatabase } from '../harness/database.ts';
import { addr, putOperations } from '../ledger/fixture.ts';

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 5, 1);
const KNOWN = `wallet:${addr(1)}`;
const PAID = `wallet:${addr(2)}`;
const PAYER = `wallet:${addr(3)}`;
const REFUSED = `wallet:${addr(4)}`;

const { db, owner } = await useDatabase();

function daysAgo(days: number): string {
  return isoText(NOW - days * DAY_MS);
}

/** A target with the same result since so many days. */
async function put(name: string, days: number, { result = 'absent', polls = 2 } = {}) {
  const [kind, second = '', third = null] = name.split(':');
  const [address, contract] = kind === 'wallet' ? [second, null] : [null, second];
  await db.sql`
    insert into tallyhook.targets (name, kind, addr, contract_id, token_id, next_poll_at,
      last_started_at, last_result, observation_id, observation_started_at, added_at)
    values (${name.toLowerCase()}, ${kind ?? ''}, ${address}, ${contract}, ${third},
      ${isoText(NOW)}, ${daysAgo(polls > 1 ? 0 : days)}, ${result}, 'obs_1', ${daysAgo(days)},
      ${daysAgo(days)})`;
}

/** What is left after a pass that deletes what was absent for a week. */
async function left(): Promise<string[]> {
  await deleteFinished(db, NOW - 7 * DAY_MS, 100);
  const rows = await db.sql<{ name: string }[]>`select name from tallyhook.targets order by name`;
  return rows.map(({ name }) => name);
}

describe('A target that the service has not known for a week is deleted', () => {
  beforeEach(async () => {
    await owner.sql`delete from tallyhook.targets`;
  });

  it('after two polls at least', async () => {
    await put('token:1:1', 8);
    await put('token:1:2', 8, { polls: 1 });
    await put('token:1:3', 6);
    await put('token:1:4', 8, { result: 'seen' });
    await put('contract:1', 8);
    expect(await left()).toEqual(['contract:1', 'token:1:2', 'token:1:3', 'token:1:4']);
  });

  it('unless the wallet has a record, or an operation that was or may be executed', async () => {
    for (const name of [KNOWN, PAID, PAYER, REFUSED]) await put(name, 8);
    await owner.sql`insert into tallyhook.wallets (key, addr, verdict)
      values (${addr(1).toLowerCase()}, ${addr(1)}, 'explained')`;
    await putOperations(owner, [
      { id: 'op_1', toAddr: addr(2), state: 'unknown' },
      { id: 'op_2', fromAddr: addr(3), toAddr: addr(4), state: 'settled' },
      { id: 'op_3', toAddr: addr(4), state: 'rejected' },
    ]);
    await owner.sql`update tallyhook.operations set to_addr = null where id = 'op_2'`;
    expect(await left()).toEqual([KNOWN, PAID, PAYER].map((name) => name.toLowerCase()));
  });

  it('unless the token counts as present, or an operation on it is not settled', async () => {
    for (const token of [1, 2, 3, 4]) await put(`token:9:${token}`, 8);
    await owner.sql`insert into tallyhook.tokens (contract_id, token_id, observed_at, presence)
      values (9, 1, now(), 'present'), (9, 2, now(), 'absent')`;
    await putOperations(owner, [
      { id: 'op_4', kind: 'burn', contractId: 9n, tokenId: 3n, state: 'accepted' },
      { id: 'op_5', kind: 'burn', contractId: 9n, tokenId: 4n, state: 'failed' },
    ]);
    expect(await left()).toEqual(['token:9:1', 'token:9:3']);
  });

  it('unless it waits for a poll, or its last observation is not processed', async () => {
    for (const token of [1, 2, 3, 4]) await put(`token:5:${token}`, 8);
    await owner.sql`update tallyhook.targets set pending = true where name = 'token:5:1'`;
    await owner.sql`update tallyhook.targets set lease_until = now() where name = 'token:5:2'`;
    await owner.sql`
      insert into tallyhook.unprocessed_observations (target, kind, observation_id,
        unchanged_since, started_at, ended_at, result, process_at)
      values ('token:5:3', 'token', 'obs_1', now(), now(), now(), 'absent', now())`;
    expect(await left()).toEqual(['token:5:1', 'token:5:2', 'token:5:3']);
  });

  it('unless it is watched, also by a watch that is about to be committed', async () => {
    for (const token of [1, 2, 3]) await put(`token:6:${token}`, 8);
    const watch = (tx: Pick<typeof db, 'sql'>, id: string, tokenId: bigint) => tx.sql`
      insert into tallyhook.watches (id, kind, target, contract_id, token_id, created_at,
        created_by)
      values (${id}, 'token', ${`token:6:${tokenId}`}, 6, ${String(tokenId)}::numeric, now(),
        'ann')`;
    await watch(db, 'wat_1', 1n);
    await db.begin(async (tx) => {
      await watch(tx, 'wat_2', 2n);
      const target = { name: 'token:6:2', kind: 'token', contractId: 6n, tokenId: 2n } as const;
      await addTargets(tx, [{ ...target, addr: null }], NOW);
      expect(await left()).toEqual(['token:6:1', 'token:6:2']);
    });
    expect(await left()).toEqual(['token:6:1', 'token:6:2']);
  });
});
