/**
 * Resolves unknown token writes by the balances of their wallets: what all explanations agree on,
 * over all wallets that the writes connect.
 *
 * With too many writes on a wallet for subsets, those are known that all show, or all do not.
 * Two wallets that agree are enough. One wallet is enough if exactly one explanation fits, and the
 * polls around the send are close to each other. Otherwise the operation becomes undecided.
 */
import type { Tx } from '../../db/connect.ts';
import { decimalText, sumOf, wholeOf } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import type { Json } from '../../kernel/json.ts';
import {
  imageOf,
  type Operation,
  walletEffectsOf,
  walletKeysOf,
} from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Deps } from '../deps.ts';
import { listOpenDrifts } from '../drifts/drift.ts';
import {
  applyFinding,
  type Finding,
  findCandidate,
  isOverdue,
  isQuiescent,
  markUndecided,
  nextPollOf,
  quiescenceEnd,
} from '../resolution.ts';
import { sentAtOf } from '../tokens/rule.ts';
import { totalOf } from '../wallets/drift-rule.ts';
import { type Expected, expectedBalances } from '../wallets/expected.ts';
import { isExact, POSSIBLE_MAX, type Range } from '../wallets/rule.ts';
import { type Wallet, walletsByKey } from '../wallets/wallet.ts';
import {
  canBeExplained,
  type Explanation,
  includedAtExtreme,
  isWithin,
  solveJointly,
  type WalletEvidence,
} from './rule.ts';

/** Unknown token writes that share wallets, directly or through others, and all their wallets. */
interface Component {
  operations: Operation[];
  keys: string[];
}

/**
 * Groups unknown token writes by the wallets that they share. A wallet with more of them than are
 * tried as subsets is no evidence, so it joins none: after an outage the writes of one payer are
 * evaluated one by one. Pure.
 */
export function componentsOf(operations: readonly Operation[], deps: Deps): Component[] {
  const counts = new Map<string, number>();
  const named = operations.map((operation) => {
    const keys = walletKeysOf(operation, deps.effectSettings);
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
    return { operation, keys };
  });
  const groups: Component[] = [];
  for (const { operation, keys } of named) {
    const shared = keys.filter((key) => (counts.get(key) ?? 0) <= POSSIBLE_MAX);
    const joined = groups.filter((group) => group.keys.some((key) => shared.includes(key)));
    const merged: Component = {
      operations: [...joined.flatMap((group) => group.operations), operation],
      keys: [...new Set([...joined.flatMap((group) => group.keys), ...keys])],
    };
    for (const group of joined) groups.splice(groups.indexOf(group), 1);
    groups.push(merged);
  }
  return groups;
}

/** A wallet, and what its newest observation is compared with: nothing without an opening. */
interface WalletReading {
  wallet: Wallet;
  compared?: { startedAt: Instant; endedAt: Instant; expected: Expected; drift: Range };
}

/**
 * Reads each wallet once in a transaction: an expected balance costs 13 µs for each unsettled
 * operation of its wallet, and hundreds of unknown ones may share it. What one of them is found to
 * be changes nothing for the others: it is possible before and after.
 */
export class WalletReadings {
  private tx: Tx | undefined;
  private readonly readings = new Map<string, WalletReading>();

  /** The wallets among these that were observed. */
  async read(tx: Tx, keys: readonly string[], readLagMs: number): Promise<WalletReading[]> {
    if (tx !== this.tx) this.readings.clear();
    this.tx = tx;
    const missing = keys.filter((key) => !this.readings.has(key));
    for (const reading of await readWallets(tx, missing, readLagMs))
      this.readings.set(reading.wallet.key, reading);
    return keys.flatMap((key) => this.readings.get(key) ?? []);
  }
}

async function readWallets(
  tx: Tx,
  keys: readonly string[],
  readLagMs: number,
): Promise<WalletReading[]> {
  if (keys.length === 0) return [];
  const wallets = [...(await walletsByKey(tx, keys)).values()];
  const observed = wallets.flatMap(({ key, openedAt, observedAt, observationEndedAt: endedAt }) => {
    if (openedAt === null || observedAt === null || endedAt === null) return [];
    return [{ key, startedAt: observedAt, endedAt, opened: true }];
  });
  const [expectations, drifts] = await Promise.all([
    expectedBalances(tx, observed, readLagMs),
    listOpenDrifts(
      tx,
      observed.map(({ key }) => key),
    ),
  ]);
  const byWallet = Map.groupBy(drifts, ({ walletKey }) => walletKey);
  const compared = observed.map(({ key, startedAt, endedAt }) => {
    const expected = must(expectations.get(key), 'expected balance');
    const drift = totalOf(byWallet.get(key) ?? []);
    return [key, { startedAt, endedAt, expected, drift }] as const;
  });
  const byKey = new Map(compared);
  return wallets.map((wallet) => ({ wallet, compared: byKey.get(wallet.key) }));
}

/** Evaluates one component. Returns the events to emit. */
export async function evaluateComponent(
  tx: Tx,
  deps: Deps,
  { operations, keys, readings }: Component & { readings: WalletReadings },
  now: Instant,
): Promise<EventDraft[]> {
  pollSoon(deps, keys, operations, now);
  const read = await readings.read(tx, keys, deps.settings.readLagMs);
  const byKey = new Map(read.map(({ wallet }) => [wallet.key, wallet]));
  // Unexplained wallets are left out, so that they cannot block the others.
  const evidence = evidenceOf(read, operations, deps).filter(canBeExplained);
  const solved =
    evidence.length > 0 ? solveJointly(evidence) : 'none of its wallets could be read in full';
  const events: EventDraft[] = [];
  for (const operation of operations) {
    const parties = walletKeysOf(operation, deps.effectSettings);
    const explained = evidence.filter(({ key }) => parties.includes(key));
    const finding =
      typeof solved !== 'string' && explained.length > 0
        ? await findingOf(tx, deps, { operation, solved, explained, wallets: byKey })
        : undefined;
    const wallets = () => shownBy(read, operation, deps);
    const applied = finding
      ? await applyFinding(tx, deps, operation, { ...finding, wallets }, now)
      : [];
    events.push(...applied);
    if (applied.length > 0) continue;
    const observed = parties.map((key) => byKey.get(key)?.observedAt ?? 0);
    // A finding waits for observations that confirm it.
    const observedAt = finding ? undefined : Math.min(...observed);
    if (!isOverdue(operation, deps, observedAt, now)) continue;
    const why = typeof solved === 'string' ? solved : 'the observations are inconclusive';
    const found = { explanations: why, wallets: wallets() };
    events.push(...(await markUndecided(tx, deps, operation, found, now)));
  }
  return events;
}

/**
 * What people decide by, kept with the operation because observations are pruned: of each of its
 * wallets the newest poll, what it would hold without the writes whose outcome is open, what the
 * operation changes if it was executed, and the other writes that may explain the difference.
 */
function shownBy(
  readings: readonly WalletReading[],
  operation: Operation,
  { effectSettings }: Deps,
): Json[] {
  const effects = walletEffectsOf(operation, effectSettings);
  return readings.flatMap(({ wallet: { key, observedBalance }, compared }): Json[] => {
    const effect = effects.get(key);
    if (!compared || effect === undefined || observedBalance === null) return [];
    const { startedAt, endedAt, expected, drift } = compared;
    const others = (expected.possible ?? []).filter(({ id }) => id !== operation.id);
    return [
      {
        wallet: key,
        balance: decimalText(observedBalance),
        // A drift with bounds is this difference itself, seen before it was decided.
        without_open: decimalText(expected.base + (isExact(drift) ? drift.min : 0n)),
        if_executed: decimalText(effect),
        // More than are tried as subsets are only counted.
        others_count: Math.max(0, expected.possibleCount - 1),
        others: others.map((other) => ({
          operation_id: other.id,
          if_executed: decimalText(other.effect),
        })),
        started_at: isoText(startedAt),
        ended_at: isoText(endedAt),
      },
    ];
  });
}

/** Schedules polls of wallets where unknown writes most likely show, or after quiescence. */
function pollSoon(
  deps: Deps,
  keys: Iterable<string>,
  operations: readonly Operation[],
  now: Instant,
): void {
  const poll = { polledAt: now, now };
  const at = Math.min(...operations.map((operation) => nextPollOf(operation, deps, poll)));
  for (const key of keys) deps.pollBy(`wallet:${key}`, at);
}

/** The evidence of these wallets for a component's operations; none where a drift is inexact. */
function evidenceOf(
  readings: readonly WalletReading[],
  operations: readonly Operation[],
  deps: Deps,
): WalletEvidence[] {
  return readings.flatMap(({ wallet, compared }) => {
    if (!compared || !isExact(compared.drift)) return [];
    const { startedAt, endedAt, expected, drift } = compared;
    const { key, observationId } = wallet;
    const balance = wallet.observedBalance ?? 0n;
    const residual = balance - expected.base - drift.min;
    const isQuiet = (deadlineAt: Instant) => startedAt >= quiescenceEnd(deadlineAt, deps);
    const explained = expected.possible
      ? {
          residual,
          possible: expected.possible.map(({ id, effect, outcome, deadlineAt }) => ({
            id,
            effect,
            quiescent: outcome === 'open' && isQuiet(deadlineAt),
          })),
        }
      : atExtreme(possibleOn(key, endedAt, operations, deps), residual, expected, isQuiet);
    if (!explained) return [];
    const observation = { observationId: observationId ?? '', startedAt, endedAt };
    return [{ key, balance, ...explained, ...observation }];
  });
}

/** The operations that an observation of a wallet may include, and their effect on it. */
function possibleOn(
  key: string,
  endedAt: Instant,
  operations: readonly Operation[],
  { effectSettings }: Deps,
) {
  return operations.flatMap((operation) => {
    const effect = walletEffectsOf(operation, effectSettings).get(key);
    const { recordedAt, sendDeadlineAt } = operation;
    if (effect === undefined || sentAtOf(operation) > endedAt) return [];
    return [{ id: operation.id, effect, deadlineAt: sendDeadlineAt ?? recordedAt }];
  });
}

/** The evidence for these operations alone, if all others on the wallet are known with them. */
function atExtreme(
  operations: readonly { id: string; effect: bigint; deadlineAt: Instant }[],
  residual: bigint,
  sums: { up: bigint; down: bigint },
  isQuiet: (deadlineAt: Instant) => boolean,
): Pick<WalletEvidence, 'residual' | 'possible'> | undefined {
  const included = operations.filter(({ effect }) => includedAtExtreme(effect, residual, sums));
  if (operations.some(({ effect }) => includedAtExtreme(effect, residual, sums) === undefined))
    return undefined;
  return {
    residual: sumOf(included.map(({ effect }) => effect)),
    possible: operations.map(({ id, effect, deadlineAt }) => ({
      id,
      effect,
      quiescent: isQuiet(deadlineAt),
    })),
  };
}

/** What all explanations agree on for one operation; undefined while they do not. */
async function findingOf(
  tx: Tx,
  deps: Deps,
  input: {
    operation: Operation;
    solved: Explanation;
    /** The wallets of the operation that can be explained. */
    explained: readonly WalletEvidence[];
    wallets: ReadonlyMap<string, Wallet>;
  },
): Promise<Finding | undefined> {
  const { operation, solved, explained, wallets } = input;
  const { settings } = deps;
  const shown = solved.shown.get(operation.id);
  const sides = explained.filter(({ possible }) => possible.some(({ id }) => id === operation.id));
  // One of these observations is from before the send.
  if (sides.length < explained.length) return undefined;
  if (shown === undefined || shown === 'open') return undefined;
  if (shown === 'none' && !isQuiescent(operation, solved.startedAt, deps)) return undefined;
  const outcome = shown === 'all' ? 'executed' : 'not_executed';
  const twoSided = sides.length >= 2;
  const earlier = await findCandidate(tx, operation.id);
  const after = earlier?.outcome === outcome ? earlier.seenAt : solved.endedAt;
  const brackets = sides.map(({ key }) => ({
    before: polledBefore(operation, wallets.get(key), outcome, deps),
    after,
  }));
  const oneSided =
    settings.oneSided === 'resolve' &&
    brackets.every((bracket) => isWithin(bracket, settings.bracketMaxMs));
  // Weak evidence waits while another wallet of the operation may still be explained.
  const parties = walletKeysOf(operation, deps.effectSettings);
  if (!twoSided && !oneSided && explained.length < parties.length) return undefined;
  return {
    outcome,
    basis: twoSided ? 'two_sided' : 'one_sided',
    sufficient: twoSided || oneSided,
    evidence: {
      observations: solved.observationIds,
      // Copied, because observations are pruned.
      polls: sides.map((side) => ({
        wallet: side.key,
        balance: decimalText(side.balance),
        without_open: decimalText(side.balance - side.residual),
        started_at: isoText(side.startedAt),
        ended_at: isoText(side.endedAt),
      })),
      ...(twoSided
        ? {}
        : { bracket_ms: brackets.map(({ before }) => (before ? after - before : null)) }),
    },
    startedAt: solved.startedAt,
    endedAt: solved.endedAt,
  };
}

/**
 * Start of the last known poll of a wallet before an operation was sent. Left out are a poll of the
 * pre-image that already showed the balance which the operation is to explain, and polls from
 * before a restore, since unknown writes may have changed the wallet after them.
 */
function polledBefore(
  operation: Operation,
  wallet: Wallet | undefined,
  outcome: Finding['outcome'],
  { restoredAt = Number.NEGATIVE_INFINITY }: Pick<Deps, 'restoredAt'>,
): Instant | undefined {
  const sentAt = sentAtOf(operation);
  const preImage = imageOf(operation.preImage) as { wallets?: ImagePoll[] } | null;
  const image = preImage?.wallets?.find(({ name }) => name === `wallet:${wallet?.key}`);
  const isShown =
    outcome === 'executed' && wholeOf(image?.seen?.balance) === wallet?.observedBalance;
  const polled = isShown ? undefined : image?.at;
  const times = [typeof polled === 'number' ? polled : undefined, wallet?.quietAt ?? undefined];
  const before = times.filter(
    (at): at is Instant => at !== undefined && at < sentAt && at > restoredAt,
  );
  return before.length > 0 ? Math.max(...before) : undefined;
}

/** A wallet in a pre-image: what was last observed of it, and when. */
interface ImagePoll {
  name: string;
  at: Json;
  seen: { balance?: Json } | null;
}
