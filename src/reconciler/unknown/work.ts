/**
 * Which lost answers are to be judged in a pass. Payments are judged together with all that share
 * wallets with them, when one of these wallets was looked at, and otherwise now and then; NFT
 * writes are judged by looks, so here they are only swept for, or given to people.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { listUnknown, NFT_KINDS, TOKEN_KINDS } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Context } from '../deps.ts';
import { giveToPeople, isOverdue, quietAfter } from '../resolution.ts';
import { giveMintToPeople, requestScans } from './mints.ts';
import { type Component, componentsOf, judgeComponent } from './token-writes.ts';

/** Lost answers that are judged in one pass at most, the oldest ones. */
const UNKNOWN_MAX = 1_000;
/** Without a new look a component is judged again after that, for what changed in the books. */
const AGAIN_MS = 5_000;
const SWEEPS_EVERY_MS = 1_000;

/** One piece of work: a judgement inside a transaction. */
export type Work = (tx: Tx) => Promise<EventDraft[]>;

export interface UnknownWork {
  /** @param seen wallets (lower case) of which a look was judged in this pass */
  next(context: Context, seen: ReadonlySet<string>, now: Instant): Promise<Work[]>;
}

export function makeUnknownWork(db: Db): UnknownWork {
  let judged = new Map<string, Instant>();
  let scannedAt = Number.NEGATIVE_INFINITY;

  /** Components that may have something new to say. */
  function dueOf(components: readonly Component[], seen: ReadonlySet<string>, now: Instant) {
    const before = judged;
    judged = new Map();
    return components.filter((component) => {
      const name = component.operations.map(({ id }) => id).join();
      const at = before.get(name);
      const due =
        at === undefined ||
        now < at ||
        now >= at + AGAIN_MS ||
        component.keys.some((key) => seen.has(key));
      judged.set(name, due ? now : at);
      return due;
    });
  }

  return {
    async next(context, seen, now) {
      const unknown = await listUnknown(db, UNKNOWN_MAX);
      const payments = unknown.filter(({ kind }) => TOKEN_KINDS.includes(kind));
      const components = dueOf(componentsOf(payments, context), seen, now);
      const others = unknown.filter(({ kind }) => !TOKEN_KINDS.includes(kind));
      const overdue = others.filter((operation) =>
        NFT_KINDS.includes(operation.kind)
          ? isOverdue(operation, context, now)
          : now >= quietAfter(operation, context),
      );
      const mints = others.filter((o) => o.kind === 'mint_sequential' && !overdue.includes(o));
      if (mints.length > 0 && (now < scannedAt || now >= scannedAt + SWEEPS_EVERY_MS)) {
        await requestScans(db, context, mints, now);
        scannedAt = now;
      }
      const evidence = { explanations: 'no evidence within the time set' };
      return [
        ...components.map(
          (one): Work =>
            (tx) =>
              judgeComponent(tx, context, one, now),
        ),
        ...overdue.map(
          (operation): Work =>
            (tx) =>
              operation.kind === 'mint_sequential'
                ? giveMintToPeople(tx, context, operation, now)
                : giveToPeople(tx, context, operation, evidence, now),
        ),
      ];
    },
  };
}
