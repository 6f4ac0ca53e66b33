/** `tallyhook explain`: why a wallet holds what it holds, from this installation's database. */
import { isAddress } from '../../kernel/addresses.ts';
import { DAY_MS } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import { explainWallet, instantOf } from '../../reports/reports.ts';
import { sentenceOf } from '../../resources/ledger/drift-words.ts';
import { explanation } from '../../resources/ledger/wallet.ts';
import { parseMoment, parseSpan } from '../../resources/moments.ts';
import type { Shown } from '../../resources/resource.ts';
import { shower } from '../../resources/show.ts';
import { withDatabase } from '../installation.ts';
import type { PeriodOptions } from '../options.ts';

interface Options extends PeriodOptions {
  json?: true;
}

const PERIOD_MS = 30 * DAY_MS;

/** Exits 0 if no drift of the wallet is open, else 1. */
export async function runExplain(addr: string, options: Options): Promise<number> {
  if (!isAddress(addr)) throw new Failure('bad_setting', `${addr} is not an address`);
  return withDatabase(async ({ db, clock }, { reports }) => {
    const { time_zone: zone } = reports.reconciliation;
    const span = parseSpan(options.period ?? '');
    const atOf = (text: string | undefined, moment = parseMoment(text ?? '')) =>
      moment && instantOf(db, moment, zone);
    const to = (await atOf(options.to, span?.to)) ?? clock.now();
    const from = (await atOf(options.from, span?.from)) ?? to - PERIOD_MS;
    if (from >= to) throw new Failure('bad_setting', '--from must be before --to');
    const found = await explainWallet(db, { addr, from, to });
    const shown = shower(explanation)(found);
    if (options.json) printLine(jsonText(shown));
    else for (const line of linesOf(shown)) printLine(line);
    return found.drifts.some(({ closedAt }) => closedAt === null) ? 1 : 0;
  });
}

const WIDTH = 28;

function linesOf(shown: Shown<typeof explanation>) {
  const { addr, from, to, opening, closing, movements, observed, drifts } = shown;
  const line = (name: string, amount: string | null) =>
    `${name.padEnd(WIDTH)} ${(amount ?? 'unknown').padStart(24)}`;
  return [
    `wallet ${addr}, ledger from ${from} to ${to}`,
    line('opening balance', opening),
    ...movements.map(({ kind, reason_type, entries, up, down }) =>
      line(
        [kind, reason_type, `(${entries})`].filter(Boolean).join(' '),
        [up, down].filter((amount) => amount !== '0').join(' '),
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
