/** The worker that sets the gauges of what waits and what is open. */
import { type Counts, readCounts } from '../../api/api.ts';
import type { Db } from '../../db/connect.ts';
import type { Instant } from '../../kernel/clock.ts';
import type { Metrics } from '../../kernel/metrics.ts';
import type { Config } from '../config/config.ts';
import type { Worker } from './schedule.ts';

export function gaugesWorker(deps: {
  config: Pick<Config, 'daemon' | 'reports'>;
  db: Db;
  metrics: Metrics;
}): Worker {
  const { config, db, metrics } = deps;
  return {
    name: 'gauges',
    intervalMs: config.daemon.metrics_interval_ms,
    pass: async (now) => {
      setGauges(metrics, await readCounts(db, now, config.reports.stale_after_ms), now);
      return undefined;
    },
  };
}

function setGauges(metrics: Metrics, counts: Counts, now: Instant): void {
  for (const { stage, waiting } of counts.stages) metrics.backlog.set({ stage }, waiting);
  metrics.openDrifts.set(counts.drifts.open);
  for (const state of ['unknown', 'undecided']) {
    const open = counts.operations.find((one) => one.state === state);
    metrics.unresolved.set({ state }, open?.count ?? 0);
    metrics.unresolvedAge.set({ state }, Math.max(0, now - (open?.oldestAt ?? now)) / 1000);
  }
  for (const [kind, count] of Object.entries(counts.quarantined))
    metrics.quarantined.set({ kind }, count);
  metrics.staleWallets.set(counts.staleWallets);
}
