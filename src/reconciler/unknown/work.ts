/**
 * The unknown operations to evaluate in a pass: token writes on wallets that were just observed,
 * and every operation in turn, a page per pass, for changes of the ledger and for time limits. NFT
 * writes are evaluated with observations of their tokens; here scans for mints are requested.
 */
import type { Db, Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import { newestScans } from '../../observer/observer.ts';
import {
  listUnknown,
  listUnknownOn,
  NFT_KINDS,
  type Operation,
  TOKEN_KINDS,
  walletKeysOf,
} from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { isOverdue, markUndecided, quiescentAt } from '../resolution.ts';
import { listObservedAt } from '../tokens/token.ts';
import { POSSIBLE_MAX } from '../wallets/rule.ts';
import { contractsOf, markMintUndecided, requestScans } from './mints.ts';
import { componentsOf, evaluateComponent, WalletReadings } from './token-writes.ts';

const PAGE_MAX = 500;
/** Operations of one component at most; evidence of a larger one is not unique anyway. */
const COMPONENT_MAX = 1_000;
/** Every operation is evaluated at most so often without an observation. */
const ROUND_MS = 5_000;

/** One evaluation in the caller's transaction. */
type Work = (tx: Tx) => Promise<EventDraft[]>;
/** Evaluations in one transaction: one alone reads all the wallets that they share. */
const TOGETHER = 50;

interface UnknownWork {
  /**
   * The evaluations, in groups that share a transaction.
   * @param seen wallets (lower case) of the observations processed in this pass
   */
  next(deps: Deps, seen: ReadonlySet<string>, now: Instant): Promise<Work[][]>;
}

export function makeUnknownWork(db: Db): UnknownWork {
  let after: Operation | undefined;
  let roundAt = Number.NEGATIVE_INFINITY;

  /** The next page of a round; none until the next round begins. */
  async function nextPage(now: Instant): Promise<Operation[]> {
    if (!after) {
      if (now >= roundAt && now < roundAt + ROUND_MS) return [];
      roundAt = now;
    }
    const page = await listUnknown(db, after, PAGE_MAX);
    after = page.length === PAGE_MAX ? page.at(-1) : undefined;
    return page;
  }

  /** These token writes, and all that they are evaluated with; see `componentsOf`. */
  async function connected(found: readonly Operation[], seen: ReadonlySet<string>, deps: Deps) {
    const operations = new Map(found.map((operation) => [operation.id, operation]));
    const searched = new Set<string>();
    const keysOf = (some: readonly Operation[]) =>
      some.flatMap((one) => walletKeysOf(one, deps.effectSettings));
    let keys = [...new Set([...seen, ...keysOf(found)])];
    while (keys.length > 0 && operations.size < COMPONENT_MAX + found.length) {
      for (const key of keys) searched.add(key);
      const others = await listUnknownOn(db, keys, {
        openMax: POSSIBLE_MAX,
        limit: COMPONENT_MAX,
      });
      for (const other of others) operations.set(other.id, other);
      keys = [...new Set(keysOf(others))].filter((key) => !searched.has(key));
    }
    return [...operations.values()];
  }

  return {
    async next(deps, seen, now) {
      const page = await nextPage(now);
      const tokenWrites = page.filter(({ kind }) => TOKEN_KINDS.includes(kind));
      const components = componentsOf(await connected(tokenWrites, seen, deps), deps);
      const others = page.filter(({ kind }) => !TOKEN_KINDS.includes(kind));
      const shown = await lastShown(db, others);
      const overdue = others.filter((operation) => isOver(deps, operation, shown, now));
      const mints = others.filter((o) => o.kind === 'mint_sequential' && !overdue.includes(o));
      await requestScans(db, deps, mints, now);
      const readings = new WalletReadings();
      return grouped([
        ...components.map(
          (component): Work =>
            (tx) =>
              evaluateComponent(tx, deps, { ...component, readings }, now),
        ),
        ...overdue.map(
          (operation): Work =>
            (tx) =>
              end(tx, deps, operation, now),
        ),
      ]);
    },
  };
}

function grouped(works: readonly Work[]): Work[][] {
  const groups: Work[][] = [];
  for (let n = 0; n < works.length; n += TOGETHER) groups.push(works.slice(n, n + TOGETHER));
  return groups;
}

/** Start of the newest observation of a target of NFT writes; undefined without one. */
type LastShown = (operation: Operation) => Instant | undefined;

async function lastShown(db: Db, operations: readonly Operation[]): Promise<LastShown> {
  const scans = await newestScans(db, contractsOf(operations));
  const tokens = await listObservedAt(db, operations);
  return ({ contractId, tokenId }) => {
    if (contractId === null) return undefined;
    return tokenId === null
      ? scans.get(contractId)?.startedAt
      : tokens.get(`${contractId}:${tokenId}`);
  };
}

function isOver(deps: Deps, operation: Operation, shown: LastShown, now: Instant): boolean {
  const { kind, contractId } = operation;
  if (now < quiescentAt(operation, deps)) return false;
  // No poll shows the effect of a write of kind `other`.
  if (!NFT_KINDS.includes(kind) || contractId === null) return true;
  return isOverdue(operation, deps, shown(operation), now);
}

function end(tx: Tx, deps: Deps, operation: Operation, now: Instant): Promise<EventDraft[]> {
  if (operation.kind === 'mint_sequential') return markMintUndecided(tx, deps, operation, now);
  const evidence = { explanations: 'no evidence within the time set' };
  return markUndecided(tx, deps, operation, evidence, now);
}
