/** Plots of what the daemon did over the last hour, day or month. */
import type { activity } from '../../../resources/admin/activity.ts';
import type { Shown } from '../../../resources/resource.ts';
import { useData } from '../kit/api.ts';
import { Card, Failed, Loading, Time } from '../kit/elements.ts';
import { html, useMemo } from '../kit/html.ts';
import { Plot } from '../kit/plot.ts';
import { attemptPlots, lineOf, type Plotted, RangeTabs, timesOf, useRange } from './steps.ts';

type Activity = Shown<typeof activity>;

export function ActivityCard() {
  const { range, everyMs } = useRange();
  const { data, problem, reload } = useData<Activity>(`/api/activity?range=${range}`, everyMs);
  const plots = useMemo(() => data && plotsOf(data), [data]);
  return html`<${Card} title="Activity" aside=${html`<${RangeTabs} range=${range} />`}>
    <${Failed} problem=${problem} retry=${reload} />
    ${data && html`<${ServiceLine} ...${data} />`}
    ${!data && !problem && html`<${Loading} />`}
    <div class="columns plots">
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
function plotsOf(shown: Activity): Plotted[] {
  const { times, per } = timesOf(shown);
  const writes = { rows: shown.writes, times };
  const polling = { rows: shown.polling, times };
  const seconds = (ms: number | null) => (ms === null ? null : Math.round(ms / 100) / 10);
  return [
    {
      label: `Writes in ${per}`,
      times,
      series: [
        lineOf(['all', 'mark'], writes, (row) => row.writes, 0),
        lineOf(['not executed', 'bad'], writes, (row) => row.not_executed, 0),
      ],
    },
    {
      label: 'The service answers 95 of 100 writes within',
      times,
      unit: ' ms',
      series: [lineOf(['service', 'mark'], writes, (row) => row.answer_p95_ms)],
    },
    ...attemptPlots(shown, shown.attempts),
    {
      label: 'A change is detected within',
      times,
      unit: ' s',
      series: [
        lineOf(['expected mean', 'mark'], polling, (row) => seconds(row.expected_delay_ms)),
        lineOf(['at most', 'warn'], polling, (row) => seconds(row.oldest_poll_ms)),
      ],
    },
    {
      label: 'Requests to the service per second',
      times,
      series: [
        lineOf(['made', 'good'], polling, (row) => rounded(row.requests_per_s)),
        lineOf(['allowed', 'soft'], polling, (row) => rounded(row.allowed_per_s)),
      ],
    },
  ];
}

const rounded = (perS: number) => Math.round(perS * 100) / 100;
