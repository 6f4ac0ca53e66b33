/** The worker that sets the gauges of what waits and what is open. */
import { type Counts, readCounts } from '../../api/api.ts';
import type { Db } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import { findService } from '../../observer/observer.ts';
import { type AlertCount, countAlerts, LATE, STUCK } from '../../reconciler/reconciler.ts';
import { listSummaries, RECONCILIATION } from '../../reports/reports.ts';
import { SERVICE_STATES } from '../../resources/admin/status.ts';
import { countEndpointStates } from '../../webhooks/webhooks.ts';
import type { Config } from '../config/config.ts';
import type { Worker } from './schedule.ts';
import { findVerification } from './verification.ts';

const ENDPOINT_STATES = ['enabled', 'disabled'];

export function gaugesWorker(deps: {
  config: Pick<Config, 'daemon' | 'reports' | 'alerts'>;
  db: Db;
  metrics: Metrics;
}): Worker {
  const { config, db, metrics } = deps;
  return {
    name: 'gauges',
    intervalMs: config.daemon.metrics_interval_ms,
    pass: async (now) => {
      setGauges(metrics, await readCounts(db, now, config.reports.stale_after_ms), now);
      setAlerts(metrics, await countAlerts(db), config.alerts.rules);
      const service = await findService(db);
      for (const state of SERVICE_STATES)
        metrics.serviceState.set({ state }, service?.state === state ? 1 : 0);
      const endpoints = await countEndpointStates(db);
      for (const state of ENDPOINT_STATES)
        metrics.endpoints.set({ state }, endpoints.find((one) => one.state === state)?.count ?? 0);
      const [report] = await listSummaries(db, { kind: RECONCILIATION, limit: 1 });
      if (report) {
        metrics.reportBreaks.set(report.breaks);
        metrics.reportAge.set(Math.max(0, now - report.createdAt) / 1000);
      }
      const verification = await findVerification(db);
      if (verification) {
        metrics.ledgerFindings.set(verification.findings);
        metrics.ledgerVerifyAge.set(Math.max(0, now - verification.endedAt) / 1000);
      }
      return undefined;
    },
  };
}

function setAlerts(
  metrics: Metrics,
  alerts: readonly AlertCount[],
  rules: readonly { name: string }[],
): void {
  for (const { name } of rules)
    metrics.alerts.set({ rule: name }, alerts.find(({ rule }) => rule === name)?.count ?? 0);
  const late = alerts.find(({ rule }) => rule === LATE);
  metrics.lateTargets.set(Number(late?.detail.targets ?? 0));
  metrics.stuckOperations.set(alerts.find(({ rule }) => rule === STUCK)?.count ?? 0);
}

function setGauges(metrics: Metrics, counts: Counts, now: Instant): void {
  for (const { stage, waiting, since } of counts.stages) {
    metrics.backlog.set({ stage }, waiting);
    metrics.backlogAge.set({ stage }, Math.max(0, now - (since ?? now)) / 1000);
  }
  metrics.openDrifts.set(counts.drifts.open);
  metrics.vanishedWallets.set(counts.vanished.count);
  metrics.driftAge.set(Math.max(0, now - (counts.drifts.oldestAt ?? now)) / 1000);
  metrics.driftMedian.set(counts.driftMedianS ?? 0);
  for (const state of ['unknown', 'undecided']) {
    const open = counts.operations.find((one) => one.state === state);
    metrics.unresolved.set({ state }, open?.count ?? 0);
    metrics.unresolvedAge.set({ state }, Math.max(0, now - (open?.oldestAt ?? now)) / 1000);
  }
  for (const [kind, count] of Object.entries(counts.quarantined))
    metrics.quarantined.set({ kind }, count);
  metrics.staleWallets.set(counts.staleWallets);
}
