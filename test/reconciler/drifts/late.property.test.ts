/**
 * A wallet that others change, and reports of some of these changes, late and in any order: as of
 * every poll the ledger and the drifts that were open then hold what the world held.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Report } from '../../../src/operations/operations.ts';
import { asOf, giveOf, lateReports } from '../late.ts';
import { openRig } from '../rig.ts';

const rig = await openRig();
const report = lateReports(rig);

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      // Few amounts, so that drifts are equal, sum to others and cancel out.
      by: fc.constantFrom(-50n, -20n, 20n, 50n, 70n),
      reported: fc.boolean(),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('poll' as const), times: fc.nat(3) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('report' as const), which: fc.nat(9) }) },
);

/** What drifts add to the ledger as of a time: those that no entry of the ledger stands for. */
async function driftAsOf(addr: string, at: number): Promise<bigint> {
  const [row] = await rig.database.owner.sql<{ sum: bigint | null }[]>`
    select sum(amount) as sum from tallyhook.drifts
    where wallet_key = ${addr.toLowerCase()} and state in ('open', 'returned')
      and suspected_at < ${new Date(at).toISOString()}
      and coalesce((closed_by ->> 'since')::timestamptz, (closed_by ->> 'observed_at')::timestamptz,
        'infinity') >= ${new Date(at).toISOString()}`;
  return row?.sum ?? 0n;
}

it('After late reports in any order, ledger and drifts as of every poll hold what the world held', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 30 }), async (steps) => {
      const addr = await rig.opened(1_000n);
      let balance = 1_000n;
      const unreported: Report[] = [];
      const polled: { at: number; balance: bigint }[] = [];
      const poll = async () => {
        await rig.observe(addr, balance);
        const wallet = await rig.wallet(addr);
        // A difference that only one poll showed is no drift yet.
        if (wallet?.suspectedAt === null) polled.push({ at: rig.clock.now() + 1, balance });
      };
      for (const one of steps) {
        rig.clock.advance(1_500);
        if (one.do === 'change') {
          balance += one.by;
          if (one.reported) unreported.push(giveOf(addr, one.by, rig.clock.now()));
        } else if (one.do === 'report') {
          const [next] = unreported.splice(one.which % Math.max(unreported.length, 1), 1);
          if (next) await report(next);
        } else for (let i = 0; i <= one.times; i++) await poll();
      }
      await report(...unreported);
      for (let i = 0; i < 4; i++) await poll();
      await rig.post();
      for (const { at, balance: held } of polled) {
        const sum = ((await asOf(rig, addr, at)) ?? 0n) + (await driftAsOf(addr, at));
        expect([at, sum]).toEqual([at, held]);
      }
      const changes = (await rig.eventsOf(addr)).filter(({ type }) => type.includes('drift'));
      const named = changes.map(({ type, data }) => `${type} ${data.drift_id}`);
      expect(new Set(named).size).toBe(named.length);
    }),
    { numRuns: 40, interruptAfterTimeLimit: 60_000 },
  );
});
