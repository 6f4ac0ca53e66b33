/** Reconciliation of small databases: each fault causes exactly its break or open item. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { canonicalJson, sha256Hex } from '../../src/kernel/json.ts';
import type { Reconciliation } from '../../src/resources/reports/content.ts';
import { addr, balancedWorld, DAY, HOUR, HUGE, START, type World } from './world.ts';

let world: World | undefined;
afterEach(async () => {
  await world?.drop();
  world = undefined;
});

function breaksOf({ breaks }: Reconciliation) {
  return breaks.by_kind.map(({ kind, count }) => `${kind} ${count}`);
}
function itemsOf({ open_items }: Reconciliation) {
  return open_items.by_kind.map(({ kind, count }) => `${kind} ${count}`);
}

describe('A database without differences', () => {
  let tied: World;
  let content: Reconciliation;
  beforeAll(async () => {
    tied = await balancedWorld();
    content = (await tied.report()).content;
  });
  afterAll(() => tied.drop());

  it('The report is balanced without open items', () => {
    expect(content.headline).toBe('balanced');
    expect(content.breaks).toEqual({ total: 0, by_kind: [], listed: [] });
    expect(content.open_items.total).toBe(0);
  });

  it('The report lists movements by kind and reason, with fees', () => {
    expect(content.movements.listed).toMatchObject([
      { kind: 'give', reason_type: 'welcome', operations: 1, amount: '100', fees: '0' },
      { kind: 'receive_from', reason_type: 'shop', operations: 1, amount: '30', fees: '2' },
      { kind: 'transfer', reason_type: null, operations: 1, amount: '50', fees: '3' },
    ]);
    expect(content.fees).toBe('5');
  });

  it('Opening + in − out − fees = closing for every kind of account', () => {
    for (const row of [...content.roll_forward, ...content.own_accounts.listed]) {
      const flow = BigInt(row.incoming) - BigInt(row.outgoing) - BigInt(row.fees);
      expect(BigInt(row.opening) + flow).toBe(BigInt(row.closing));
    }
    const wallets = content.roll_forward.find(({ name }) => name === 'wallet');
    expect(wallets).toMatchObject({
      accounts: 2,
      opening: `${HUGE}`,
      prior_period: `${HUGE}`,
      incoming: '150',
      outgoing: '80',
      fees: '5',
      closing: `${HUGE + 65n}`,
    });
  });

  it('Ledger and observed balances agree in 60 digits', () => {
    expect(content.wallets.statement).toMatchObject({
      wallets: 2,
      ledger: `${HUGE + 65n}`,
      observed: `${HUGE + 65n}`,
      unexplained_up: '0',
      unexplained_down: '0',
    });
    expect(content.trial_balance.debit).toBe(content.trial_balance.credit);
  });

  it('The report counts its coverage', () => {
    expect(content.coverage).toMatchObject({
      in_scope: 2,
      checked: 2,
      stale: 0,
      never_observed: 0,
    });
  });

  it('The same cut-off gives the same content and hash', async () => {
    tied.clock.advance(DAY);
    const first = await tied.report();
    tied.clock.advance(DAY);
    const again = await tied.report();
    const stored = await tied.reports.getReport(again.id);
    expect(again.content).toEqual(first.content);
    expect(again.hash).toBe(first.hash);
    expect(stored.hash).toBe(again.hash);
    const hashOf = (content: object) => sha256Hex(canonicalJson(content));
    expect(hashOf(stored.content)).toBe(stored.hash);
    expect(hashOf({ ...stored.content, fees: '6' })).not.toBe(stored.hash);
  });
});

/** A change of a balanced database, with the breaks and open items that it must cause. */
interface Case {
  title: string;
  fault: (w: World) => Promise<unknown>;
  breaks?: string[];
  items?: string[];
}
const LONG_AGO = isoText(START + HOUR);
const owing = { state: 'unknown', answered_at: null, effective_at: null, amount: 9 };

const CASES: Case[] = [
  {
    title: 'Drifts of +5 and −5 are two breaks',
    fault: async (w) => {
      await w.drift(addr(1), 5n);
      await w.drift(addr(2), -5n);
      await w.sql(
        'update tallyhook.wallets set observed_balance = observed_balance + case addr ' +
          `when '${addr(1)}' then 5 else -5 end, verdict = 'drifting'`,
      );
    },
    breaks: ['drift_open 2'],
  },
  {
    title: 'A difference without a drift is a break',
    fault: (w) =>
      w.sql(`update tallyhook.wallets set observed_balance = 151 where addr = '${addr(1)}'`),
    breaks: ['observed_not_explained 1'],
  },
  {
    title: 'A difference that was observed once is an open item',
    fault: (w) =>
      w.sql(`update tallyhook.wallets set observed_balance = 151, verdict = 'drifting',
      cause = 'suspected' where addr = '${addr(1)}'`),
    items: ['drift_suspected 1'],
  },
  {
    title: 'An unknown operation after its quiescence is a break',
    fault: (w) => w.operation({ ...owing, send_deadline_at: LONG_AGO }),
    breaks: ['outcome_unknown 1'],
  },
  {
    title: 'An unknown operation within its quiescence is an open item',
    fault: (w) => w.operation({ ...owing, send_deadline_at: isoText(START + 2 * DAY) }),
    items: ['write_in_flight 1'],
  },
  {
    title: 'An undecided outcome is a break',
    fault: (w) => w.operation({ ...owing, state: 'undecided' }),
    breaks: ['outcome_undecided 1'],
  },
  {
    title: 'A quarantined posting is a break',
    fault: (w) => w.operation({ quarantine_reason: 'repeated_tx_log_no', to_addr: addr(3) }),
    breaks: ['posting_quarantined 1'],
  },
  {
    title: 'A quarantined observation is a break',
    fault: (w) =>
      w.sql(`insert into tallyhook.unprocessed_observations (target, kind, observation_id,
        unchanged_since, started_at, ended_at, result, process_at, failures, problem)
        select 'wallet:0x1', 'wallet', 'obs_1', at, at, at, 'seen', at, 5, 'broken'
        from (select '${isoText(START)}'::timestamptz as at) x`),
    breaks: ['observation_quarantined 1'],
  },
  {
    title: 'An operation that cannot be posted is quarantined and a break',
    fault: async (w) => {
      await w.operation({ amount: -1, to_addr: addr(3) });
      await w.post();
    },
    breaks: ['posting_quarantined 1'],
  },
  {
    title: 'An overdue posting is a break',
    fault: (w) => w.operation({ to_addr: addr(3) }),
    breaks: ['posting_overdue 1'],
  },
  {
    title: 'A posting that is due is an open item',
    fault: (w) => w.operation({ to_addr: addr(3), effective_at: isoText(w.clock.now()) }),
    items: ['posting_due 1'],
  },
  {
    title: 'An operation whose amount changed after its posting is a break',
    fault: (w) => w.sql("update tallyhook.operations set amount = 101 where kind = 'give'"),
    breaks: ['posted_differently 1'],
  },
  {
    title: 'An operation whose receiver changed after its posting is a break',
    fault: (w) =>
      w.sql(`update tallyhook.operations set to_addr = '${addr(9)}' where kind = 'give'`),
    breaks: ['posted_differently 1'],
  },
  {
    title: 'A posted operation that was not executed, with no reversal due, is a break',
    fault: async (w) => {
      await w.sql("update tallyhook.operations set state = 'failed' where kind = 'give'");
      await w.owner.sql`delete from tallyhook.due_postings`;
    },
    breaks: ['posted_too_often 1'],
  },
  {
    title: 'An executed operation that is neither posted nor due is a break',
    fault: async (w) => {
      await w.operation({ tx_log_no: 9, to_addr: addr(9) });
      await w.owner.sql`delete from tallyhook.due_postings`;
    },
    breaks: ['posting_missing 1'],
  },
  {
    title: 'A stale wallet is an open item',
    fault: (w) =>
      w.sql(`update tallyhook.wallets set observed_at = '2025-12-01', observed_balance = ${HUGE}
      where addr = '${addr(2)}'`),
    items: ['wallet_stale 1'],
  },
  {
    title: 'A wallet without conclusive observations for long is an open item',
    fault: (w) =>
      w.sql(`update tallyhook.wallets set verdict = 'inconclusive', quiet_at = '2025-12-01',
      cause = 'no_subset_explains' where addr = '${addr(2)}'`),
    items: ['wallet_inconclusive 1'],
  },
  {
    title: 'An unopened wallet is an open item',
    fault: (w) =>
      w.wallet(addr(5), 4n, { opened_at: null, verdict: 'unopened', cause: 'writes are open' }),
    items: ['wallet_unopened 1'],
  },
  {
    title: 'An executed operation of unknown kind is an open item',
    fault: (w) => w.operation({ kind: 'other', to_addr: null, operation_no: null }),
    items: ['write_not_mapped 1'],
  },
];

describe('Faults', () => {
  it.each(CASES)('$title', async ({ fault, breaks = [], items = [] }) => {
    world = await balancedWorld();
    await fault(world);
    const report = await world.report();
    expect({ breaks: breaksOf(report.content), items: itemsOf(report.content) }).toEqual({
      breaks,
      items,
    });
    expect(report.verdict).toBe(breaks.length === 0 ? 'balanced' : 'breaks');
    expect(report.breaks).toBe(report.content.breaks.total);
  });

  it('Damage to the ledger with disabled guards is found', async () => {
    world = await balancedWorld();
    await world.owner.sql.unsafe(`alter table tallyhook.entries disable trigger user;
      alter table tallyhook.transactions disable trigger user;
      alter table tallyhook.batches disable trigger user;
      update tallyhook.entries set amount = amount + 1 where transaction_id = 2 and line = 1;
      delete from tallyhook.entries where transaction_id = 3;
      update tallyhook.batches set transactions = 99 where id = 1;
      update tallyhook.transactions set operation_id = 'op_missing' where id = 4`);
    const { content } = await world.report();
    expect(breaksOf(content)).toEqual([
      'trial_balance_off 1',
      'batch_incomplete 1',
      'transaction_unbalanced 2',
      'account_off 4',
      'posting_without_operation 1',
      'posting_missing 1',
    ]);
  });
});

describe('Drift', () => {
  it('Drifts up and down are not netted and keep sign, age and assignee', async () => {
    world = await balancedWorld();
    const since = isoText(world.clock.now() - 3 * HOUR);
    await world.drift(addr(1), 5n, { suspected_at: since, assignee: 'ann' });
    await world.drift(addr(2), -5n);
    const { content } = await world.report();
    expect(content.wallets.drift).toEqual({
      up: { count: 1, amount: '5' },
      down: { count: 1, amount: '-5' },
    });
    expect(content.breaks.listed.filter(({ kind }) => kind === 'drift_open')).toMatchObject([
      { amount: '5', since, assignee: 'ann' },
      { amount: '-5', assignee: null },
    ]);
  });
});
