/** Workers that are woken by the calendar. */
import { describe, expect, it } from 'vitest';
import { startCron } from '../../src/daemon/workers/cron.ts';
import { makeLog } from '../../src/kernel/telemetry/log.ts';

describe('A cron job', () => {
  const log = makeLog('silent');

  it.each(['nonsense', '99 * * * *', '', '* * *'])('with the expression %j is refused', (cron) => {
    const jobs = [{ name: 'reports' as const, cron, timeZone: 'UTC' }];
    expect(() => startCron(jobs, log, () => {})).toThrow(
      expect.objectContaining({ code: 'bad_setting', detail: expect.stringContaining('reports') }),
    );
  });

  it('ends when the returned function is called', async () => {
    const jobs = [{ name: 'reports' as const, cron: '5 0 * * *', timeZone: 'Europe/Berlin' }];
    await startCron(jobs, log, () => {})();
  });
});
