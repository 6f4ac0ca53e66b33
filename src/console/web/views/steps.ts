/** Plots over the last hour, day or month: the range, its steps, and the attempts in them. */
import type { activitySteps, attemptStep } from '../../../resources/admin/activity.ts';
import type { Shown } from '../../../resources/resource.ts';
import { Tabs } from '../kit/elements.ts';
import { html } from '../kit/html.ts';
import type { Series } from '../kit/plot.ts';
import { setQuery, usePlace } from '../kit/router.ts';

export type Steps = Shown<typeof activitySteps>;
type AttemptStep = Shown<typeof attemptStep>;

/** What a plot shows, but for its frame. */
export interface Plotted {
  label: string;
  times: readonly number[];
  series: readonly Series[];
  unit?: string;
}

const RANGES = [
  ['hour', '1 hour'],
  ['day', '24 hours'],
  ['month', '30 days'],
] as const;
const REFRESH_MS = { hour: 15_000, day: 60_000, month: 600_000 };
const STEP_NAMES: Record<number, string> = {
  60: 'a minute',
  900: 'a quarter of an hour',
  21600: 'six hours',
};

/** The range that the address names, and how often it is read again. */
export function useRange() {
  const range = (usePlace().query.get('range') ?? 'hour') as keyof typeof REFRESH_MS;
  return { range, everyMs: REFRESH_MS[range] };
}

export function RangeTabs({ range }: { range: string }) {
  return html`<${Tabs}
    tabs=${RANGES}
    chosen=${range}
    onChange=${(value: string) => setQuery({ range: value })}
  />`;
}

/** The beginnings of the steps in epoch seconds, and the name of their length. */
export function timesOf({ since, step_s: stepS, steps: length }: Steps) {
  const first = Date.parse(since) / 1_000;
  const times = Array.from({ length }, (_, n) => first + n * stepS);
  return { times, per: STEP_NAMES[stepS] ?? `${stepS} s` };
}

/** The value of each step; a step without a row has the missing one. */
export function lineOf<T extends { at: string }>(
  [label, colour]: readonly [string, string],
  { rows, times }: { rows: readonly T[]; times: readonly number[] },
  pick: (row: T) => number | null,
  missing: number | null = null,
): Series {
  const byTime = new Map(rows.map((row) => [Date.parse(row.at) / 1_000, row]));
  const values = times.map((time) => {
    const row = byTime.get(time);
    return row ? pick(row) : missing;
  });
  return { label, colour, values };
}

/** How many attempts succeeded and failed, and how long receivers took to answer. */
export function attemptPlots(steps: Steps, rows: readonly AttemptStep[]): Plotted[] {
  const { times, per } = timesOf(steps);
  const data = { rows, times };
  return [
    {
      label: `Webhooks sent in ${per}`,
      times,
      series: [
        lineOf(['delivered', 'good'], data, (row) => row.delivered, 0),
        lineOf(['failed', 'bad'], data, (row) => row.failed, 0),
      ],
    },
    {
      label: 'Receivers answer within',
      times,
      unit: ' ms',
      series: [
        lineOf(['mean', 'good'], data, (row) => Math.round(row.mean_ms)),
        lineOf(['slowest', 'warn'], data, (row) => row.slowest_ms),
      ],
    },
  ];
}
