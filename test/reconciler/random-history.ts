/**
 * Random histories of wallets, with the truth and with what would be recorded: operations that are
 * accepted, unknown or rejected, changes made elsewhere, and observations that lag by at most L.
 */
import fc from 'fast-check';
import { type Operation, outcomeOf, type State } from '../../src/operations/operations.ts';
import type {
  Baseline,
  ObservedBalance,
  OperationEffect,
} from '../../src/reconciler/wallets/rule.ts';
import { at, write } from './builders.ts';

export const LAG = 1_000;
export const QUIESCENCE = 5_000;
const DEADLINE = 3_000;
/** All writes and changes are before `BUSY`; observations after `CALM` include all of them. */
export const BUSY = 60_000;
export const CALM = BUSY + DEADLINE + QUIESCENCE + LAG + 1;

export interface TrueWrite {
  id: string;
  /** By how much each wallet changes once it is applied. */
  effects: bigint[];
  sent: number;
  /** When it was applied, if it ever was. */
  applied: number | undefined;
  /** When the answer arrived, or the outcome became unknown. */
  answered: number;
  end: 'accepted' | 'unknown' | 'rejected';
}

export interface History {
  writes: TrueWrite[];
  /** Changes made elsewhere: when, which wallet, how much. */
  outside: { at: number; wallet: number; amount: bigint }[];
}

const smallAmount = fc.bigInt({ min: -9n, max: 9n }).filter((amount) => amount !== 0n);

/** @param wallets how many; @param outside whether others change them as well */
export function histories(wallets: number, outside: boolean): fc.Arbitrary<History> {
  const aWrite = fc
    .record({
      effects: fc.array(fc.oneof(smallAmount, fc.constant(0n)), {
        minLength: wallets,
        maxLength: wallets,
      }),
      sent: fc.nat(BUSY),
      takes: fc.integer({ min: 0, max: 2_000 }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      end: fc.constantFrom('accepted', 'accepted', 'lost', 'late', 'dropped', 'rejected'),
    })
    .map(({ effects, sent, takes, share, end }): Omit<TrueWrite, 'id'> => {
      const answered = sent + takes;
      const within = (ms: number) => sent + Math.floor(share * ms);
      if (end === 'accepted') return { effects, sent, answered, applied: within(takes), end };
      if (end === 'rejected') return { effects, sent, answered, applied: undefined, end };
      const applied = {
        lost: within(takes),
        late: within(DEADLINE + QUIESCENCE),
        dropped: undefined,
      }[end];
      return { effects, sent, answered, applied, end: 'unknown' };
    });
  const aChange = fc.record({
    at: fc.nat(BUSY),
    wallet: fc.nat(wallets - 1),
    // No sum of writes is a multiple of a thousand but nothing.
    amount: fc.bigInt({ min: -5n, max: 5n }).map((n) => (n === 0n ? 1_000n : n * 1_000n)),
  });
  return fc.record({
    writes: fc
      .array(aWrite, { maxLength: 7 })
      .map((writes) => writes.map((one, i) => ({ ...one, id: `op_${i}` }))),
    outside: outside ? fc.array(aChange, { maxLength: 4 }) : fc.constant([]),
  });
}

/** What the service holds for a wallet at an instant; it began with nothing. */
export function balanceAt({ writes, outside }: History, wallet: number, instant: number): bigint {
  let sum = 0n;
  for (const { effects, applied } of writes)
    if (applied !== undefined && applied <= instant) sum += effects[wallet] ?? 0n;
  for (const change of outside)
    if (change.wallet === wallet && change.at <= instant) sum += change.amount;
  return sum;
}

/** The operation as recorded at an instant; undefined before the send. */
export function operationAt(truth: TrueWrite, instant: number): Operation | undefined {
  if (instant < truth.sent) return undefined;
  const state: State = instant < truth.answered ? 'sending' : truth.end;
  const answer = instant < truth.answered ? {} : { answered: truth.answered };
  return write(state, {
    id: truth.id,
    sent: truth.sent,
    sendDeadlineAt: at(truth.sent + DEADLINE),
    ...answer,
  });
}

/** Books at an instant: each executed write is posted when `posted` says so, else it is not yet. */
export function baselineAt(
  history: History,
  wallet: number,
  instant: number,
  drift: bigint,
  posted: (id: string) => boolean,
): Baseline {
  let ledger = 0n;
  const effects: OperationEffect[] = [];
  for (const truth of history.writes) {
    const operation = operationAt(truth, instant);
    if (!operation) continue;
    const effect = truth.effects[wallet] ?? 0n;
    const isPosted = outcomeOf(operation.state) === 'executed' && posted(operation.id);
    if (isPosted) ledger += effect;
    effects.push({ effect, operation, posted: isPosted });
  }
  return { ledger, version: 0n, drift, effects, complete: true };
}

/** When an observation was made, how stale it was, and when it was processed. */
export interface PollTiming {
  from: number;
  takes: number;
  stale: number;
  processedAfter: number;
}

export const pollTimings = (from: number, to: number): fc.Arbitrary<PollTiming> =>
  fc.record({
    from: fc.integer({ min: from, max: to }),
    takes: fc.nat(300),
    stale: fc.integer({ min: -300, max: LAG }),
    processedAfter: fc.nat(2_000),
  });

export function observedBalance(
  history: History,
  wallet: number,
  timing: PollTiming,
): ObservedBalance {
  const { from, takes, stale } = timing;
  const seenAt = Math.min(from - stale, from + takes);
  return {
    balance: balanceAt(history, wallet, seenAt),
    startedAt: at(from),
    endedAt: at(from + takes),
  };
}
