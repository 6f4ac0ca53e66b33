/** Watches: targets that people chose. A watch and its target are added in one transaction. */
import type { Db } from '../../db/connect.ts';
import type { Clock } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import type { BudgetView } from '../../upstream/upstream.ts';
import { type TargetRef, targetName, toTarget } from '../targets.ts';
import { addTargets, deleteUntouched } from '../targets-store.ts';
import * as store from './store.ts';

export interface Watches {
  /** Watches targets; returns one watch per target, in their order, whether new or existing. */
  watch(refs: readonly TargetRef[], owner: string): Promise<store.Watch[]>;
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

export interface ManyOptions {
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
      const rows = rowsOf(deps, targets, owner);
      const names = targets.map(({ name }) => name);
      return db.begin(async (tx) => {
        const watches = await store.insertWatches(tx, rows);
        await addTargets(tx, targets, clock.now());
        return watches.sort((a, b) => names.indexOf(a.target) - names.indexOf(b.target));
      });
    },
    watchMany: (refs, owner, options) => watchMany(deps, refs, owner, options),
    unwatch: (id) =>
      db.begin(async (tx) => {
        const watch = await store.deleteWatch(tx, id);
        if (!watch) throw new Failure('not_found');
        await deleteUntouched(tx, [watch.target]);
      }),
    async unwatchMany(refs, { dryRun }) {
      const names = refs.map(targetName);
      const watched = dryRun
        ? await store.findWatched(db, names)
        : await db.begin(async (tx) => {
            const deleted = await store.deleteWatches(tx, names);
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

function rowsOf({ clock, ids }: Deps, targets: readonly Target[], owner: string): store.Watch[] {
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
    const watched = await store.findWatched(db, names);
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
    const inserted = await store.insertNewWatches(tx, rowsOf(deps, targets, owner));
    await addTargets(tx, targets, clock.now());
    return inserted;
  });
  return names.map((name) => added.delete(name));
}
