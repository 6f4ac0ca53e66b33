/** Drifts: open ones as findings, their sums and ages, and how the ended ones ended. */
import type { driftAge } from '../../resources/reports/content.ts';
import type { Row } from '../../resources/resource.ts';
import type { FindingRow } from '../findings.ts';
import type { ReportParams } from '../params.ts';

/** Whether a drift began in the period or before, as far as known. */
export function beganIn({ tx: { sql }, to }: ReportParams, drift = 'd') {
  const [from, until] = [sql(`${drift}.window_from`), sql(`${drift}.window_to`)];
  return sql`(coalesce(${from}, ${until}) < ${to})`;
}

/** Unclosed drifts `d` that began in the period or before. */
function openIn(params: ReportParams) {
  return params.tx.sql`d.closed_at is null and ${beganIn(params)}`;
}

/** One per drift; a drift and its counterpart are one finding, with the amount of the payer. */
export async function listDriftsOpen(params: ReportParams): Promise<FindingRow[]> {
  const { sql } = params.tx;
  const utcText = (column: string) =>
    sql`to_char(${sql(`d.${column}`)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  return sql<FindingRow[]>`
    select 'drift_open' as kind, d.id as subject, d.amount, d.suspected_at as since, d.assignee,
      jsonb_build_object('wallet', 'wallet:' || d.addr, 'window_from', ${utcText('window_from')},
        'window_to', ${utcText('window_to')}, 'state', d.state, 'cause', d.cause,
        'prepared', d.prepared, 'counterpart', case when c.id is not null then jsonb_build_object(
          'drift', c.id, 'wallet', 'wallet:' || c.addr, 'amount', c.amount::text) end,
        'proposal', p.proposal, 'evidence', d.evidence, 'amount_min', d.amount_min::text,
        'amount_max', d.amount_max::text) as evidence, (count(*) over ())::int as total
    from tallyhook.drifts d
    left join tallyhook.drifts c on c.id = d.counterpart and c.closed_at is null
      and ${beganIn(params, 'c')}
    left join lateral (
      select jsonb_build_object('kind', x.decision, 'operation', x.operation_id,
        'reason', x.reason, 'proposed_by', x.proposed_by) as proposal
      from tallyhook.decisions x where x.subject = d.id order by x.n desc limit 1) p on true
    where ${openIn(params)} and (c.id is null or d.amount < 0)
    order by d.suspected_at, d.id limit ${params.limits.listMax}`;
}

interface DriftSums {
  upCount: number;
  up: bigint;
  downCount: number;
  down: bigint;
}

/** Sums of open drifts, positive and negative ones apart. */
export async function sumDrifts(params: ReportParams): Promise<DriftSums> {
  const rows = await params.tx.sql<DriftSums[]>`
    select (count(*) filter (where amount > 0))::int as up_count,
      coalesce(sum(amount) filter (where amount > 0), 0) as up,
      (count(*) filter (where amount < 0))::int as down_count,
      coalesce(sum(amount) filter (where amount < 0), 0) as down
    from tallyhook.drifts d where ${openIn(params)}`;
  return rows[0] ?? { upCount: 0, up: 0n, downCount: 0, down: 0n };
}

/** Open drifts by age, youngest first, positive and negative amounts apart. */
export async function listDriftAges(params: ReportParams): Promise<Row<typeof driftAge>[]> {
  return params.tx.sql<Row<typeof driftAge>[]>`
    select b.bucket, count(*)::int as count,
      coalesce(sum(d.amount) filter (where d.amount > 0), 0) as up,
      coalesce(sum(d.amount) filter (where d.amount < 0), 0) as down
    from tallyhook.drifts d
    join tallyhook.age_buckets b on b.from_age <= ${params.asOf}::timestamptz - d.suspected_at
      and b.to_age > ${params.asOf}::timestamptz - d.suspected_at
    where ${openIn(params)} group by b.bucket_order, b.bucket order by b.bucket_order`;
}

/** Drifts closed in the period, by final state. */
export async function countDriftsClosed(
  params: ReportParams,
): Promise<{ state: string; count: number }[]> {
  return params.tx.sql<{ state: string; count: number }[]>`
    select state, count(*)::int as count from tallyhook.drifts
    where closed_at >= ${params.from} and closed_at < ${params.to} group by state order by state`;
}

/** Median time from the suspicion to the end of the drifts closed in the period, in seconds. */
export async function medianResolution(params: ReportParams): Promise<number | null> {
  const rows = await params.tx.sql<{ seconds: number | null }[]>`
    select round(percentile_cont(0.5) within group
      (order by extract(epoch from closed_at - suspected_at)))::int as seconds
    from tallyhook.drifts where closed_at >= ${params.from} and closed_at < ${params.to}`;
  return rows[0]?.seconds ?? null;
}
