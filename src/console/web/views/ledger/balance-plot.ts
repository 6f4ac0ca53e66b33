/** The balance of a wallet over time: by the ledger, as observed, and while a drift is open. */

import type { statementLine, walletObservation } from '../../../../resources/ledger/wallet.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { readersNow } from '../../kit/format.ts';
import { html, useMemo } from '../../kit/html.ts';
import { Plot } from '../../kit/plot.ts';
import type { Drift } from '../drifts/drift-words.ts';

type StatementLine = Shown<typeof statementLine>;
type Observation = Shown<typeof walletObservation>;

interface BalanceProps {
  /** The balance by the ledger now. */
  balance: string;
  lines: readonly StatementLine[] | undefined;
  observations: readonly Observation[] | undefined;
  drifts: readonly Drift[] | undefined;
}

/** Of the newest entries and observations that were given. */
export function BalancePlot({ balance, lines, observations, drifts }: BalanceProps) {
  const plot = useMemo(
    () => seriesOf(BigInt(balance), lines ?? [], observations ?? [], drifts ?? [], readersNow()),
    [balance, lines, observations, drifts],
  );
  return html`<${Plot} label="Balance in tokens" steps ...${plot} />`;
}

const at = (iso: string) => Date.parse(iso);

/** Steps of a value over time; each holds until the next. */
type Steps = { at: number; value: number | null }[];

function seriesOf(
  balance: bigint,
  lines: readonly StatementLine[],
  observations: readonly Observation[],
  drifts: readonly Drift[],
  now: number,
) {
  const ledger = ledgerSteps(balance, lines);
  const observed: Steps = observations
    .filter(({ balance: of }) => of !== null)
    .map((one) => ({ at: at(one.unchanged_since), value: Number(one.balance) }))
    .toSorted((a, b) => a.at - b.at);
  // What explains these is in the ledger at its time.
  const beside = drifts.filter(({ state }) => !['explained', 'booked', 'linked'].includes(state));
  const open = beside.map((one) => [at(one.suspected_at), one.closed_at ? at(one.closed_at) : now]);
  const first = Math.max(ledger[0]?.at ?? 0, observed[0]?.at ?? 0);
  const instants = [...ledger, ...observed].map((step) => step.at);
  const times = [...new Set([...instants, ...open.flat(), now])]
    .filter((time) => time >= first && time <= now)
    .toSorted((a, b) => a - b);
  const isOpen = (time: number) => open.some(([from = 0, to = 0]) => time >= from && time <= to);
  const seen = valuesAt(observed, times);
  return {
    times: ledger.length + observed.length === 0 ? [] : times.map((time) => time / 1_000),
    series: [
      { label: 'observed', colour: 'warn', values: seen },
      { label: 'ledger', colour: 'mark', values: valuesAt(ledger, times) },
      {
        label: 'in drift',
        colour: 'bad',
        values: times.map((time, i) => (isOpen(time) ? (seen[i] ?? null) : null)),
      },
    ],
  };
}

/** Backwards from the balance now, in the order in which the entries took effect. */
function ledgerSteps(balance: bigint, lines: readonly StatementLine[]): Steps {
  const newestFirst = lines.toSorted((a, b) => at(b.effective_at) - at(a.effective_at));
  let after = balance;
  const steps: Steps = newestFirst.map(({ effective_at, amount }) => {
    const step = { at: at(effective_at), value: Number(after) };
    after -= BigInt(amount);
    return step;
  });
  return steps.reverse();
}

/** Both ascending. */
function valuesAt(steps: Steps, times: readonly number[]): (number | null)[] {
  let next = 0;
  let value: number | null = null;
  return times.map((time) => {
    for (let step = steps[next]; step && step.at <= time; step = steps[next]) {
      value = step.value;
      next += 1;
    }
    return value;
  });
}
