/**
 * Wakes workers by the calendar. Cron only triggers a check; the database decides what is due, so
 * missed, doubled or skipped ticks (clock changes, a sleeping machine, several daemons) are
 * harmless. The only importer of node-cron.
 */
import { createTask, type ScheduledTask, validate } from 'node-cron';
import { Failure } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/telemetry/log.ts';
import type { Wake, WorkerName } from '../../kernel/workers.ts';

export interface CronJob {
  /** The worker to wake. */
  name: WorkerName;
  /** Five fields: minute, hour, day of month, month, day of week. */
  cron: string;
  timeZone: string;
}

/** Returns a function that stops the jobs. @throws Failure `bad_setting` for a bad expression */
export function startCron(jobs: readonly CronJob[], log: Log, wake: Wake): () => Promise<void> {
  const logger = {
    info: (message: string) => log.debug({ cron: message }, 'cron'),
    debug: () => {},
    warn: (message: string) => log.warn({ cron: message }, 'cron'),
    error: (message: string | Error) => log.error({ err: message }, 'cron'),
  };
  const tasks = jobs.map(({ name, cron, timeZone }): ScheduledTask => {
    if (!validate(cron)) {
      throw new Failure(
        'bad_setting',
        `the cron expression of ${name} must have five fields such as "5 0 * * *"`,
      );
    }
    return createTask(cron, () => wake(name), { timezone: timeZone, name, logger, unref: true });
  });
  for (const task of tasks) void task.start();
  return async () => {
    for (const task of tasks) await task.destroy();
  };
}
