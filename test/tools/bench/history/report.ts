/**
 * The cost of a report: seconds and memory of the report of one month, with a year of history
 * behind it, of small wallets. The reports run in this process over an embedded Postgres.
 */
import { WRITER } from '../../../../src/db/access/roles.ts';
import { connect } from '../../../../src/db/connect.ts';
import { isoText, monotonicMs } from '../../../../src/kernel/clock.ts';
import { keepDayEnd } from '../../../../src/ledger/ledger.ts';
import { DEFAULT_LIMITS, makeReports } from '../../../../src/reports/reports.ts';
import { manualClock } from '../../../harness/manual-clock.ts';
import { openStages } from '../../../harness/stages.ts';
import { type Bench, figuresOf, type Result } from '../frame.ts';
import { onHistories } from './databases.ts';
import { HISTORY_END } from './generate.ts';

const DAY_MS = 86_400_000;
const SHAPE = { days: 365, perUser: 5 };

/** Every wallet was opened, and holds what its account says. */
const WALLETS = `
  insert into tallyhook.wallets (key, addr, status, observed_balance, observed_at,
    observation_ended_at, opened_at, consistent_at, quiet_at, ledger_at_observation,
    observation_id, verdict)
  select lower(substr(a.name, 8)), substr(a.name, 8), 1, a.balance, t.at, t.at, a.opened_at, t.at,
    t.at, a.balance, 'obs_1', 'explained'
  from tallyhook.accounts a, (values (timestamptz '${isoText(HISTORY_END + 60_000)}')) t(at)
  where a.kind = 'wallet'`;

const PERIODS: [string, number, number][] = [
  ['the last month', HISTORY_END - 31 * DAY_MS, HISTORY_END],
  ['a month half a year ago', HISTORY_END - 200 * DAY_MS, HISTORY_END - 170 * DAY_MS],
  ['the last day', HISTORY_END - DAY_MS, HISTORY_END],
];

export const report: Bench = {
  name: 'report',
  what: 'reports over a year of history, two entries per stored operation and a wallet per five',
  target: '5,000,000 stored operations: at most 60 s and 300 MiB',
  long: true,
  run: ({ rounds, stored }) =>
    onHistories(stored, { shape: SHAPE, prepare: WALLETS }, (url, operations) =>
      measure(url, operations, rounds),
    ),
};

async function measure(url: string, operations: number, rounds: number): Promise<Result[]> {
  const db = connect({ url, role: WRITER, max: 4, statementTimeoutMs: 600_000 });
  const clock = manualClock(HISTORY_END + 3_700_000);
  const stages = await openStages(db, { clock, aliveMs: 1e12 });
  const results: Result[] = [];
  try {
    const started = monotonicMs();
    let days = 0;
    while (await keepDayEnd(db, clock.now(), 'UTC')) days += 1;
    results.push({
      what: `keep the balances of one day, ${operations.toLocaleString('en')} stored`,
      unit: 's',
      measured: figuresOf([{ value: (monotonicMs() - started) / 1_000 / days }]),
      note: `${days} days`,
    });
    const scan: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const begun = monotonicMs();
      const rows = await db.sql<{ drifting: number }[]>`
        select count(*)::int as drifting from finance_v1.wallet_positions
        where observed_balance <> ledger_at_observation or drift <> 0`;
      scan.push((monotonicMs() - begun) / 1_000);
      if (rows[0]?.drifting !== 0) throw new Error(`${rows[0]?.drifting} wallets drift`);
    }
    results.push({
      what: `scan of all wallets for drifts, ${operations.toLocaleString('en')} stored`,
      unit: 's',
      measured: figuresOf(scan.map((value) => ({ value }))),
      target: { of: 'measured', atMost: 2 },
    });
    const reports = makeReports({ ...stages, reads: stages.db, settings: DEFAULT_LIMITS });
    for (const [what, from, to] of PERIODS) {
      const seconds: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const begun = monotonicMs();
        const { content } = await reports.makeReconciliation({ from, to, requestedBy: 'bench' });
        seconds.push((monotonicMs() - begun) / 1_000);
        if (content.verdict !== 'balanced')
          throw new Error(`the report is not balanced: ${JSON.stringify(content.breaks.by_kind)}`);
      }
      results.push({
        what: `report of ${what}, ${operations.toLocaleString('en')} stored`,
        unit: 's',
        measured: figuresOf(seconds.map((value) => ({ value }))),
        target: { of: 'measured', atMost: 60 },
      });
    }
    // The generator holds no rows, so the peak is that of the reports.
    const peak = process.resourceUsage().maxRSS / 1024;
    results.push({
      what: 'peak memory of this process',
      unit: 'MiB',
      measured: figuresOf([{ value: peak }]),
      target: { of: 'measured', atMost: 300 },
    });
    return results;
  } finally {
    await db.end();
  }
}
