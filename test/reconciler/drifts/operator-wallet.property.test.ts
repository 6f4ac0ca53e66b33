/**
 * What an operator paid from a watched wallet, seen by any polls and among any changes
 * elsewhere: once the setting names the wallet, its ledger and its drifts are what the service
 * shows, and the drifts that are left sum to the changes elsewhere.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sumOf } from '../../../src/kernel/amounts.ts';
import { verifyLedger } from '../../../src/ledger/ledger.ts';
import { faultsOf, NO_FAULTS, openLedger, PLAIN, runDry } from '../../ledger/fixture.ts';
import { freshAddr, openRig } from '../rig.ts';

const operators = new Map<string, string>();
const books = { ...PLAIN, operators };
const rig = await openRig({ books });
const { database, clock } = rig;
let daemons = 0;
let operatorNo = 0n;

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('give' as const), amount: fc.bigInt(1n, 5n) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('change' as const), amount: fc.bigInt(-9n, 9n) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('poll' as const) }) },
);

it('With the setting, the drifts that are left sum to what was changed elsewhere', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const [wallet, user] = [await rig.opened(1_000n), freshAddr()];
      let [balance, elsewhere] = [1_000n, 0n];
      operatorNo += 1n;
      await rig.observe(wallet, balance);
      for (const one of steps) {
        if (one.do === 'poll') {
          await rig.observe(wallet, balance);
        } else if (one.do === 'change') {
          balance += one.amount;
          elsewhere += one.amount;
        } else {
          balance -= one.amount;
          const id = await rig.give(user, one.amount, operatorNo);
          clock.advance(700);
          await rig.accept(id);
        }
      }
      await rig.observeSeries(wallet, balance, balance);

      operators.set(String(operatorNo), wallet);
      clock.advance(60_000);
      const daemonId = `dmn_x${++daemons}`;
      const input = { db: database.db, clock, books, daemonId };
      await runDry(await openLedger(input), clock);
      clock.advance(20_000);
      await rig.observeSeries(wallet, balance, balance, balance);
      const open = await rig.drifts(wallet);
      expect(sumOf(open.map(({ amount }) => amount ?? 0n))).toBe(elsewhere);
      expect(await rig.balance(wallet)).toBe(balance - elsewhere);
      expect(open.filter(({ cause }) => cause === 'operator_wallet')).toEqual([]);
    }),
    { numRuns: 40 },
  );
  expect(await faultsOf(database.owner)).toEqual(NO_FAULTS);
  expect((await verifyLedger(database.db, [])).ok).toBe(true);
});
