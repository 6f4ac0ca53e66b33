/** The wallets of unknown token writes at their newest observations, and what these say. */
import type { Tx } from '../../db/connect.ts';
import { sumOf } from '../../kernel/amounts.ts';
import type { Instant } from '../../kernel/clock.ts';
import { must } from '../../kernel/errors.ts';
import { type Operation, walletEffectsOf } from '../../operations/operations.ts';
import type { Deps } from '../deps.ts';
import { listOpenDrifts } from '../drifts/drift.ts';
import { quiescenceEnd } from '../resolution.ts';
import { totalOf } from '../wallets/drift-rule.ts';
import { type Expected, expectedBalances } from '../wallets/expected.ts';
import { isExact, type Range } from '../wallets/rule.ts';
import { type Wallet, walletsByKey } from '../wallets/wallet.ts';
import { includedAtExtreme, type WalletEvidence } from './rule.ts';

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

/** The evidence of these wallets for a component's operations; none where a drift is inexact. */
export function evidenceOf(
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
    const { sentAt, recordedAt, sendDeadlineAt } = operation;
    if (effect === undefined || (sentAt ?? recordedAt) > endedAt) return [];
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
