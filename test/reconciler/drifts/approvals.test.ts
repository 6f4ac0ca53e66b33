import { expect, it } from 'vitest';
import { newestDecisions } from '../../../src/operations/operations.ts';
import { makeDrifts } from '../../../src/reconciler/reconciler.ts';
import { PLAIN } from '../../ledger/fixture.ts';
import { openRig } from '../rig.ts';

const rig = await openRig();
const { db } = rig.database;
const { clock, outbox, operations } = rig;

/** A drift beside an unknown write of 30: between -27 and 3. */
async function withBounds(): Promise<string> {
  const addr = await rig.opened(100n);
  await rig.lose(await rig.give(addr, 30n));
  await rig.observeSeries(addr, 103n, 103n);
  const [drift] = await rig.drifts(addr);
  expect(drift).toMatchObject({ amount: null, min: -27n, max: 3n });
  return drift?.id ?? '';
}

it.each([
  [26n, 2],
  [27n, 1],
])(
  'Above %s a drift between -27 and 3 is dismissed with %i approvals',
  async (above, approvals) => {
    const limits = { effectSettings: PLAIN, secondApproverAbove: above };
    const drifts = makeDrifts({ db, clock, outbox, operations, ...limits });
    const id = await withBounds();
    const input = { proposal: 'dismiss', reason: 'r' } as const;
    await drifts.propose([id], input, { owner: 'ann', keyId: 'ann' });
    expect((await newestDecisions(db, [id])).get(id)?.approvalsNeeded).toBe(approvals);
  },
);
