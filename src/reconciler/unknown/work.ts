/**
 * The unknown operations to evaluate in a pass. Components of token writes are evaluated when one
 * of their wallets was observed, and else periodically. NFT writes are evaluated with observations
 * of their tokens; here scans for mints are requested and overdue operations become undecided.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { listUnknown, NFT_KINDS, TOKEN_KINDS } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { isOverdue, markUndecided, quiescentAt } from '../resolution.ts';
import { markMintUndecided, requestScans } from './mints.ts';
import { type Component, componentsOf, evaluateComponent } from './token-writes.ts';

const UNKNOWN_MAX = 1_000;
/** Interval at which a component without new observations is evaluated, for ledger changes. */
const AGAIN_MS = 5_000;
const SCAN_REQUESTS_EVERY_MS = 1_000;

/** One evaluation in the caller's transaction. */
export type Work = (tx: Tx) => Promise<EventDraft[]>;

export interface UnknownWork {
  /** @param seen wallets (lower case) of the observations processed in this pass */
  next(deps: Deps, seen: ReadonlySet<string>, now: Instant): Promise<Work[]>;
}

export function makeUnknownWork(db: Db): UnknownWork {
  let evaluatedAt = new Map<string, Instant>();
  let scannedAt = Number.NEGATIVE_INFINITY;

  function dueOf(components: readonly Component[], seen: ReadonlySet<string>, now: Instant) {
    const before = evaluatedAt;
    evaluatedAt = new Map();
    return components.filter((component) => {
      const name = component.operations.map(({ id }) => id).join();
      const at = before.get(name);
      const due =
        at === undefined ||
        now < at ||
        now >= at + AGAIN_MS ||
        component.keys.some((key) => seen.has(key));
      evaluatedAt.set(name, due ? now : at);
      return due;
    });
  }

  return {
    async next(deps, seen, now) {
      const unknown = await listUnknown(db, UNKNOWN_MAX);
      const tokenWrites = unknown.filter(({ kind }) => TOKEN_KINDS.includes(kind));
      const components = dueOf(componentsOf(tokenWrites, deps), seen, now);
      const others = unknown.filter(({ kind }) => !TOKEN_KINDS.includes(kind));
      const overdue = others.filter((operation) =>
        NFT_KINDS.includes(operation.kind)
          ? isOverdue(operation, deps, now)
          : now >= quiescentAt(operation, deps),
      );
      const mints = others.filter((o) => o.kind === 'mint_sequential' && !overdue.includes(o));
      if (mints.length > 0 && (now < scannedAt || now >= scannedAt + SCAN_REQUESTS_EVERY_MS)) {
        await requestScans(db, deps, mints, now);
        scannedAt = now;
      }
      const evidence = { explanations: 'no evidence within the time set' };
      return [
        ...components.map(
          (one): Work =>
            (tx) =>
              evaluateComponent(tx, deps, one, now),
        ),
        ...overdue.map(
          (operation): Work =>
            (tx) =>
              operation.kind === 'mint_sequential'
                ? markMintUndecided(tx, deps, operation, now)
                : markUndecided(tx, deps, operation, evidence, now),
        ),
      ];
    },
  };
}
