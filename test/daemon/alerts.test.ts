/** config/alerts.yaml and config/grafana.json against the scrape of a running daemon. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { useRig } from '../harness/rig.ts';

const rig = useRig();

interface Rule {
  alert: string;
  expr: string;
  annotations: { summary: string; runbook: string };
}
interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}

const textOf = (name: string) =>
  readFileSync(join(import.meta.dirname, '../../config', name), 'utf8');
const RULES: Rule[] = parse(textOf('alerts.yaml')).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
);
const DASHBOARD: Dashboard = JSON.parse(textOf('grafana.json'));
const SHOWN = DASHBOARD.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

/** A metric with at most one label, such as `tallyhook_x{stage="ledger"}`. */
const SELECTOR = /\b((?:tallyhook|nodejs|process)_\w+)(?:\{(\w+)(!?=)"(\w+)"\})?/g;

it('The alerts and the dashboard name only metrics and labels of a scrape', async () => {
  const scrape = async () => (await rig.app.call('GET', '/metrics')).text;
  await expect.poll(scrape).toContain('service_state{state="active"} 1');
  const text = await scrape();
  const isServed = (selector: RegExpExecArray): boolean => {
    const [, name = '', label, comparison, value] = selector;
    const base = name.replace(/_(bucket|count|sum)$/, '');
    // The label `job` comes from Prometheus; a value of `!=` is left out.
    if (label === undefined || label === 'job' || comparison === '!=')
      return text.includes(`# TYPE ${name} `) || text.includes(`# TYPE ${base} `);
    return text.includes(`\n${name}{${label}="${value}"}`);
  };
  for (const expr of [...RULES.map((rule) => rule.expr), ...SHOWN]) {
    const selectors = [...expr.matchAll(SELECTOR)];
    expect(selectors.length > 0 || expr.startsWith('up{'), expr).toBe(true);
    expect(selectors.filter((one) => !isServed(one)).map(([found]) => found)).toEqual([]);
  }
  expect([RULES.length, SHOWN.length]).toEqual([35, 29]);
});

it('Each alert leads to its runbook, which says what it means and what to do', () => {
  const runbooks = readFileSync(join(import.meta.dirname, '../../docs/runbooks.md'), 'utf8');
  const sections = new Map(
    runbooks
      .split('\n## ')
      .slice(1)
      .map((section) => [section.split('\n')[0] ?? '', section]),
  );
  expect([...sections.keys()].toSorted()).toEqual(RULES.map(({ alert }) => alert).toSorted());
  for (const { alert, annotations } of RULES) {
    expect(annotations.runbook).toBe(`docs/runbooks.md#${alert.toLowerCase()}`);
    expect(sections.get(alert), alert).toMatch(/^\w+\n\n[A-Z][\s\S]{20,}\n\n1\. /);
  }
});

it.each([
  'database_up',
  'heartbeat_alive',
  'client_token_valid',
  'gateway_responses_total',
  'open_drifts',
  'unresolved_operations',
  'unresolved_operations_oldest_age_seconds',
  'quarantined',
  'stale_wallets',
  'late_targets',
  'poll_rate_per_second',
  'alerts',
  'stuck_operations',
  'service_state',
  'webhook_endpoints',
  'backlog_oldest_age_seconds',
  'report_breaks',
  'report_age_seconds',
  'ledger_verify_findings',
  'database_pool_waiting',
  'database_replica_usable',
  'worker_pass_overdue_seconds',
  'delivery_process_up',
  'writes_frozen',
])('An alert watches %s', (name) => {
  const about = RULES.filter(({ expr }) => new RegExp(`\\btallyhook_${name}\\b`).test(expr));
  expect(about.length).toBeGreaterThan(0);
  for (const { annotations } of about) expect(annotations.summary.length).toBeGreaterThan(15);
});
