/** What the stages of a daemon work with; each names the members that it uses. */
import type { Clock } from '../kernel/clock.ts';
import type { Ids } from '../kernel/ids.ts';
import type { Random } from '../kernel/random.ts';
import type { Log } from '../kernel/telemetry/log.ts';
import type { Metrics } from '../kernel/telemetry/metrics.ts';
import type { Db } from './connect.ts';

export interface Context {
  db: Db;
  clock: Clock;
  ids: Ids;
  random: Random;
  log: Log;
  metrics: Metrics;
}
