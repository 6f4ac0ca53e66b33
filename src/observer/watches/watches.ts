/**
 * What people asked us to watch. A watch puts its object on the due list in the same commit;
 * ending it takes the object off again, unless an operation of ours needs it.
 */
import type { Db } from '../../db/connect.ts';
import type { Clock } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { Ids } from '../../kernel/ids.ts';
import { addObjects } from '../store.ts';
import { type TargetRef, toObject } from '../targets.ts';
import * as store from './store.ts';

/** What somebody asks us to watch. */
export interface WatchWish {
  ref: TargetRef;
  /** How much its changes matter beside others; 1 is usual. */
  weight: number;
}

export interface Watching {
  /**
   * Watches these objects; one that is already watched takes the new weight. Answers each watch
   * once, in the order of the wishes.
   * @param owner who asks
   */
  watch(wishes: readonly WatchWish[], owner: string): Promise<store.Watch[]>;
  /**
   * Ends a watch. Its object stays under observation if an operation of ours touches it.
   * @throws Failure `not_found`
   */
  unwatch(id: string): Promise<void>;
}

export function makeWatching(given: { db: Db; clock: Clock; ids: Ids }): Watching {
  const { db, clock, ids } = given;
  return {
    watch(wishes, owner) {
      const now = clock.now();
      const rows = new Map<string, store.Watch>();
      for (const { ref, weight } of wishes) {
        const { name: target, kind, addr, contractId, tokenId } = toObject(ref);
        const id = rows.get(target)?.id ?? ids.next('wat');
        const made = { createdAt: now, createdBy: owner };
        rows.set(target, { id, kind, target, addr, contractId, tokenId, weight, ...made });
      }
      const names = [...rows.keys()];
      return db.begin(async (tx) => {
        const watches = await store.insertWatches(tx, [...rows.values()]);
        const refs = wishes.map(({ ref }) => toObject(ref));
        await addObjects(tx, refs, now);
        await store.weighObjects(tx, names);
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
