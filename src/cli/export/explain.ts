/** `tallyhook explain`: why a wallet holds what it holds, from this installation's database. */
import { isAddress } from '../../kernel/addresses.ts';
import { decimalText } from '../../kernel/amounts.ts';
import { type Instant, isoText } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/log.ts';
import { type Explanation, explainWallet } from '../../reports/reports.ts';
import { sentenceOf } from '../../resources/drift-words.ts';
import { withDatabase } from '../installation.ts';
import { instantOf } from '../options.ts';

interface Options {
  from?: string;
  to?: string;
  json?: true;
}

const PERIOD_MS = 30 * 86_400_000;

/** Exits 0 if no drift of the wallet is open, else 1. */
export async function runExplain(addr: string, options: Options): Promise<number> {
  if (!isAddress(addr)) throw new Failure('bad_setting', `${addr} is not an address`);
  return withDatabase(async ({ db, clock }) => {
    const to = instantOf('--to', options.to) ?? clock.now();
    const from = instantOf('--from', options.from) ?? to - PERIOD_MS;
    if (from >= to) throw new Failure('bad_setting', '--from must be before --to');
    const found = await explainWallet(db, { addr, from, to });
    const output = { addr, from: isoText(from), to: isoText(to), ...outputOf(found) };
    if (options.json) printLine(jsonText(output));
    else for (const line of linesOf(output)) printLine(line);
    return found.drifts.some(({ closedAt }) => closedAt === null) ? 1 : 0;
  });
}

function outputOf({ opening, closing, movements, observed, drifts }: Explanation) {
  const instant = (at: Instant | null) => (at === null ? null : isoText(at));
  return {
    opening: decimalText(opening),
    closing: decimalText(closing),
    movements: movements.map(({ kind, reasonType, entries, up, down }) => ({
      kind,
      reason_type: reasonType,
      entries,
      up: `${up}`,
      down: `${down}`,
    })),
    observed: observed?.observedAt
      ? {
          at: isoText(observed.observedAt),
          balance: decimalText(observed.observedBalance),
          ledger: decimalText(observed.ledgerAtObservation),
          verdict: observed.verdict,
        }
      : null,
    drifts: drifts.map((drift) => ({
      id: drift.id,
      addr: drift.addr,
      amount: decimalText(drift.amount),
      amount_min: `${drift.min}`,
      amount_max: `${drift.max}`,
      state: drift.state,
      cause: drift.cause,
      window_from: instant(drift.windowFrom),
      window_to: isoText(drift.windowTo),
      closed_at: instant(drift.closedAt),
    })),
  };
}

type Output = { addr: string; from: string; to: string } & ReturnType<typeof outputOf>;

const WIDTH = 28;

function linesOf({ addr, from, to, opening, closing, movements, observed, drifts }: Output) {
  const line = (name: string, amount: string | null) =>
    `${name.padEnd(WIDTH)} ${(amount ?? 'unknown').padStart(24)}`;
  return [
    `wallet ${addr}, ledger from ${from} to ${to}`,
    line('opening balance', opening),
    ...movements.flatMap(({ kind, reason_type, entries, up, down }) =>
      [up, down]
        .filter((amount) => amount !== '0')
        .map((amount) =>
          line([kind, reason_type, `(${entries})`].filter(Boolean).join(' '), amount),
        ),
    ),
    line('closing balance', closing),
    observed
      ? `observed ${observed.balance ?? 'unknown'} at ${observed.at}, where the ledger had ` +
        `${observed.ledger ?? 'unknown'}: ${observed.verdict}`
      : 'never observed',
    ...drifts.map((drift) => `${drift.id} ${drift.state}: ${sentenceOf(drift)}`),
    ...(drifts.length === 0 ? ['no drift in this period'] : []),
  ];
}
