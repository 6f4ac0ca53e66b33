/** What token writes do to accounts, written down a second time for property tests. */
import type { EffectInput, EffectSettings } from '../../src/operations/operations.ts';

/** The change of each account, by lower-case name. The write must be one that can be posted. */
export function naiveEffects(write: EffectInput, settings: EffectSettings): Map<string, bigint> {
  const changes = new Map<string, bigint>();
  const add = (name: string, amount: bigint) => {
    const key = name.toLowerCase();
    changes.set(key, (changes.get(key) ?? 0n) + amount);
  };
  const named = (addr: string | null | undefined, name = '') => (addr ? `wallet:${addr}` : name);
  const { kind, fromAddr, toAddr, operationNo } = write;
  const [amount, fee] = [write.amount ?? 0n, write.feeAmount ?? 0n];
  const sentAt = write.sentAt ?? write.effectiveAt ?? write.recordedAt;
  let mode = settings.feeMode;
  for (const change of settings.feeChanges ?? []) if (change.from <= sentAt) mode = change.mode;
  const feeOnTop = mode === 'on_top' ? fee : 0n;
  const collection = named(settings.collectionAddr, 'collection');
  switch (kind) {
    case 'give':
      add(named(settings.operators.get(String(operationNo)), `operator:${operationNo}`), -amount);
      add(named(toAddr), amount);
      break;
    case 'receive_from':
    case 'transfer':
      add(named(fromAddr), -amount - feeOnTop);
      add(kind === 'transfer' ? named(toAddr) : collection, amount + feeOnTop - fee);
      add(named(settings.feesAddr, 'fees'), fee);
      break;
    default:
  }
  return changes;
}
