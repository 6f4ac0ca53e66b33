/** Collects the findings of a report: counts all of them, and lists a bounded number. */
import type { Instant } from '../kernel/clock.ts';
import type { RowOf } from '../resources/fields.ts';
import {
  BREAKS,
  type FindingKind,
  type finding,
  type findingList,
  NEXT,
  OPEN_ITEMS,
} from '../resources/reports/finding.ts';
import type { Row } from '../resources/resource.ts';
import type { ReportParams } from './params.ts';

/** A finding as a row of a query. */
export interface FindingRow extends Omit<Row<typeof finding>, 'ageS' | 'next'> {
  /** Number of all findings of this kind, listed or not. */
  total: number;
}

/**
 * Ends a query whose CTE `found` has the columns kind, subject, amount, since and evidence: lists
 * the oldest findings of each kind, at most `listMax`, with the count of the kind.
 */
export function firstOfEachKind({ tx, limits }: ReportParams) {
  return tx.sql`
    select kind, subject, amount, since, null as assignee, evidence, total from (
      select kind, subject, amount, since, evidence,
        (count(*) over (partition by kind))::int as total,
        row_number() over (partition by kind order by since, subject) as place
      from found) numbered
    where place <= ${limits.listMax} order by kind, place`;
}

export interface Findings {
  /** Adds the rows of a query; all rows of a kind must come from one query. */
  addRows(rows: readonly FindingRow[]): void;
  add(row: Omit<FindingRow, 'total'>): void;
  lists(): Record<'breaks' | 'openItems', RowOf<typeof findingList>>;
}

/** Lists at most `max` findings and counts all of them; ages are counted up to `asOf`. */
export function makeFindings(asOf: Instant, max: number): Findings {
  const found = new Map<FindingKind, { count: number; listed: Row<typeof finding>[] }>();
  const put = (row: Omit<FindingRow, 'total'>, count: number) => {
    const kind = found.get(row.kind) ?? { count: 0, listed: [] };
    found.set(row.kind, kind);
    kind.count += count;
    if (kind.listed.length < max) kind.listed.push(toFinding(row, asOf));
  };
  return {
    addRows(rows) {
      const counted = new Set<FindingKind>();
      for (const { total, ...row } of rows) {
        put(row, counted.has(row.kind) ? 0 : total);
        counted.add(row.kind);
      }
    },
    add: (row) => put(row, 1),
    lists() {
      const listOf = (kinds: readonly FindingKind[]): RowOf<typeof findingList> => {
        const present = kinds.flatMap((kind) => {
          const of = found.get(kind);
          return of ? [{ kind, ...of }] : [];
        });
        return {
          total: present.reduce((sum, { count }) => sum + count, 0),
          byKind: present.map(({ kind, count }) => ({ kind, count })),
          listed: present.flatMap(({ listed }) => listed).slice(0, max),
        };
      };
      return {
        breaks: listOf(Object.keys(BREAKS) as FindingKind[]),
        openItems: listOf(Object.keys(OPEN_ITEMS) as FindingKind[]),
      };
    },
  };
}

function toFinding(row: Omit<FindingRow, 'total'>, asOf: Instant): Row<typeof finding> {
  const { kind, since } = row;
  const ageS = since === null ? null : Math.max(0, Math.floor((asOf - since) / 1000));
  return { ...row, ageS, next: NEXT[kind] };
}
