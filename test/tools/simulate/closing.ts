/**
 * Ends what a simulation leaves open. One owner proposes the prepared end of every drift, and the
 * true outcome of every write on a token whose end a later write hid; another owner approves. Then
 * a report of the whole time is made.
 */
import { isoText } from '../../../src/kernel/clock.ts';
import { must } from '../../../src/kernel/errors.ts';
import { makeMetrics } from '../../../src/kernel/telemetry/metrics.ts';
import { expedite, targetName } from '../../../src/observer/observer.ts';
import { findOperation, makeDecisions, NFT_KINDS } from '../../../src/operations/operations.ts';
import { listDrifts, makeDrifts } from '../../../src/reconciler/reconciler.ts';
import { DEFAULT_LIMITS, makeReports } from '../../../src/reports/reports.ts';
import { runDry, START } from '../../ledger/fixture.ts';
import { reportLate, reportMint, stagesOf } from './late-reports.ts';
import { type Simulation, settleDown } from './run.ts';
import { tokenEffectsOf } from './truth.ts';
import type { World } from './world.ts';

export interface Closing {
  /** Changes made elsewhere that were reported, each with the time at which it was made. */
  reported: number;
  /** Drifts that people ended. */
  ended: number;
  /** Writes on tokens that people ended. */
  decided: number;
  /** Drifts that are left, and why they could not be ended. */
  left: string[];
  /** Of the report. */
  breaks: string[];
}

const PROPOSER = { owner: 'ann', keyId: 'ann' };
const APPROVER = { owner: 'bob', keyId: 'bob' };
/** After that long people may say how a write on a token ended. */
const CHAIN_MAX_MS = 3_600_000;
const ROUNDS_MAX = 12;
const DRIFTS_MAX = 1_000;

export async function closeBooks(world: World, simulation: Simulation): Promise<Closing> {
  const { db, clock, daemons } = world;
  const closing: Closing = { reported: 0, ended: 0, decided: 0, left: [], breaks: [] };
  await reportLate(world, simulation.outside);
  closing.reported = simulation.outside.filter(({ reportedAt }) => reportedAt !== undefined).length;
  clock.advance(CHAIN_MAX_MS);
  const drifts = makeDrifts(stagesOf(world));
  for (let round = 0; round < ROUNDS_MAX; round++) {
    await settleDown(world, simulation, 14, 20_000);
    for (const { ledger } of daemons) await runDry(ledger, clock);
    const decided = await decideTokenWrites(world, simulation);
    closing.decided += decided;
    const open = await listDrifts(db, { state: 'unclosed' }, { limit: DRIFTS_MAX });
    if (open.length + decided === 0) break;
    const ids = open.map(({ id }) => id);
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

/**
 * Reports which tokens lost sequential mints made, and decides the writes whose hash a later one
 * replaced before a poll showed how the chain ended them. Returns how many.
 */
async function decideTokenWrites(world: World, simulation: Simulation): Promise<number> {
  const { db, clock } = world;
  const effects = await tokenEffectsOf(world, simulation);
  const metrics = makeMetrics();
  const stages = stagesOf(world);
  const decisions = makeDecisions({
    ...stages,
    metrics,
    pollToken: (token) =>
      expedite(db, new Map([[targetName({ kind: 'token', ...token }), clock.now()]])),
  });
  const ids = await db.sql<{ id: string }[]>`
    select id from tallyhook.operations
    where state in ('accepted', 'executed') and kind = any(${[...NFT_KINDS]}::text[])
      and coalesce(answered_at, sent_at) <= ${isoText(clock.now() - CHAIN_MAX_MS)}`;
  for (const { id } of ids) {
    const hidden = must(await findOperation(db, id), id);
    const { tokenId, reference } = hidden;
    const effect = effects.get(reference ?? '');
    if (tokenId === null) {
      await reportMint(world, stages, hidden, must(effect, reference ?? id));
      continue;
    }
    const outcome = effect?.end === 'failed' ? 'not_executed' : 'executed';
    await decisions.propose(id, { outcome, reason: 'what the chain says' }, PROPOSER);
    await decisions.approve(id, {}, APPROVER);
  }
  return ids.length;
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
