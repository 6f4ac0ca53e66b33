import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { solveJointly, type WalletEvidence } from '../../src/reconciler/unknown/rule.ts';
import {
  driftStep,
  type OpenDrift,
  type Suspicion,
} from '../../src/reconciler/wallets/drift-rule.ts';
import { evaluateBalance, expectationOf } from '../../src/reconciler/wallets/rule.ts';
import { at } from './builders.ts';
import {
  baselineAt,
  CALM,
  type History,
  histories,
  LAG,
  observedBalance,
  type PollTiming,
  pollTimings,
  QUIESCENCE,
} from './random-history.ts';

const RUNS = { numRuns: 1_500 };
const inOrder = (observations: readonly PollTiming[]) =>
  observations.toSorted((a, b) => a.from - b.from);
/** Posted or not yet, by a number drawn for the history. */
const poster = (bits: number) => (id: string) => (bits >> Number(id.slice(3))) % 2 === 1;

describe('The rules over random histories of a wallet', () => {
  it('A balance that only known operations changed is always explained', () => {
    const input = fc.tuple(
      histories(1, false),
      fc.array(pollTimings(0, CALM), { maxLength: 8 }),
      fc.nat(),
    );
    fc.assert(
      fc.property(input, ([history, observations, bits]) => {
        for (const observation of observations) {
          const processedAt = observation.from + observation.takes + observation.processedAfter;
          const baseline = baselineAt(history, 0, processedAt, 0n, poster(bits));
          const observed = observedBalance(history, 0, observation);
          const { result } = evaluateBalance(
            observed.balance,
            expectationOf(observed, baseline, LAG),
          );
          expect(result).toBe('explained');
        }
      }),
      RUNS,
    );
  });

  it('Every outside change ends as a drift or a return, and every difference is named', () => {
    const input = fc.tuple(
      histories(1, true),
      fc.array(pollTimings(0, CALM), { maxLength: 12 }),
      // After quiescence: two observations that do not overlap.
      fc.tuple(pollTimings(CALM + 1_000, CALM + 1_000), pollTimings(CALM + 2_000, CALM + 2_000)),
      fc.nat(),
    );
    fc.assert(
      fc.property(input, ([history, observations, last, bits]) => {
        const calm = withoutUnknown(history);
        const drifts = follow(calm, [...inOrder(observations), ...last], poster(bits));
        const outside = history.outside.reduce((sum, { amount }) => sum + amount, 0n);
        expect(drifts.reduce((sum, { amount }) => sum + amount, 0n)).toBe(outside);
      }),
      RUNS,
    );
  });
});

/** Resolves all unknown operations within the history. */
function withoutUnknown(history: History): History {
  const writes = history.writes.map((truth) =>
    truth.end === 'unknown'
      ? {
          ...truth,
          end: truth.applied === undefined ? ('rejected' as const) : ('accepted' as const),
          answered: Math.max(truth.answered, truth.applied ?? 0),
        }
      : truth,
  );
  return { ...history, writes };
}

/**
 * Applies the rules to observations in order; answers the drifts that are open at the end.
 */
function follow(
  history: History,
  observations: readonly PollTiming[],
  posted: (id: string) => boolean,
): OpenDrift[] {
  let drifts: OpenDrift[] = [];
  let suspicion: Suspicion | undefined;
  for (const [i, observation] of observations.entries()) {
    const observed = observedBalance(history, 0, observation);
    const processedAt = observation.from + observation.takes + observation.processedAfter;
    const drift = drifts.reduce((sum, { amount }) => sum + amount, 0n);
    const expected = expectationOf(
      observed,
      baselineAt(history, 0, processedAt, drift, posted),
      LAG,
    );
    const result = evaluateBalance(observed.balance, expected);
    if (result.result === 'explained') {
      const shown = result.shown.reduce((sum, { effect }) => sum + effect, 0n);
      expect(observed.balance).toBe(expected.base + shown);
      suspicion = undefined;
    }
    if (result.result !== 'unexplained') continue;
    const step = driftStep(result.residual, suspicion, drifts, observed);
    suspicion = step.step === 'suspect' ? step.suspicion : undefined;
    if (step.step === 'return')
      drifts = drifts.filter(({ id }) => !step.drifts.some((returned) => returned.id === id));
    if (step.step === 'open') drifts = [...drifts, { id: `drf_${i}`, amount: step.amount }];
    if (step.step === 'suspect') continue;
    const named = drifts.reduce((sum, { amount }) => sum + amount, 0n);
    expect(observed.balance - (expected.base - drift)).toBe(named);
  }
  return drifts;
}

describe('The rules over random unknown operations', () => {
  it('What all explanations agree on is true, for any times of the observations', () => {
    const wallets = 3;
    const input = fc.tuple(
      histories(wallets, false),
      fc.array(pollTimings(0, CALM + 5_000), { minLength: wallets, maxLength: wallets }),
      fc.nat(),
    );
    let findings = 0;
    fc.assert(
      fc.property(input, ([history, observations, bits]) => {
        const processedAt = Math.max(
          ...observations.map((l) => l.from + l.takes + l.processedAfter),
        );
        const evidence = observations.map((observation, i) =>
          evidenceOf(history, i, observation, processedAt, poster(bits)),
        );
        const solved = solveJointly(evidence);
        if (typeof solved === 'string') {
          expect(solved).not.toBe('none');
          return;
        }
        for (const truth of history.writes.filter(({ end }) => end === 'unknown')) {
          const shown = solved.shown.get(truth.id);
          const quiescent = solved.startedAt >= at(truth.sent + 3_000 + QUIESCENCE + LAG);
          if (shown === 'all') expect(truth.applied).toBeDefined();
          if (shown === 'none' && quiescent) expect(truth.applied).toBeUndefined();
          if (shown === 'all' || (shown === 'none' && quiescent)) findings++;
        }
      }),
      RUNS,
    );
    expect(findings).toBeGreaterThan(0);
  });
});

function evidenceOf(
  history: History,
  wallet: number,
  observation: PollTiming,
  processedAt: number,
  posted: (id: string) => boolean,
): WalletEvidence {
  const observed = observedBalance(history, wallet, observation);
  const baseline = baselineAt(history, wallet, processedAt, 0n, posted);
  const { base, possible } = expectationOf(observed, baseline, LAG);
  return {
    key: `w${wallet}`,
    residual: observed.balance - base,
    possible: possible.map(({ operation, effect }) => ({
      id: operation.id,
      effect,
      quiescent:
        operation.outcome === 'open' &&
        observed.startedAt >= (operation.sendDeadlineAt ?? 0) + QUIESCENCE + LAG,
    })),
    observationId: `obs_${wallet}`,
    startedAt: observed.startedAt,
    endedAt: observed.endedAt,
  };
}
