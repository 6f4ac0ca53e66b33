/** What must be due, pending and posted, from the states that operations pass. */
import {
  accountKey,
  type EffectSettings,
  effectsOrNone,
  isInLedger,
  NFT_KINDS,
  type Operation,
  recordedEffectsOf,
} from '../../src/operations/operations.ts';

function phaseOf({ state, outcome }: Operation, wasExecuted: boolean): string {
  if (outcome === 'not_executed' && wasExecuted) return 'taken_back';
  return ['queued', 'undecided', 'settled'].includes(state) ? state : outcome;
}
const NONE = { unposted: 0n, inFlight: 0n, unknown: 0n, openUp: 0n, openDown: 0n };

export class Model {
  readonly effects: EffectSettings;
  private readonly seen = new Map<string, Followed>();
  private readonly balances = new Map<string, bigint>();

  constructor(effects: EffectSettings) {
    this.effects = effects;
  }

  /** Takes over the states after a step, and posts when the step did. */
  follow(operations: readonly Operation[], isPosting: boolean): void {
    for (const { id, kind, state, contractId, tokenId, ...fields } of operations) {
      const effects = effectsOrNone({ kind, ...fields }, this.effects);
      const one = this.seen.get(id) ?? {
        wasExecuted: false,
        held: false,
        posted: false,
        due: false,
        quarantined: false,
      };
      this.seen.set(id, one);
      const held = isInLedger(kind, state);
      one.wasExecuted ||= held;
      if (held !== one.held) one.due = true;
      one.held = held;
      if (!isPosting || !one.due || one.quarantined) continue;
      const isNft = NFT_KINDS.includes(kind);
      const postable = isNft ? contractId !== null && tokenId !== null : effects.length > 0;
      one.quarantined = held !== one.posted && !postable;
      one.due = one.quarantined;
      if (one.due || held === one.posted) continue;
      one.posted = held;
      for (const { account, amount } of effects) {
        const balance = this.balances.get(accountKey(account)) ?? 0n;
        this.balances.set(accountKey(account), balance + (held ? amount : -amount));
      }
    }
  }

  phaseOf(operation: Operation): string {
    return phaseOf(operation, this.seen.get(operation.id)?.wasExecuted ?? false);
  }

  due(): [string, boolean][] {
    return [...this.seen].flatMap(([id, { due, quarantined }]) => (due ? [[id, quarantined]] : []));
  }

  pending(operations: readonly Operation[]): Map<string, typeof NONE> {
    const pending = new Map<string, typeof NONE>();
    for (const operation of operations) {
      const { held, posted, due, quarantined } = this.seen.get(operation.id) as Followed;
      const isOpen = operation.outcome === 'open' && operation.state !== 'queued';
      // A report that the openings of its wallets include changes no balance.
      const isIncluded = operation.state === 'settled' && !quarantined;
      const isUnposted = due && held !== posted && !isIncluded;
      if (!isOpen && !isUnposted) continue;
      // With the lines of zero that a write with a fee has under a rule by which it moves nothing.
      for (const { account, amount } of recordedEffectsOf(operation, this.effects).effects) {
        const sum = pending.get(accountKey(account)) ?? { ...NONE };
        pending.set(accountKey(account), sum);
        if (isUnposted) sum.unposted += held ? amount : -amount;
        if (!isOpen) continue;
        sum[operation.state === 'sending' ? 'inFlight' : 'unknown'] += amount;
        sum[amount > 0n ? 'openUp' : 'openDown'] += amount;
      }
    }
    return pending;
  }

  /** Each wallet that has entries or pending effects, with its positions. */
  positions(operations: readonly Operation[]) {
    const pending = this.pending(operations);
    const keys = new Set([...pending.keys(), ...this.balances.keys()]);
    return [...keys]
      .filter((key) => key.startsWith('wallet:'))
      .map((key) => {
        const { unposted, inFlight, unknown, openUp, openDown } = pending.get(key) ?? NONE;
        const ledgerBalance = this.balances.get(key) ?? 0n;
        const [bestCase, worstCase] = [openUp, openDown].map((n) => ledgerBalance + unposted + n);
        return [key, { ledgerBalance, unposted, inFlight, unknown, bestCase, worstCase }];
      });
  }
}
interface Followed {
  wasExecuted: boolean;
  /** Whether the ledger has to hold it, and whether it does. */
  held: boolean;
  posted: boolean;
  due: boolean;
  quarantined: boolean;
}
