/**
 * Which period may be closed, and what prevents it. Pure. A period closes when its report is final
 * and balanced, or each of its breaks is signed off with a reason; a damaged ledger never is.
 */
import { type Instant, isoText } from '../../kernel/clock.ts';
import { Failure } from '../../kernel/errors.ts';
import type { PeriodState, periodClose } from '../../resources/ledger/period.ts';
import type { Reconciliation } from '../../resources/reports/content.ts';
import { type Finding, isDamage } from '../../resources/reports/finding.ts';
import type { Shown } from '../../resources/resource.ts';
import type { Period } from '../schedule.ts';

/** An open item, by its subject in the report, that the closing owner accepts. */
export interface SignOff {
  subject: string;
  reason: string;
}

/** What of a report decides on the close of its period. */
export type PeriodReport = Pick<Reconciliation, 'provisional' | 'period' | 'breaks' | 'open_items'>;

/** Why a period does not close. */
export type Obstacle = Shown<typeof periodClose>['obstacles'][number] & {
  kind: Finding['kind'] | 'period_runs' | 'breaks_not_listed' | 'no_such_item';
};

/**
 * The period that begins where the newest one in force ends.
 * @param lastEnd null while no period is in force
 * @throws Failure `invalid_request`, or `conflict` when it would overlap or leave a gap
 */
export function periodToClose(
  { from, to }: { from?: Instant | undefined; to: Instant },
  lastEnd: Instant | null,
): Period {
  const start = lastEnd ?? from;
  if (start === undefined)
    throw new Failure('invalid_request', 'no period is closed yet: name where the first begins');
  if (from !== undefined && from !== start) {
    const begins = `the next period begins at ${isoText(start)}, where the last closed one ends`;
    throw new Failure('conflict', begins, { period_from: isoText(start) });
  }
  if (to <= start) {
    const why = `the period begins at ${isoText(start)} and must end later`;
    throw new Failure('invalid_request', why);
  }
  return { from: start, to };
}

/** What prevents the close; empty when nothing does. */
export function obstaclesOf(
  { provisional, period, breaks, open_items }: PeriodReport,
  signOffs: readonly SignOff[],
): Obstacle[] {
  const named = new Set(signOffs.map(({ subject }) => subject));
  const general = (kind: Obstacle['kind'], subject: string | null, next: string): Obstacle => ({
    kind,
    subject,
    amount: null,
    since: null,
    next,
    can_sign_off: false,
  });
  const found = new Set([...breaks.listed, ...open_items.listed].map(({ subject }) => subject));
  const hidden = breaks.total - breaks.listed.length;
  return [
    ...(provisional
      ? [general('period_runs', null, `The period runs until ${period.to}: close it then`)]
      : []),
    ...breaks.listed
      .filter(({ kind, subject }) => isDamage(kind) || !named.has(subject))
      .map(({ kind, subject, amount, since, next }) => ({
        kind,
        subject,
        amount,
        since,
        next,
        can_sign_off: !isDamage(kind),
      })),
    ...(hidden > 0
      ? [general('breaks_not_listed', null, `End some breaks: ${hidden} more are not listed`)]
      : []),
    ...[...named]
      .filter((subject) => !found.has(subject))
      .map((subject) => general('no_such_item', subject, 'The report has no such item: leave it')),
  ];
}

/** The findings that are signed off, each with its reason. */
export function signedOff(
  { breaks, open_items }: Pick<PeriodReport, 'breaks' | 'open_items'>,
  signOffs: readonly SignOff[],
): { finding: Finding; reason: string }[] {
  const reasons = new Map(signOffs.map(({ subject, reason }) => [subject, reason]));
  return [...breaks.listed, ...open_items.listed].flatMap((finding) => {
    const reason = reasons.get(finding.subject);
    return reason === undefined ? [] : [{ finding, reason }];
  });
}

/** @throws Failure `conflict` that names the first obstacles, and has all as a member */
export function assertClosable(obstacles: readonly Obstacle[]): void {
  if (obstacles.length === 0) return;
  const named = obstacles.slice(0, 3).map(({ kind, subject }) => `${kind} ${subject ?? ''}`.trim());
  const more =
    obstacles.length > named.length ? `, and ${obstacles.length - named.length} more` : '';
  const why = `the period does not close: ${named.join(', ')}${more}; end or sign off each`;
  throw new Failure('conflict', why, { obstacles });
}

/** @throws Failure `conflict` unless another owner may sign it now */
export function assertSignable({ id, state }: { id: string; state: PeriodState }): void {
  if (state !== 'closed') throw new Failure('conflict', `${id} is ${state}`, { period_id: id });
}

/** @throws Failure `conflict` unless it is in force and the newest one */
export function assertReopenable(
  { id, state }: { id: string; state: PeriodState },
  newest: { id: string } | undefined,
): void {
  if (state === 'reopened') throw new Failure('conflict', `${id} is reopened`, { period_id: id });
  if (id === newest?.id) return;
  const why = `${id} is followed by closed periods: reopen them first, the newest one before all`;
  throw new Failure('conflict', why, { period_id: id });
}
