/**
 * Supersedes `not_executed`: when at least two and all observed wallets of an operation drift by
 * exactly its effect while the service may still have applied it, it becomes executed and explains
 * the drifts. Weaker matches are only listed in the evidence of the drift.
 */
import type { Tx } from '../../db/connect.ts';
import { DAY_MS, type Instant } from '../../kernel/clock.ts';
import { membersOf } from '../../kernel/json.ts';
import {
  aboutOperation,
  accountOfWallet,
  effectOn,
  listNotExecuted,
  type Operation,
  operationFields,
  walletKeysOf,
} from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { type Drift, listOpenDrifts } from '../drifts/drift.ts';
import { quiescentAt } from '../resolution.ts';
import { sentAtOf } from '../tokens/rule.ts';
import { walletsByKey } from '../wallets/wallet.ts';

const COMPARED_MAX = 200;
/** How long after its resolution an operation is compared with new drifts. */
const COMPARED_MS = 7 * DAY_MS;
/** Bases of resolutions that were inferred from wallets and may be superseded. */
const INFERRED: ReadonlySet<unknown> = new Set(['two_sided', 'one_sided']);

export interface Superseded {
  /** The operation that is executed after all, with all drifts that it explains. */
  proved?: { operation: Operation; drifts: Drift[] };
  /** Ids of operations whose effect equals the drift. */
  like: string[];
}

/** Compares a confirmed drift with operations that were inferred as not executed. */
export async function compareWithNotExecuted(
  tx: Tx,
  deps: Deps,
  drift: Drift,
  now: Instant,
): Promise<Superseded> {
  const { amount, walletKey: key, windowTo } = drift;
  if (amount === null) return { like: [] };
  const since = now - COMPARED_MS;
  const notExecuted = await listNotExecuted(tx, { key, amount }, since, COMPARED_MAX);
  const like = notExecuted.filter(
    (operation) => isInferred(operation) && sentAtOf(operation) < windowTo,
  );
  const ids = like.map(({ id }) => id);
  const [operation, second] = like;
  if (!operation || second || !mayBeLate(operation, drift, deps)) return { like: ids };
  const drifts = await driftsOf(tx, deps, operation, drift);
  return drifts ? { proved: { operation, drifts }, like: ids } : { like: ids };
}

/** Returns the event, or none when the operation has changed meanwhile. */
export async function supersede(
  tx: Tx,
  { operations }: Deps,
  { operation, drifts }: NonNullable<Superseded['proved']>,
  now: Instant,
): Promise<EventDraft[]> {
  const effectiveAt = Math.min(...drifts.map(({ suspectedAt: at }) => at));
  const evidence = { basis: 'two_sided', drifts: drifts.map(({ id }) => id) };
  const cause = 'evidence: it shows after all';
  const moved = await operations.move(tx, [
    {
      id: operation.id,
      to: 'executed',
      at: now,
      cause,
      evidence,
      effectiveAt,
      effectiveBasis: 'observed',
    },
  ]);
  return moved.map((resolved) => ({
    ...aboutOperation(resolved),
    type: 'operation.resolved',
    occurredAt: now,
    data: { ...operationFields(resolved), evidence, supersedes: operation.state },
  }));
}

function isInferred({ evidence }: Operation): boolean {
  return INFERRED.has(membersOf(evidence).basis);
}

/** True when the change may have begun while the service could still apply the write. */
function mayBeLate(operation: Operation, drift: Drift, deps: Deps): boolean {
  const { settings } = deps;
  const latest =
    quiescentAt(operation, { settings, availableSince: 0 }) + settings.undecidedAfterMs;
  return (drift.windowFrom ?? latest) < latest;
}

/** The open drifts that equal the effect on each observed wallet, two at least. */
async function driftsOf(
  tx: Tx,
  deps: Deps,
  operation: Operation,
  first: Drift,
): Promise<Drift[] | undefined> {
  const keys = walletKeysOf(operation, deps.effectSettings);
  const wallets = await walletsByKey(tx, keys);
  const drifts: Drift[] = [];
  for (const key of keys) {
    if (wallets.get(key)?.openedAt == null) continue;
    const effect = effectAt(operation, key, deps);
    const open = key === first.walletKey ? [first] : await listOpenDrifts(tx, [key]);
    const equal = open.filter(({ amount }) => amount === effect);
    const [only, another] = equal;
    if (!only || another || !mayBeLate(operation, only, deps)) return undefined;
    drifts.push(only);
  }
  return drifts.length >= 2 ? drifts : undefined;
}

function effectAt(operation: Operation, key: string, { effectSettings }: Deps): bigint {
  return effectOn(operation, accountOfWallet(key), effectSettings);
}
