/** The rules of closing periods, as tables. */
import { describe, expect, it } from 'vitest';
import { Failure } from '../../../src/kernel/errors.ts';
import {
  assertReopenable,
  assertSignable,
  obstaclesOf,
  type PeriodReport,
  periodToClose,
  signedOff,
} from '../../../src/reports/periods/rule.ts';
import type { PeriodState } from '../../../src/resources/ledger/period.ts';
import type { Finding } from '../../../src/resources/reports/finding.ts';

/** The value, or the code of the Failure. */
function outcomeOf<T>(work: () => T): T | string {
  try {
    return work();
  } catch (error) {
    return error instanceof Failure ? error.code : String(error);
  }
}

describe('A period begins where the last closed one ends', () => {
  it.each([
    // from, to, end of the last closed period
    [undefined, 20, null, 'invalid_request'],
    [10, 20, null, { from: 10, to: 20 }],
    [undefined, 20, 10, { from: 10, to: 20 }],
    [10, 20, 10, { from: 10, to: 20 }],
    [9, 20, 10, 'conflict'],
    [11, 20, 10, 'conflict'],
    [10, 10, null, 'invalid_request'],
    [undefined, 10, 10, 'invalid_request'],
    [undefined, 9, 10, 'invalid_request'],
  ])('from %s to %s after %s: %j', (from, to, lastEnd, expected) => {
    expect(outcomeOf(() => periodToClose({ from, to }, lastEnd))).toEqual(expected);
  });
});

function finding(kind: Finding['kind'], subject: string): Finding {
  const nothing = { amount: null, since: null, age_s: null, assignee: null, evidence: {} };
  // As the report words it: a damaged ledger needs a backup.
  return { kind, subject, ...nothing, next: '' };
}

function contentOf(input: {
  provisional?: boolean;
  breaks?: Finding[];
  items?: Finding[];
  hidden?: number;
}): PeriodReport {
  const { provisional = false, breaks = [], items = [], hidden = 0 } = input;
  return {
    provisional,
    period: { from: '2026-01-01T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' },
    breaks: { total: breaks.length + hidden, by_kind: [], listed: breaks },
    open_items: { total: items.length, by_kind: [], listed: items },
  };
}

const drift = finding('drift_open', 'drf_1');
const unknown = finding('outcome_unknown', 'op_1');
const stale = finding('wallet_stale', 'wallet:0x1');
const damage = finding('trial_balance_off', 'ledger');

describe('What prevents the close of a period', () => {
  it.each<[string, Parameters<typeof contentOf>[0], string[], string[]]>([
    ['Nothing, when it is balanced', {}, [], []],
    ['Nothing, when only open items are left', { items: [stale] }, [], []],
    ['That it still runs', { provisional: true }, [], ['period_runs']],
    ['A break', { breaks: [drift] }, [], ['drift_open drf_1']],
    ['No break that is signed off', { breaks: [drift] }, ['drf_1'], []],
    ['Each other break', { breaks: [drift, unknown] }, ['drf_1'], ['outcome_unknown op_1']],
    [
      'A damaged ledger, also signed off',
      { breaks: [damage] },
      ['ledger'],
      ['trial_balance_off ledger'],
    ],
    ['Breaks beyond the list', { breaks: [drift], hidden: 3 }, ['drf_1'], ['breaks_not_listed']],
    [
      'A sign-off of what the report does not have',
      { items: [stale] },
      ['wallet:0x1', 'drf_9'],
      ['no_such_item drf_9'],
    ],
  ])('%s', (_, input, named, expected) => {
    const signOffs = named.map((subject) => ({ subject, reason: 'known' }));
    const found = obstaclesOf(contentOf(input), signOffs);
    expect(found.map(({ kind, subject }) => `${kind} ${subject ?? ''}`.trim())).toEqual(expected);
  });

  it('Each item that is signed off keeps its reason', () => {
    const content = contentOf({ breaks: [drift, unknown], items: [stale] });
    const signOffs = [
      { subject: 'wallet:0x1', reason: 'closed shop' },
      { subject: 'drf_1', reason: 'refund' },
    ];
    expect(signedOff(content, signOffs)).toEqual([
      { finding: drift, reason: 'refund' },
      { finding: stale, reason: 'closed shop' },
    ]);
  });
});

describe('What may happen to a closed period', () => {
  it.each<[PeriodState, string, string | undefined, string | undefined]>([
    // state, newest period in force (it is per_1), signature, reopening
    ['closed', 'per_1', undefined, undefined],
    ['closed', 'per_2', undefined, 'conflict'],
    ['signed', 'per_1', 'conflict', undefined],
    ['signed', 'per_2', 'conflict', 'conflict'],
    ['reopened', 'per_2', 'conflict', 'conflict'],
  ])('%s, with the newest %s: sign %s, reopen %s', (state, newest, sign, reopen) => {
    const period = { id: 'per_1', state };
    expect(outcomeOf(() => assertSignable(period))).toBe(sign);
    expect(outcomeOf(() => assertReopenable(period, { id: newest }))).toBe(reopen);
  });
});
