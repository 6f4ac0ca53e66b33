/** Plots of what the daemon did over the last hour, day or month. */
import { useData } from '../kit/api.ts';
import { Card, Failed, Tabs, Time } from '../kit/elements.ts';
import { html, useMemo } from '../kit/html.ts';
import { Plot } from '../kit/plot.ts';
import { setQuery, usePlace } from '../kit/router.ts';

interface Activity {
  since: string;
  step_s: number;
  steps: number;
  writes: {
    at: string;
    writes: number;
    not_executed: number;
    open: number;
    answer_p95_ms: number | null;
  }[];
  attempts: { at: string; delivered: number; failed: number; duration_p95_ms: number | null }[];
  service: { from: string; to: string; state: string }[];
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

export function ActivityCard() {
  const { query } = usePlace();
  const range = (query.get('range') ?? 'hour') as keyof typeof REFRESH_MS;
  const path = `/api/activity?range=${range}`;
  const { data, problem, reload } = useData<Activity>(path, REFRESH_MS[range]);
  const plots = useMemo(() => data && plotsOf(data), [data]);
  const choice = html`<${Tabs}
    tabs=${RANGES}
    chosen=${range}
    onChange=${(value: string) => setQuery({ range: value })}
  />`;
  return html`<${Card} title="Activity" aside=${choice}>
    <${Failed} problem=${problem} retry=${reload} />
    ${data && html`<${ServiceLine} ...${data} />`}
    <div class="columns">
      ${plots?.map((plot) => html`<${Plot} key=${plot.label} ...${plot} />`)}
    </div>
  <//>`;
}

const MARKS: Record<string, string> = {
  active: 'good',
  announced: 'info',
  maintenance: 'warn',
  unreachable: 'bad',
};

/** When the service was there, as one line as wide as the plots, and the interruptions in words. */
function ServiceLine({ since, step_s: stepS, steps, service }: Activity) {
  const from = Date.parse(since);
  const lengthMs = stepS * steps * 1_000;
  const share = (text: string) => (100 * (Date.parse(text) - from)) / lengthMs;
  const interruptions = service.filter(({ state }) => ['warn', 'bad'].includes(MARKS[state] ?? ''));
  return html`<p class="line-title muted">State of the service</p>
    <svg class="line" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      ${service.map(
        (one) => html`<rect
          class=${MARKS[one.state]}
          x=${share(one.from)}
          width=${Math.max(0.3, share(one.to) - share(one.from))}
          height="4"
        ></rect>`,
      )}
    </svg>
    ${
      interruptions.length === 0
        ? html`<p class="muted">Without interruption, as far as it was observed.</p>`
        : html`<ul class="muted">
            ${interruptions.slice(-INTERRUPTIONS_MAX).map(
              (one) => html`<li>
                  ${one.state} from <${Time} at=${one.from} /> to <${Time} at=${one.to} />
                </li>`,
            )}
          </ul>`
    }`;
}

/** The newest ones are named. */
const INTERRUPTIONS_MAX = 5;

/** Steps without a row are zero, or without a latency. */
function plotsOf({ since, step_s: stepS, steps: length, writes, attempts }: Activity) {
  const first = Date.parse(since) / 1_000;
  const times = Array.from({ length }, (_, n) => first + n * stepS);
  const line = (label: string, colour: string, values: (number | null)[]) => ({
    label,
    colour,
    values,
  });
  const per = STEP_NAMES[stepS] ?? `${stepS} s`;
  return [
    {
      ...{ label: `Writes in ${per}`, times },
      series: [
        line(
          'all',
          'mark',
          spread(writes, times, (row) => row.writes, 0),
        ),
        line(
          'not executed',
          'bad',
          spread(writes, times, (row) => row.not_executed, 0),
        ),
      ],
    },
    {
      ...{ label: 'Answer of the service, 95 of 100 within', times, unit: ' ms' },
      series: [
        line(
          'service',
          'mark',
          spread(writes, times, (row) => row.answer_p95_ms, null),
        ),
      ],
    },
    {
      ...{ label: `Webhooks sent in ${per}`, times },
      series: [
        line(
          'delivered',
          'good',
          spread(attempts, times, (row) => row.delivered, 0),
        ),
        line(
          'failed',
          'bad',
          spread(attempts, times, (row) => row.failed, 0),
        ),
      ],
    },
    {
      ...{ label: 'Answer of receivers, 95 of 100 within', times, unit: ' ms' },
      series: [
        line(
          'receivers',
          'good',
          spread(attempts, times, (row) => row.duration_p95_ms, null),
        ),
      ],
    },
  ];
}

/** The value of each step; a step without a row has the missing one. */
function spread<T extends { at: string }>(
  rows: T[],
  times: readonly number[],
  pick: (row: T) => number | null,
  missing: number | null,
): (number | null)[] {
  const byTime = new Map(rows.map((row) => [Date.parse(row.at) / 1_000, row]));
  return times.map((time) => {
    const row = byTime.get(time);
    return row ? pick(row) : missing;
  });
}
