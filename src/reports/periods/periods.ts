/**
 * Periods closed with their report, signed by another owner, and reopened with a reason. A close is
 * a proposal and the signature its approval, by the rule of two owners that decisions follow; a
 * signed period is reopened by the same rule.
 */
import type { Queryable, Tx } from '../../db/connect.ts';
import { isoText } from '../../kernel/clock.ts';
import { Failure, must } from '../../kernel/errors.ts';
import { approve, type Person, propose } from '../../operations/operations.ts';
import type { EventDraft } from '../../outbox/events.ts';
import type { Moment } from '../../resources/moments.ts';
import type { Reconciliation } from '../../resources/reports/content.ts';
import { assertOwner, keepReport, type MakingDeps, readContent } from '../make.ts';
import type { Period } from '../schedule.ts';
import {
  assertClosable,
  assertReopenable,
  assertSignable,
  type Obstacle,
  obstaclesOf,
  periodToClose,
  type SignOff,
  signedOff,
} from './rule.ts';
import * as store from './store.ts';

interface CloseInput {
  /** Required for the first period; else it is where the last closed one ends. */
  from?: Moment | undefined;
  /** Exclusive. */
  to: Moment;
  signOffs: readonly SignOff[];
  reason?: string | undefined;
  /** Only says what prevents the close. */
  dryRun?: boolean | undefined;
}

interface CloseResult extends Period {
  /** Undefined after a dry run. */
  closed: store.ClosedPeriod | undefined;
  content: Reconciliation;
  obstacles: Obstacle[];
}

export interface Periods {
  /**
   * Makes the report of the next period and closes it with that.
   * @throws Failure `invalid_request`, or `conflict` with what prevents it
   */
  close(input: CloseInput, by: Person): Promise<CloseResult>;
  /** @throws Failure `not_found`, `same_owner`, or `conflict` when it is not closed or signed */
  sign(id: string, by: Person): Promise<store.ClosedPeriod>;
  /**
   * Reopens an unsigned period; of a signed one it only proposes that.
   * @throws Failure `not_found`, or `conflict` when it is not the newest one in force
   */
  reopen(id: string, reason: string, by: Person): Promise<store.ClosedPeriod>;
  /**
   * Reopens a signed period as the newest proposal says.
   * @param n the proposal that the approver read; a newer one is refused
   * @throws Failure `not_found`, `same_owner`, or `conflict` when this is not the newest proposal,
   * or the period is not the newest one in force
   */
  approveReopening(id: string, n: number, by: Person): Promise<store.ClosedPeriod>;
}

type Deps = MakingDeps & { settings: { timeZone?: string | undefined } };

export function makePeriods(deps: Deps): Periods {
  const { db, clock, settings } = deps;
  const { timeZone = 'UTC' } = settings;
  return {
    async close(input, by) {
      assertOwner(by.owner);
      const from = input.from && (await store.instantOf(db, input.from, timeZone));
      const to = await store.instantOf(db, input.to, timeZone);
      const newest = await store.findNewest(db);
      const period = periodToClose({ from, to }, newest?.periodTo ?? null);
      // The content has what the close before did not know, so it is of that close only.
      const follows = async (q: Queryable) => (await store.findNewest(q))?.id === newest?.id;
      const content = await readContent(deps, period, follows);
      if (!content) throw changedMeanwhile();
      const obstacles = obstaclesOf(content, input.signOffs);
      if (input.dryRun) return { ...period, closed: undefined, content, obstacles };
      assertClosable(obstacles);
      const closed = await db.begin(async (tx) => {
        await store.lockPeriods(tx);
        if (!(await follows(tx))) throw changedMeanwhile();
        return closePeriod(deps, tx, { period, content, input }, by);
      });
      return { ...period, closed, content, obstacles };
    },
    sign: (id, by) =>
      db.begin(async (tx) => {
        assertSignable(await lockPeriod(tx, id));
        const at = clock.now();
        await approve(tx, id, { decision: 'close' }, by, at);
        await store.insertPeriodAction(tx, id, { action: 'signed' }, by, at);
        return must(await store.findPeriod(tx, id), 'signed period');
      }),
    reopen: (id, reason, by) =>
      db.begin(async (tx) => {
        const period = await lockReopenable(tx, id);
        const at = clock.now();
        if (period.state !== 'signed') return reopenPeriod(deps, tx, { period, reason }, by);
        const proposal = { subject: id, decision: 'reopen', operationId: null, reason };
        await propose(tx, proposal, { amount: 0n }, by, at);
        await store.insertPeriodAction(tx, id, { action: 'reopen_proposed', reason }, by, at);
        return must(await store.findPeriod(tx, id), 'signed period');
      }),
    approveReopening: (id, n, by) =>
      db.begin(async (tx) => {
        const period = await lockReopenable(tx, id);
        const { reason } = await approve(tx, id, { n, decision: 'reopen' }, by, clock.now());
        return reopenPeriod(deps, tx, { period, reason }, by);
      }),
  };
}

function changedMeanwhile(): Failure {
  return new Failure('conflict', 'another period was closed or reopened meanwhile; close again');
}

async function lockPeriod(tx: Tx, id: string): Promise<store.ClosedPeriod> {
  await store.lockPeriods(tx);
  const period = await store.findPeriod(tx, id);
  if (!period) throw new Failure('not_found', `there is no ${id}`);
  return period;
}

async function lockReopenable(tx: Tx, id: string): Promise<store.ClosedPeriod> {
  const period = await lockPeriod(tx, id);
  assertReopenable(period, await store.findNewest(tx));
  return period;
}

async function reopenPeriod(
  { clock, outbox }: Deps,
  tx: Tx,
  { period, reason }: { period: store.ClosedPeriod; reason: string },
  by: Person,
): Promise<store.ClosedPeriod> {
  const at = clock.now();
  await store.insertPeriodAction(tx, period.id, { action: 'reopened', reason }, by, at);
  const reopened = must(await store.findPeriod(tx, period.id), 'reopened period');
  const { state: previous, reopenProposedBy } = period;
  const people = { reopened_by: by.owner, proposed_by: reopenProposedBy };
  const data = { previous, ...people, reason };
  await outbox.emit(tx, [periodEvent(reopened, { type: 'period.reopened', data }, at)]);
  return reopened;
}

/** Stores the report and the close, with what is signed off, and announces them. */
async function closePeriod(
  deps: Deps,
  tx: Tx,
  { period, content, input }: { period: Period; content: Reconciliation; input: CloseInput },
  by: Person,
): Promise<store.ClosedPeriod> {
  const { ids, clock, outbox } = deps;
  const report = await keepReport(deps, tx, content, period, by.owner);
  const id = ids.next('per');
  const at = clock.now();
  const accepted = signedOff(content, input.signOffs);
  const reason = input.reason ?? `${content.headline}, ${accepted.length} signed off`;
  const proposal = { subject: id, decision: 'close', operationId: null, reason };
  const { n: decision } = await propose(tx, proposal, { amount: 0n }, by, at);
  await store.insertPeriod(tx, {
    id,
    periodFrom: period.from,
    periodTo: period.to,
    reportId: report.id,
    reportHash: report.hash,
    knownAt: report.knownAt,
    lastBatch: BigInt(content.cut_off.batch),
    chainHead: content.cut_off.chain_head,
    decision,
    closedBy: by.owner,
    closedAt: at,
  });
  await store.insertPeriodAction(tx, id, { action: 'closed', reason }, by, at);
  for (const { finding, reason: why } of accepted) {
    const { kind, subject, amount, since } = finding;
    const detail = { kind, subject, amount, since };
    await store.insertPeriodAction(tx, id, { action: 'signed_off', reason: why, detail }, by, at);
  }
  const closed = must(await store.findPeriod(tx, id), 'closed period');
  const data = { closed_by: by.owner, signed_off: accepted.length };
  await outbox.emit(tx, [periodEvent(closed, { type: 'period.closed', data }, at)]);
  return closed;
}

type Changed =
  | { type: 'period.closed'; data: { closed_by: string; signed_off: number } }
  | {
      type: 'period.reopened';
      data: { previous: string; reopened_by: string; proposed_by: string | null; reason: string };
    };

/** All periods are one subject, so that their events are in one order. */
function periodEvent(
  period: store.ClosedPeriod,
  { type, data }: Changed,
  occurredAt: number,
): EventDraft {
  const fields = {
    period_id: period.id,
    period_from: isoText(period.periodFrom),
    period_to: isoText(period.periodTo),
    report_id: period.reportId,
    hash: period.reportHash,
    chain_head: period.chainHead,
    link: `/api/reports/${period.reportId}`,
  };
  return { type, subject: 'periods', occurredAt, data: { ...fields, ...data } } as EventDraft;
}
