/** Watches: targets that people chose. A watch and its target are added in one transaction. */
import type { Db } from '../../db/connect.ts';
import type { Clock } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import { type TargetRef, toTarget } from '../targets.ts';
import { addTargets } from '../targets-store.ts';
import * as store from './store.ts';

export interface Watches {
  /** Watches targets; returns one watch per target, in their order, whether new or existing. */
  watch(refs: readonly TargetRef[], owner: string): Promise<store.Watch[]>;
  /**
   * Ends a watch. Its target is still polled if an operation touches it.
   * @throws Failure `not_found`
   */
  unwatch(id: string): Promise<void>;
}

export function makeWatches(deps: { db: Db; clock: Clock; ids: Ids }): Watches {
  const { db, clock, ids } = deps;
  return {
    watch(refs, owner) {
      const now = clock.now();
      const rows = new Map<string, store.Watch>();
      for (const { name, ...target } of refs.map(toTarget)) {
        if (rows.has(name)) continue;
        const created = { createdAt: now, createdBy: owner };
        rows.set(name, { id: ids.next('wat'), target: name, ...target, ...created });
      }
      const names = [...rows.keys()];
      return db.begin(async (tx) => {
        const watches = await store.insertWatches(tx, [...rows.values()]);
        await addTargets(tx, refs.map(toTarget), now);
        return watches.sort((a, b) => names.indexOf(a.target) - names.indexOf(b.target));
      });
    },
    unwatch: (id) =>
      db.begin(async (tx) => {
        const watch = await store.deleteWatch(tx, id);
        if (!watch) throw new Failure('not_found');
        await store.deleteUntouched(tx, watch);
      }),
  };
}
