/**
 * Watches: targets that people chose. A watch and its target are added in one transaction, which
 * locks the watch before its target, so that concurrent changes of one watch cannot deadlock.
 */
import type { Db, Queryable, Tx } from '../db/connect.ts';
import { and, asc, eq, gt, sql } from '../db/drizzle.ts';
import { rowsOf } from '../db/rows.ts';
import type { Clock } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import type { Ids } from '../kernel/ids.ts';
import type { BudgetView } from '../upstream/upstream.ts';
import { watches } from './tables.ts';
import { addTargets, deleteUntouched, type TargetRef, targetName, toTarget } from './targets.ts';

/** With the name of its target, such as `wallet:<addr, lower case>`. */
type Watch = typeof watches.$inferSelect;

export interface Watches {
  /** Watches targets; returns one watch per target, in their order, whether new or existing. */
  watch(refs: readonly TargetRef[], owner: string): Promise<Watch[]>;
  /**
   * Watches a part of many targets; returns of each whether its watch is new. A target that is
   * named twice is new once.
   */
  watchMany(refs: readonly TargetRef[], owner: string, options: ManyOptions): Promise<boolean[]>;
  /**
   * Ends a watch. Its target is still polled if an operation touches it.
   * @throws Failure `not_found`
   */
  unwatch(id: string): Promise<void>;
  /** Ends the watches of targets; returns of each whether it was watched. */
  unwatchMany(refs: readonly TargetRef[], options: { dryRun: boolean }): Promise<boolean[]>;
}

interface ManyOptions {
  /** Changes nothing, but answers the same. */
  dryRun: boolean;
  /**
   * How many targets parts before this one have added. The first polls follow one another as the
   * budget allows, so that a million new targets do not precede all others.
   */
  addedBefore: number;
}

interface Deps {
  db: Db;
  clock: Clock;
  ids: Ids;
  /** Polls of steady targets per second. */
  budget: Pick<BudgetView, 'steadyPerS'>;
}

export function makeWatches(deps: Deps): Watches {
  const { db, clock } = deps;
  return {
    watch(refs, owner) {
      const targets = distinct(refs);
      const rows = watchesOf(deps, targets, owner);
      const names = targets.map(({ name }) => name);
      return db.begin(async (tx) => {
        const watches = await insertWatches(tx, rows);
        await addTargets(tx, targets, clock.now());
        return watches.sort((a, b) => names.indexOf(a.target) - names.indexOf(b.target));
      });
    },
    watchMany: (refs, owner, options) => watchMany(deps, refs, owner, options),
    unwatch: (id) =>
      db.begin(async (tx) => {
        const watch = await deleteWatch(tx, id);
        if (!watch) throw new Failure('not_found');
        await deleteUntouched(tx, [watch.target]);
      }),
    async unwatchMany(refs, { dryRun }) {
      const names = refs.map(targetName);
      const watched = dryRun
        ? await findWatched(db, names)
        : await db.begin(async (tx) => {
            const deleted = await deleteWatches(tx, names);
            await deleteUntouched(tx, [...deleted]);
            return deleted;
          });
      return names.map((name) => watched.delete(name));
    },
  };
}

type Target = ReturnType<typeof toTarget>;

/** Each target once; the first spelling of an address is kept. */
function distinct(refs: readonly TargetRef[]): Target[] {
  const targets = new Map<string, Target>();
  for (const target of refs.map(toTarget))
    if (!targets.has(target.name)) targets.set(target.name, target);
  return [...targets.values()];
}

function watchesOf({ clock, ids }: Deps, targets: readonly Target[], owner: string): Watch[] {
  const created = { createdAt: clock.now(), createdBy: owner };
  return targets.map(({ name, ...target }) => {
    return { id: ids.next('wat'), target: name, ...target, ...created };
  });
}

async function watchMany(
  deps: Deps,
  refs: readonly TargetRef[],
  owner: string,
  { dryRun, addedBefore }: ManyOptions,
): Promise<boolean[]> {
  const { db, clock, budget } = deps;
  const names = refs.map(targetName);
  if (dryRun) {
    const watched = await findWatched(db, names);
    return names.map((name) => {
      const isNew = !watched.has(name);
      watched.add(name);
      return isNew;
    });
  }
  const gapMs = 1000 / budget.steadyPerS();
  const targets = distinct(refs).map((target, n) => ({
    ...target,
    firstPollAfterMs: Math.round((addedBefore + n) * gapMs),
  }));
  const added = await db.begin(async (tx) => {
    const inserted = await insertNewWatches(tx, watchesOf(deps, targets, owner));
    await addTargets(tx, targets, clock.now());
    return inserted;
  });
  return names.map((name) => added.delete(name));
}

/**
 * In the order of creation, after that id.
 * @param page `addr` only the watch of that wallet
 */
export async function listWatches(
  db: Queryable,
  page: { after?: string | undefined; addr?: string | undefined; limit: number },
): Promise<Watch[]> {
  const { after, addr } = page;
  const ofWallet = addr === undefined ? undefined : targetName({ kind: 'wallet', addr });
  return db.orm
    .select()
    .from(watches)
    .where(
      and(
        after === undefined ? undefined : gt(watches.id, after),
        ofWallet === undefined ? undefined : eq(watches.target, ofWallet),
      ),
    )
    .orderBy(asc(watches.id))
    .limit(page.limit);
}

/** Inserts watches of different targets; returns them, or the existing ones, in any order. */
async function insertWatches(tx: Tx, rows: readonly Watch[]): Promise<Watch[]> {
  if (rows.length === 0) return [];
  const ordered = rows.toSorted((a, b) => (a.target < b.target ? -1 : 1));
  return (
    tx.orm
      .insert(watches)
      .values(ordered)
      // An update without effect, because only updated rows are returned.
      .onConflictDoUpdate({ target: watches.target, set: { target: sql`excluded.target` } })
      .returning()
  );
}

async function deleteWatch(tx: Tx, id: string): Promise<Watch | undefined> {
  const rows = await tx.orm.delete(watches).where(eq(watches.id, id)).returning();
  return rows[0];
}

/** Inserts watches of different targets; returns the targets that were not watched before. */
async function insertNewWatches({ sql }: Tx, rows: readonly Watch[]): Promise<Set<string>> {
  const added = await sql<{ target: string }[]>`
    insert into tallyhook.watches ${rowsOf(sql, watches, rows)} order by target
    on conflict (target) do nothing returning target`;
  return new Set(added.map(({ target }) => target));
}

/** Those of the targets that are watched. */
async function findWatched(db: Queryable, names: readonly string[]): Promise<Set<string>> {
  const rows = await db.sql<{ target: string }[]>`
    select target from tallyhook.watches where target = any(${names as string[]}::text[])`;
  return new Set(rows.map(({ target }) => target));
}

/** Deletes the watches of targets; returns those that were watched. */
async function deleteWatches({ sql }: Tx, names: readonly string[]): Promise<Set<string>> {
  const rows = await sql<{ target: string }[]>`
    with locked as materialized (
      select id from tallyhook.watches where target = any(${names as string[]}::text[])
      order by target for update
    )
    delete from tallyhook.watches w using locked where w.id = locked.id returning target`;
  return new Set(rows.map(({ target }) => target));
}
