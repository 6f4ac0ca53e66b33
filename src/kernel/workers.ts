/** The background workers of a daemon, which stages, the API and the calendar wake by name. */
export type WorkerName =
  | ('heartbeat' | 'search' | 'poll_minutes' | 'sample' | 'queue' | 'operations')
  | ('ledger' | 'observer' | 'probe' | 'reconciler' | 'alerts')
  | ('sequencer' | 'incidents' | 'attempt_minutes')
  | ('verification' | 'day_ends' | 'reports' | 'report_files' | 'housekeeping' | 'gauges')
  | ('imports' | 'replica')
  // Those of the process that sends webhooks.
  | ('webhooks' | 'replays' | 'delivery clock');

/** Makes these workers run a pass now, or once more if they are running. */
export type Wake = (...names: WorkerName[]) => void;
