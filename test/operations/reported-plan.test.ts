/** The rule for reported operations, with generated reports in random order and batch sizes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_FIELDS, type Operation, type State } from '../../src/operations/operations.ts';
import { planReports, type Report, transactionKey } from '../../src/operations/reported/plan.ts';
import { reportOf } from '../ledger/builders.ts';

const AT = Date.UTC(2026, 0, 31);
const [A, B] = [`0x${'a'.repeat(40)}`, `0x${'b'.repeat(40)}`];
const BY = { owner: 'app', keyId: 'key_1' };
const GIVE = { toAddr: A, operationNo: 1n, amount: 10n };

function report(change: Partial<Report> = {}): Report {
  const about = { txAppNo: 7n, txLogNo: 1n, occurredAt: AT, distinct: false };
  return reportOf({ ...about, ...change, fields: change.fields ?? GIVE });
}

/** A give of 10 of ours without a number. */
function ours(id: string, state: State): Operation {
  const plan = planReports(
    [{ n: 0, report: report(), by: BY }],
    { sameNumber: new Map(), named: new Map(), alike: new Map() },
    AT,
    () => id,
  );
  const [made] = plan.fresh;
  if (!made) throw new Error('nothing was planned');
  return { ...made.operation, source: 'gateway', state, txAppNo: null, txLogNo: null, sentAt: AT };
}

/** What a store would hold: operations by id, changed as plans say. */
function memory(first: readonly Operation[] = []) {
  const operations = new Map(first.map((operation) => [operation.id, operation]));
  let next = 0;
  const all = () => [...operations.values()];
  const open = () => all().filter(({ txLogNo, state }) => txLogNo === null && state !== 'rejected');
  return {
    all,
    take(reports: readonly Report[]) {
      const lines = reports.map((one, n) => ({ n, report: one, by: BY }));
      const sameNumber = new Map<string, Operation[]>();
      for (const one of all()) if (one.txLogNo !== null) sameNumber.set(transactionKey(one), [one]);
      const alike = new Map(
        lines.map(({ n, report: { fields } }) => [
          n,
          open().filter(
            ({ toAddr, amount }) => toAddr === fields.toAddr && amount === fields.amount,
          ),
        ]),
      );
      const matching = { sameNumber, named: new Map(operations), alike };
      const plan = planReports(lines, matching, AT, () => `op_new_${next++}`);
      for (const { operation } of plan.fresh) operations.set(operation.id, operation);
      for (const { id, ...change } of [...plan.moves, ...plan.numberings]) {
        const { txAppNo = null, txLogNo = null } = change;
        const before = operations.get(id) as Operation;
        const state = 'to' in change ? change.to : before.state;
        operations.set(id, { ...before, txAppNo, txLogNo, state, outcome: 'executed' });
      }
      return plan;
    },
  };
}

describe('Reports', () => {
  const some = fc.record({
    txLogNo: fc.bigInt(1n, 5n),
    amount: fc.constantFrom(10n, 11n),
    to: fc.constantFrom(A, B),
    operationId: fc.constantFrom(null, null, 'op_unknown', 'op_executed', 'op_sending', 'op_none'),
    distinct: fc.boolean(),
  });
  const reports = fc.array(some, { maxLength: 14 }).map((rows) =>
    rows.map(({ txLogNo, amount, to, operationId, distinct }) =>
      report({
        txLogNo,
        operationId,
        distinct,
        fields: { ...NO_FIELDS, ...GIVE, toAddr: to, amount },
      }),
    ),
  );
  const world = () =>
    memory([
      ours('op_unknown', 'unknown'),
      ours('op_executed', 'executed'),
      ours('op_sending', 'sending'),
    ]);

  it('Reports in any order give each number one operation at most, and each report one result', () => {
    fc.assert(
      fc.property(reports, (input) => {
        const kept = world();
        const plan = kept.take(input);
        const numbers = kept.all().flatMap(({ txLogNo }) => txLogNo ?? []);
        expect(new Set(numbers).size).toBe(numbers.length);
        const places = [plan.fresh, plan.changed, plan.known, plan.refused]
          .flat()
          .map(({ n }) => n);
        expect(places.toSorted((a, b) => a - b)).toEqual(input.map((_, n) => n));
      }),
    );
  });

  it('Reports cut into any batches lead to the same operations', () => {
    fc.assert(
      fc.property(reports, fc.array(fc.nat(14), { maxLength: 4 }), (input, cuts) => {
        const whole = world();
        whole.take(input);
        const pieces = world();
        const places = [0, ...cuts.toSorted((a, b) => a - b), input.length];
        places.slice(1).forEach((end, n) => {
          pieces.take(input.slice(places[n], end));
        });
        expect(pieces.all()).toEqual(whole.all());
      }),
    );
  });

  it('Reports that were taken are known when they are repeated, and change nothing', () => {
    fc.assert(
      fc.property(reports, (input) => {
        const kept = world();
        const first = kept.take(input);
        const refused = new Set(first.refused.map(({ n }) => n));
        const taken = input.filter((_, n) => !refused.has(n));
        const before = kept.all();
        const again = kept.take(taken);
        expect(again.known.length).toBe(taken.length);
        expect(kept.all()).toEqual(before);
      }),
    );
  });
});

describe('A report that names an operation', () => {
  it.each([
    ['unknown', 'moves'],
    ['undecided', 'moves'],
    ['not_executed', 'moves'],
    ['executed', 'numberings'],
    ['settled', 'numberings'],
    ...(['queued', 'sending', 'accepted', 'rejected', 'failed', 'cancelled'] as const).map(
      (state) => [state, 'refused'] as const,
    ),
  ] as const)('A report that names an operation in state %s leads to %s', (state, where) => {
    const plan = memory([ours('op_1', state)]).take([report({ operationId: 'op_1' })]);
    const { moves, numberings, refused } = plan;
    const led = Object.entries({ moves, numberings, refused }).filter(
      ([, rows]) => rows.length > 0,
    );
    expect(led.map(([name]) => name)).toEqual([where]);
  });
});
