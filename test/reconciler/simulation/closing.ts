/**
 * Ends what a simulation leaves: every drift gets its prepared proposal, which another owner
 * approves, and a report of the whole time is made.
 */
import { listDrifts, makeDrifts } from '../../../src/reconciler/reconciler.ts';
import { DEFAULT_LIMITS, makeReports } from '../../../src/reports/reports.ts';
import { runDry, START } from '../../ledger/fixture.ts';
import { reportLate, stagesOf } from './late-reports.ts';
import { type Simulation, settleDown } from './run.ts';
import type { World } from './world.ts';

export interface Closing {
  /** Changes made elsewhere that were reported, each with the time at which it was made. */
  reported: number;
  /** Drifts that people ended. */
  ended: number;
  /** Drifts that are left, and why they could not be ended. */
  left: string[];
  /** Of the report. */
  breaks: string[];
}

const [PROPOSER, APPROVER] = ['ann', 'bob'].map((owner) => ({ owner, keyId: owner }));
const ROUNDS_MAX = 12;
const DRIFTS_MAX = 1_000;

export async function closeBooks(world: World, simulation: Simulation): Promise<Closing> {
  const { db, clock, daemons } = world;
  const closing: Closing = { reported: 0, ended: 0, left: [], breaks: [] };
  await reportLate(world, simulation.outside);
  closing.reported = simulation.outside.filter(({ reportedAt }) => reportedAt !== undefined).length;
  const drifts = makeDrifts(stagesOf(world));
  for (let round = 0; round < ROUNDS_MAX; round++) {
    await settleDown(world, simulation, 14, 20_000);
    for (const { ledger } of daemons) await runDry(ledger, clock);
    const open = await listDrifts(db, { state: 'unclosed' }, { limit: DRIFTS_MAX });
    if (open.length === 0) break;
    const ids = open.map(({ id }) => id);
    if (!PROPOSER || !APPROVER) break;
    const reason = 'what the daemon prepared';
    const proposed = await drifts.propose(ids, { reason }, PROPOSER);
    const approvable = proposed.flatMap((one) => ('drift' in one ? one.id : []));
    const approved = await drifts.approve(approvable, {}, APPROVER);
    closing.ended += approved.filter((one) => 'drift' in one).length;
    closing.left = [...proposed, ...approved].flatMap((one) =>
      'failure' in one ? `${one.id}: ${one.failure.message}` : [],
    );
  }
  closing.breaks = await breaksOf(world);
  return closing;
}

/** Of a report of the whole time, which has ended. */
async function breaksOf(world: World): Promise<string[]> {
  const { db, clock } = world;
  const period = { from: START, to: clock.now() };
  clock.advance(1_000);
  const reports = makeReports({ ...stagesOf(world), reads: db, settings: DEFAULT_LIMITS });
  const { content } = await reports.makeReconciliation({ ...period, requestedBy: 'ann' });
  const { total, listed } = content.breaks;
  if (total !== listed.length) throw new Error(`${total} breaks`);
  return listed.map(({ kind, subject, amount }) => `${kind} ${subject} ${amount}`);
}
