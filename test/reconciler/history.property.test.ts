import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
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
  type PollTiming,
  pollTimings,
  QUIESCENCE,
  sightOf,
} from './random-history.ts';

const RUNS = { numRuns: 1_500 };
const inOrder = (observations: readonly PollTiming[]) =>
  observations.toSorted((a, b) => a.from - b.from);
/** Posted or not yet, by a number drawn for the history. */
const poster = (bits: number) => (id: string) => (bits >> Number(id.slice(3))) % 2 === 1;

describe('Whatever happens on a wallet', () => {
  test('A balance that only our own writes changed is always explained', () => {
    const given = fc.tuple(
      histories(1, false),
      fc.array(pollTimings(0, CALM), { maxLength: 8 }),
      fc.nat(),
    );
    fc.assert(
      fc.property(given, ([history, observations, bits]) => {
        for (const observation of observations) {
          const processedAt = observation.from + observation.takes + observation.processedAfter;
          const baseline = baselineAt(history, 0, processedAt, 0n, poster(bits));
          const observed = sightOf(history, 0, observation);
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

  test('Every outside change ends as drift or return, and every difference has a name', () => {
    const given = fc.tuple(
      histories(1, true),
      fc.array(pollTimings(0, CALM), { maxLength: 12 }),
      // Once all is quiet: two looks, of which the second begins after the first ended.
      fc.tuple(pollTimings(CALM + 1_000, CALM + 1_000), pollTimings(CALM + 2_000, CALM + 2_000)),
      fc.nat(),
    );
    fc.assert(
      fc.property(given, ([history, observations, last, bits]) => {
        const calm = withoutUnknown(history);
        const drifts = follow(calm, [...inOrder(observations), ...last], poster(bits));
        const outside = history.outside.reduce((sum, { amount }) => sum + amount, 0n);
        expect(drifts.reduce((sum, { amount }) => sum + amount, 0n)).toBe(outside);
      }),
      RUNS,
    );
  });
});

/** Lost writes end within the history, as evidence or people would end them. */
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
 * Takes looks one after the other through the rules; answers the drifts that are open at the end.
 */
function follow(
  history: History,
  observations: readonly PollTiming[],
  posted: (id: string) => boolean,
): OpenDrift[] {
  let drifts: OpenDrift[] = [];
  let suspicion: Suspicion | undefined;
  for (const [i, observation] of observations.entries()) {
    const observed = sightOf(history, 0, observation);
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

describe('Whatever happens to lost answers', () => {
  test('An explanation is never wrong of what it speaks of, however the looks lie', () => {
    const wallets = 3;
    const given = fc.tuple(
      histories(wallets, false),
      fc.array(pollTimings(0, CALM + 5_000), { minLength: wallets, maxLength: wallets }),
      fc.nat(),
    );
    let spoken = 0;
    fc.assert(
      fc.property(given, ([history, observations, bits]) => {
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
          if (shown === 'all' || (shown === 'none' && quiescent)) spoken++;
        }
      }),
      RUNS,
    );
    expect(spoken).toBeGreaterThan(0);
  });
});

function evidenceOf(
  history: History,
  wallet: number,
  observation: PollTiming,
  processedAt: number,
  posted: (id: string) => boolean,
): WalletEvidence {
  const observed = sightOf(history, wallet, observation);
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
