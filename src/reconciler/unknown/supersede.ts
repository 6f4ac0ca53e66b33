/**
 * Later evidence against a resolution: a write that was called not executed, and an unexplained
 * change that is just its effect. Where all of its wallets that can be seen, two at least, changed
 * so while it may still have been applied late, the write is called executed after all, and the
 * drifts are explained by it. Everything weaker is only named to the people who look at the drift:
 * somebody may have made the same change by hand.
 */
import type { Tx } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import {
  accountOfWallet,
  effectOn,
  listOperations,
  type Operation,
  operationFields,
  walletKeysOf,
} from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Context } from '../deps.ts';
import { quietAfter } from '../resolution.ts';
import { type Drift, listOpenDrifts, walletsByKey } from '../wallets/store.ts';

/** Writes called not executed that are compared with one drift at most. */
const COMPARED_MAX = 200;
/** How long after its resolution a write is still compared with what turns up. */
const COMPARED_MS = 7 * 86_400_000;
/** Bases of resolutions that looks brought, and that looks may take back. */
const INFERRED: ReadonlySet<unknown> = new Set(['two_sided', 'one_sided']);

/** What a drift says about writes that were called not executed. */
export interface Superseded {
  /** The write that it proves executed after all, with all drifts that this explains. */
  proved?: { operation: Operation; drifts: Drift[] };
  /** The ids of writes whose effect it equals. */
  like: string[];
}

/** Compares a drift that was just confirmed with what was called not executed. */
export async function compareWithDenied(
  tx: Tx,
  context: Context,
  drift: Drift,
  now: Instant,
): Promise<Superseded> {
  const since = now - COMPARED_MS;
  const denied = await listOperations(tx, { state: 'not_executed', since, limit: COMPARED_MAX });
  const like = denied.filter(
    (operation) =>
      isInferred(operation) &&
      (operation.sentAt ?? operation.recordedAt) < drift.windowTo &&
      effectAt(operation, drift.walletKey, context) === drift.amount,
  );
  const ids = like.map(({ id }) => id);
  const [operation, second] = like;
  if (!operation || second || !mayBeLate(operation, drift, context)) return { like: ids };
  const drifts = await driftsOf(tx, context, operation, drift);
  return drifts ? { proved: { operation, drifts }, like: ids } : { like: ids };
}

/** Calls the write executed after all; answers the event, or none when people were quicker. */
export async function supersede(
  tx: Tx,
  { operations }: Context,
  { operation, drifts }: NonNullable<Superseded['proved']>,
  now: Instant,
): Promise<EventDraft[]> {
  const effectiveAt = Math.min(...drifts.map(({ suspectedAt: at }) => at));
  const evidence = { basis: 'two_sided', drifts: drifts.map(({ id }) => id) };
  const cause = 'evidence: it shows after all';
  const moved = await operations.move(tx, [
    {
      ...{ id: operation.id, to: 'executed', at: now, cause, evidence },
      ...{ effectiveAt, effectiveBasis: 'observed' },
    },
  ]);
  return moved.map((resolved) => ({
    type: 'operation.resolved',
    subject: `operation:${resolved.id}`,
    occurredAt: now,
    data: { ...operationFields(resolved), evidence, supersedes: operation.state },
  }));
}

function isInferred({ evidence }: Operation): boolean {
  const known = evidence && typeof evidence === 'object' && !Array.isArray(evidence);
  return known === true && INFERRED.has(evidence.basis);
}

/** True when the change may have begun while the service may still have applied the write. */
function mayBeLate(operation: Operation, drift: Drift, context: Context): boolean {
  const { settings } = context;
  const latest = quietAfter(operation, { settings, availableSince: 0 }) + settings.undecidedAfterMs;
  return (drift.windowFrom ?? latest) < latest;
}

/** The open drifts that are the effect of the write on each of its wallets; two at least. */
async function driftsOf(
  tx: Tx,
  context: Context,
  operation: Operation,
  first: Drift,
): Promise<Drift[] | undefined> {
  const keys = walletKeysOf(operation, context.books);
  const wallets = await walletsByKey(tx, keys);
  const drifts: Drift[] = [];
  for (const key of keys) {
    if (wallets.get(key)?.openedAt == null) continue;
    const effect = effectAt(operation, key, context);
    const open = key === first.walletKey ? [first] : await listOpenDrifts(tx, key);
    const equal = open.filter(({ amount, state }) => amount === effect && state === 'open');
    const [only, another] = equal;
    if (!only || another || !mayBeLate(operation, only, context)) return undefined;
    drifts.push(only);
  }
  return drifts.length >= 2 ? drifts : undefined;
}

function effectAt(operation: Operation, key: string, { books }: Context): bigint {
  return effectOn(operation, accountOfWallet(key), books);
}
