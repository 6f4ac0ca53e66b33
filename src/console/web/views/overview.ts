/** What needs a person now, then how the installation does. */
import type { status } from '../../../resources/admin/status.ts';
import { DAY_MS } from '../../../resources/local-time.ts';
import type { Shown } from '../../../resources/resource.ts';
import { call, useData } from '../kit/api.ts';
import { Order, REASON } from '../kit/dialog.ts';
import { Card, Facts, Failed, Pending, State, Table, Time, type Tone } from '../kit/elements.ts';
import { countText, durationText, wordsOf } from '../kit/format.ts';
import { html } from '../kit/html.ts';
import type { ViewProps } from '../pages.ts';
import { ActivityCard } from './activity.ts';
import { AlertsCard } from './alerts.ts';
import { REPORT_COLUMNS, type Report } from './ledger/reports.ts';

type Status = Shown<typeof status>;

/** One line of what a person has to do. */
interface Task {
  tone: Tone;
  what: string;
  /** The list of what is counted. */
  href: string;
  count: (status: Status) => number;
  since?: (status: Status) => string | null;
  /** Who proposed it. */
  by?: (status: Status) => string | null;
}

const TASKS: readonly Task[] = [
  {
    tone: 'bad',
    what: 'operations to be decided by people',
    href: '/operations?state=undecided',
    count: ({ open }) => open.operations.undecided ?? 0,
    since: ({ open }) => open.oldest_undecided_at,
  },
  {
    tone: 'bad',
    what: 'open drifts',
    href: '/drifts',
    count: ({ open }) => open.drifts,
    since: ({ open }) => open.oldest_drift_at,
  },
  {
    tone: 'bad',
    what: 'vanished wallets',
    href: '/wallets?vanished=true',
    count: ({ open }) => open.wallets_vanished,
    since: ({ open }) => open.oldest_vanished_at,
  },
  {
    tone: 'warn',
    what: 'drift proposals to be approved',
    href: '/drifts?state=proposed',
    count: ({ open }) => open.drifts_proposed,
  },
  {
    tone: 'warn',
    what: 'operations of unknown outcome',
    href: '/operations?state=unknown',
    count: ({ open }) => open.operations.unknown ?? 0,
    since: ({ open }) => open.oldest_unknown_at,
  },
  {
    tone: 'warn',
    what: 'outcome proposals to be approved',
    href: '/operations?proposed=true',
    count: ({ open }) => open.outcomes_proposed,
  },
  {
    tone: 'warn',
    what: 'wallets of operators to be approved',
    href: '/operators?proposed=true',
    count: ({ open }) => open.operators_proposed,
  },
  {
    tone: 'bad',
    what: 'failing endpoints',
    href: '/endpoints?failing=true',
    count: ({ webhooks }) => webhooks.endpoints_failing,
  },
  {
    tone: 'warn',
    what: 'deliveries failed for good',
    href: '/deliveries?state=exhausted',
    count: ({ webhooks }) => webhooks.deliveries_exhausted,
  },
  {
    tone: 'bad',
    what: 'quarantined rows',
    href: '/quarantine',
    count: ({ quarantined }) => sumOf(Object.values(quarantined)),
  },
  {
    tone: 'warn',
    what: 'wallets without a recent observation',
    href: '/wallets?stale=true',
    count: (status) => status.stale_wallets,
  },
  {
    tone: 'warn',
    what: 'closed periods to be signed',
    href: '/periods?state=closed',
    count: ({ periods }) => periods.to_sign,
  },
  {
    tone: 'warn',
    what: 'ended period to be closed',
    href: '/periods',
    count: ({ periods }) => (periods.to_close_since ? 1 : 0),
    since: ({ periods }) => periods.to_close_since,
  },
  {
    tone: 'warn',
    what: 'reopening of a signed period to be approved',
    href: '/periods?state=signed',
    count: ({ periods }) => (periods.to_reopen_since ? 1 : 0),
    since: ({ periods }) => periods.to_reopen_since,
    by: ({ periods }) => periods.to_reopen_proposed_by,
  },
];

const sumOf = (counts: readonly number[]) => counts.reduce((total, n) => total + n, 0);

export default function Overview(_: ViewProps) {
  const { data: status, problem, reload } = useData<Status>('/api/status', 5_000);
  const reports = useData<{ data: Report[] }>('/api/reports?limit=5');
  return html`<div class="view">
    <div class="view-head">
      <h1>Overview</h1>
      <div class="actions">
        ${status && html`<${Freeze} freeze=${status.freeze} done=${reload} />`}
      </div>
    </div>
    <${status ? Failed : Pending} problem=${problem} retry=${reload} />
    ${
      status?.freeze &&
      html`<p class="notice bad" role="alert">
        Writes are frozen by ${status.freeze.frozen_by}: ${status.freeze.reason}
      </p>`
    }
    ${status && html`<${ForPeople} status=${status} />`}
    <${AlertsCard} />
    ${status && html`<${Counts} status=${status} />`}
    <${ActivityCard} />
    <div class="columns">
      ${
        status &&
        html`<${ServiceCard} status=${status} />
          <${StagesCard} stages=${status.stages} />
          <${OperationsCard} operations=${status.open.operations} />`
      }
      <${Card} title="Latest reports" aside=${html`<a href="/reports">all</a>`}>
        <${Table}
          rows=${reports.data?.data}
          empty="None yet: a report is made at the end of each day, or by the button of its page."
          columns=${REPORT_COLUMNS}
        />
      <//>
    </div>
  </div>`;
}

/** Stops all writes, and allows them again. */
function Freeze({ freeze, done }: { freeze: object | null; done: () => void }) {
  if (freeze)
    return html`<${Order}
    needs=${[]}
      label="Allow writes again"
      text="Writes of apps are accepted again, and queued ones are sent."
      fields=${[REASON]}
      order=${(values: object) => call('POST', '/api/unfreeze', values)}
      done=${done}
    />`;
  return html`<${Order}
    needs=${[]}
    label="Freeze writes"
    kind="danger"
    text="No write of any app is accepted or sent until it is released. Reads, polls, webhooks and
      reports go on."
    fields=${[REASON]}
    order=${(values: object) => call('POST', '/api/freeze', values)}
    done=${done}
  />`;
}

function ForPeople({ status }: { status: Status }) {
  const tasks = TASKS.filter(({ count }) => count(status) > 0);
  if (tasks.length === 0) return html`<${Card} tone="good" title="Nothing waits for a person" />`;
  const tone = tasks.some((task) => task.tone === 'bad') ? 'bad' : 'warn';
  return html`<${Card} tone=${tone} title="Waits for a person">
    <ul class="timeline tasks">
      ${tasks.map(({ tone: its, count, what, since, by, href }) => {
        const at = since?.(status);
        const proposer = by?.(status);
        return html`<li>
          <span class=${`pill ${its}`}>${countText(count(status))}</span>
          <span>
            <a href=${href}>${what}</a>
            ${proposer && html` <span class="muted">proposed by ${proposer},</span>`}
            ${at && html` <span class="muted">the oldest since <${Time} at=${at} /></span>`}
          </span>
        </li>`;
      })}
    </ul>
  <//>`;
}

function Counts({ status }: { status: Status }) {
  const { now, open, stages, drift_resolution_median_s: median } = status;
  const tile = (count: unknown, text: string, href: string) =>
    html`<a class="tile" href=${href}><b>${count}</b><span>${text}</span></a>`;
  const operations = sumOf(Object.values(open.operations));
  const waiting = sumOf(stages.map((stage) => stage.waiting));
  const ended = median === null ? '–' : durationText(median * 1_000);
  const monthAgo = new Date(Date.parse(now) - 30 * DAY_MS).toISOString();
  return html`<div class="tiles">
    ${tile(countText(operations), 'open operations', '/operations?state=open')}
    ${tile(countText(open.drifts), 'open drifts', '/drifts')}
    ${tile(countText(waiting), 'waiting in the backlog', '#stages')}
    ${tile(ended, 'until a drift ends (median)', `/drifts?state=all&ended_since=${monthAgo}`)}
  </div>`;
}

function ServiceCard({ status }: { status: Status }) {
  const { service, budget, polling, daemons } = status;
  const { start, end, message } = service.announced ?? {};
  const blocked = Object.entries(budget.blocked_until).filter(([, until]) => until !== null);
  const living = Object.entries(daemons).map(([role, count]) => `${role} ${count}`);
  return html`<${Card} title="Service and polls">
    <${Facts}
      pairs=${[
        ['Service', html`<${State} of=${service.state} /> since <${Time} at=${service.since} />`],
        ['Announced', [start, end, message].filter(Boolean).join(' – ')],
        [
          'Throttled',
          blocked.length > 0 &&
            blocked.map(
              ([traffic, until]) =>
                html`<div>${wordsOf(traffic)} until <${Time} at=${until} exact /></div>`,
            ),
        ],
        ['Polls allowed', allowedText(budget)],
        ['Polled', `${countText(status.targets)} wallets and tokens`],
        ['Polls per target', polling.interval_ms && `every ${durationText(polling.interval_ms)}`],
        ['At the latest', `every ${durationText(status.observation_age_max_ms)}`],
        ['Oldest poll', html`<${Time} at=${polling.oldest_poll_at} />`],
        ['Daemons', living.join(', ')],
        [
          'Clock',
          status.clock_correction_ms !== 0 && `corrected by ${status.clock_correction_ms} ms`,
        ],
      ].filter(([, value]) => value !== false)}
    />
  <//>`;
}

function allowedText(budget: Status['budget']): string {
  const { setting_per_s: setting, learned_per_s: learned } = budget;
  const by = learned !== null ? 'rising' : setting === null ? 'by the traffic of apps' : 'as set';
  return `${budget.effective_per_s.toFixed(2)} per second (${by}), ${budget.waiting} wait`;
}

function StagesCard({ stages }: { stages: Status['stages'] }) {
  type Stage = Status['stages'][number];
  const columns = [
    { head: 'Stage', of: ({ stage }: Stage) => wordsOf(stage) },
    {
      head: 'Waiting',
      number: true,
      of: ({ stage, waiting }: Stage) =>
        stage === 'webhooks'
          ? html`<a href="/deliveries?state=pending">${countText(waiting)}</a>`
          : countText(waiting),
    },
    {
      head: 'Oldest',
      number: true,
      of: ({ waiting, lag_ms: ms }: Stage) => waiting > 0 && durationText(ms),
    },
  ];
  return html`<div id="stages"><${Card} title="Backlog">
    <${Table} rows=${stages} columns=${columns} empty="No stage runs." />
  <//></div>`;
}

function OperationsCard({ operations }: { operations: Record<string, number> }) {
  type Row = [string, number];
  const columns = [
    {
      head: 'State',
      of: ([state]: Row) => html`<${State} of=${state} />`,
    },
    {
      head: 'Operations',
      number: true,
      of: ([state, count]: Row) =>
        html`<a href=${`/operations?state=${state}`}>${countText(count)}</a>`,
    },
  ];
  const rows = Object.entries(operations).filter(([, count]) => count > 0);
  const all = html`<a href="/operations?state=open">all</a>`;
  return html`<${Card} title="Open operations" aside=${all}>
    <${Table} rows=${rows} columns=${columns} empty="No operation is open." />
  <//>`;
}
