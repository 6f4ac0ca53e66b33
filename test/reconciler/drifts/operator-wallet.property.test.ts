/**
 * What an operator paid from a watched wallet, seen by any polls and among any changes
 * elsewhere: once the setting names the wallet, or two owners mapped it, its ledger and its drifts
 * are what the service shows, and the drifts that are left sum to the changes elsewhere.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sumOf } from '../../../src/kernel/amounts.ts';
import { verifyLedger } from '../../../src/ledger/ledger.ts';
import { reportOf } from '../../ledger/builders.ts';
import { faultsOf, NO_FAULTS, openLedger, PLAIN, runDry } from '../../ledger/fixture.ts';
import { lateReports } from '../late.ts';
import { freshAddr, openRig } from '../rig.ts';

const operators = new Map<string, string>();
const books = { ...PLAIN, operators };
const rig = await openRig({ books });
const report = lateReports(rig);
const { database, clock } = rig;
let daemons = 0;
let operatorNo = 0n;
let reports = 7_000_000n;

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('give' as const, 'give' as const, 'report' as const),
      amount: fc.bigInt(1n, 5n),
      /** Else the service shows that the wallet did not pay it. */
      isPaid: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('change' as const), amount: fc.bigInt(-9n, 9n) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('poll' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A wallet of the service, what others changed of it, and what an operator pays from it. */
async function makeWorld() {
  const [wallet, user] = [await rig.opened(1_000n), freshAddr()];
  const no = ++operatorNo;
  const world = { wallet, no, balance: 1_000n, elsewhere: 0n, poll, run };

  async function poll(times = 1) {
    for (let i = 0; i < times; i++) await rig.observe(wallet, world.balance);
  }

  async function run(one: Step) {
    if (one.do === 'poll') return poll();
    if (one.do === 'change') {
      world.balance += one.amount;
      world.elsewhere += one.amount;
      return;
    }
    if (one.isPaid) world.balance -= one.amount;
    else world.elsewhere += one.amount;
    if (one.do === 'give') {
      const id = await rig.give(user, one.amount, no);
      clock.advance(700);
      await rig.accept(id);
      return;
    }
    clock.advance(700);
    const fields = { operationNo: no, toAddr: user, amount: one.amount };
    const ids = { txAppNo: 1n, txLogNo: ++reports, occurredAt: clock.now() };
    await report(reportOf({ ...ids, fields }));
  }

  await poll();
  return world;
}

/** All drifts of a wallet. */
async function driftsOf(addr: string) {
  const rows = await database.owner.sql<{ id: string; amount: bigint; state: string }[]>`
    select id, amount, state from tallyhook.drifts where wallet_key = ${addr.toLowerCase()}
    order by id`;
  return rows.map(({ id, amount, state }) => `${id} ${amount} ${state}`);
}

it('With the setting or a mapping, the drifts that are left sum to what was changed elsewhere', async () => {
  const given = {
    before: fc.array(step, { maxLength: 25 }),
    /** Whether polls confirm the last change before the setting names the wallet. */
    isConfirmed: fc.boolean(),
    /** By a setting; else it is mapped while the daemon runs. */
    isStarted: fc.boolean(),
    after: fc.array(step, { maxLength: 8 }),
  };
  await fc.assert(
    fc.asyncProperty(fc.record(given), async ({ before, isConfirmed, isStarted, after }) => {
      const world = await makeWorld();
      const { wallet } = world;
      for (const one of before) await world.run(one);
      if (isConfirmed) await world.poll(2);
      await rig.post();

      operators.set(String(world.no), wallet);
      if (isStarted) {
        clock.advance(60_000);
        const daemonId = `dmn_x${++daemons}`;
        const input = { db: database.db, clock, books, daemonId };
        await runDry(await openLedger(input), clock);
        clock.advance(20_000);
      } else await rig.post();
      const check = async () => {
        await world.poll(2);
        const found = await driftsOf(wallet);
        // Polls that show the same change nothing.
        await world.poll(2);
        expect(await driftsOf(wallet)).toEqual(found);
        const open = await rig.drifts(wallet);
        expect(sumOf(open.map(({ amount }) => amount ?? 0n))).toBe(world.elsewhere);
        expect(await rig.balance(wallet)).toBe(world.balance - world.elsewhere);
        expect(open.filter(({ cause }) => cause === 'operator_wallet')).toEqual([]);
      };
      await check();
      for (const one of after) await world.run(one);
      await check();
    }),
    { numRuns: Number(process.env.RUNS ?? 40) },
  );
  expect(await faultsOf(database.owner)).toEqual(NO_FAULTS);
  expect((await verifyLedger(database.db, [])).ok).toBe(true);
});
