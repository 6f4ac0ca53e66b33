/**
 * Operations that a balance does not confirm although it is explained: on each of their wallets a
 * drift, an unknown operation or both could hold the same difference. They wait, and say so.
 */
import type { Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Deps } from '../deps.ts';
import { listOpenDrifts } from '../drifts/drift.ts';
import { quiescenceEnd } from '../resolution.ts';
import { type Doubts, type HeldBy, heldBy, type Unsettled } from './settling-rule.ts';

/** What holds each of these operations, by id; those that nothing holds are absent. */
export async function findHeld(
  tx: Tx,
  deps: Deps,
  key: string,
  ids: readonly string[],
): Promise<Map<string, HeldBy>> {
  const here = (await doubtsOn(tx, deps, [key])).get(key);
  const held = here ? heldOn(here, new Set(ids)) : new Map<string, HeldBy>();
  if (held.size === 0) return held;
  const walletsOf = await listWalletsOf(tx, [...held.keys()]);
  const others = [...new Set([...walletsOf.values()].flat())].filter((other) => other !== key);
  const doubts = await doubtsOn(tx, deps, others);
  for (const other of others) {
    const on = new Set([...held.keys()].filter((id) => walletsOf.get(id)?.includes(other)));
    const there = heldOn(doubts.get(other) ?? NO_DOUBTS, on);
    for (const id of on) {
      const [a, b] = [held.get(id), there.get(id)];
      // A wallet that shows it without a doubt is enough.
      if (!a || !b) held.delete(id);
      else
        held.set(id, {
          drifts: union(a.drifts, b.drifts),
          operations: union(a.operations, b.operations),
        });
    }
  }
  return held;
}

const NO_DOUBTS: Doubts = { drifts: [], unknown: [], unsettled: [] };

function union(some: readonly string[], others: readonly string[]): string[] {
  return [...new Set([...some, ...others])].sort();
}

function heldOn(doubts: Doubts, ids: ReadonlySet<string>): Map<string, HeldBy> {
  return new Map(
    doubts.unsettled.flatMap((operation) => {
      const held = ids.has(operation.id) ? heldBy(operation, doubts) : undefined;
      return held ? [[operation.id, held] as const] : [];
    }),
  );
}

async function doubtsOn(tx: Tx, deps: Deps, keys: readonly string[]): Promise<Map<string, Doubts>> {
  if (keys.length === 0) return new Map();
  const [drifts, rows] = await Promise.all([listOpenDrifts(tx, keys), listUnsettledOn(tx, keys)]);
  const byKey = Map.groupBy(rows, ({ key }) => key);
  return new Map(
    keys.map((key) => {
      const here = byKey.get(key) ?? [];
      const isUnknown = (row: Row) => row.outcome === 'open';
      return [
        key,
        {
          drifts: drifts.filter(({ walletKey }) => walletKey === key),
          unknown: here.filter(isUnknown).map((row) => ({
            ...row,
            until: quiescenceEnd(row.deadlineAt, deps),
          })),
          unsettled: here.filter((row) => !isUnknown(row)),
        },
      ] as const;
    }),
  );
}

interface Row extends Unsettled {
  key: string;
  outcome: 'open' | 'executed';
  deadlineAt: Instant;
}

/** Executed operations on these wallets that are not settled, and unknown and undecided ones. */
async function listUnsettledOn(tx: Tx, keys: readonly string[]): Promise<Row[]> {
  return tx.sql<Row[]>`
    select e.key, o.id, e.effect, o.outcome,
      coalesce(o.sent_at, o.effective_at, o.recorded_at) as sent_at,
      coalesce(o.effective_at, o.answered_at, o.recorded_at) as took_effect_at,
      coalesce(o.send_deadline_at, o.recorded_at) as deadline_at
    from (
      select substr(lower(account), 8) as key, operation_id, sum(amount) as effect
      from tallyhook.operation_effects
      where lower(account) = any(${keys.map((key) => `wallet:${key}`)}::text[]) and unsettled
        and phase in ('open', 'undecided', 'executed')
      group by 1, 2 having sum(amount) <> 0) e
    join tallyhook.operations o on o.id = e.operation_id
    where o.state in ('unknown', 'undecided', 'accepted', 'executed')`;
}

/** The keys of the wallets that each operation changes. */
async function listWalletsOf(tx: Tx, ids: readonly string[]): Promise<Map<string, string[]>> {
  const rows = await tx.sql<{ id: string; keys: string[] }[]>`
    select e.operation_id as id, array_agg(e.key) as keys
    from (
      select operation_id, substr(lower(account), 8) as key from tallyhook.operation_effects
      where operation_id = any(${ids as string[]}::text[]) and account like 'wallet:%'
      group by 1, 2 having sum(amount) <> 0) e
    group by 1`;
  return new Map(rows.map(({ id, keys }) => [id, keys]));
}
