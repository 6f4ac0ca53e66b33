/**
 * Nudges by the calendar. Cron only says "look now", in the time zone of the setting; what is due,
 * and who makes it, the database decides. So a missed, doubled or skipped tick (a change of clocks,
 * a sleeping machine, many daemons) costs nothing. The only importer of node-cron.
 */
import { createTask, type ScheduledTask, validate } from 'node-cron';
import { Failure } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';

export interface Nudge {
  name: string;
  /** Five fields: minute, hour, day of month, month, day of week. */
  cron: string;
  timeZone: string;
}

/**
 * Starts the nudges; the answer stops them. @throws Failure `bad_setting` for an unreadable
 * expression
 */
export function startNudges(
  nudges: readonly Nudge[],
  log: Log,
  act: (name: string) => void,
): () => Promise<void> {
  const logger = {
    info: (message: string) => log.debug({ cron: message }, 'cron'),
    debug: () => {},
    warn: (message: string) => log.warn({ cron: message }, 'cron'),
    error: (message: string | Error) => log.error({ err: message }, 'cron'),
  };
  const tasks = nudges.map(({ name, cron, timeZone }): ScheduledTask => {
    if (!validate(cron)) {
      throw new Failure(
        'bad_setting',
        `the cron expression of ${name} must have five fields such as "5 0 * * *"`,
      );
    }
    return createTask(cron, () => act(name), { timezone: timeZone, name, logger, unref: true });
  });
  for (const task of tasks) void task.start();
  return async () => {
    for (const task of tasks) await task.destroy();
  };
}
