/** An outage, briefly, and what the tool concludes from series and logs. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DEBIAN_BIN } from '../../harness/postgres-programs.ts';
import { firingAfter } from './alerts.ts';
import { logFigures } from './log.ts';
import { runOutage } from './run.ts';
import { continued, type Samples } from './series.ts';
import { OUTAGES } from './table.ts';

const BRIEF = ['database-stopped'];

describe('An outage', () => {
  if (!existsSync(DEBIAN_BIN) || !hasPromtool()) {
    it('is not made without Postgres and promtool: apt-get install postgresql-15 prometheus', () => {
      expect(existsSync(DEBIAN_BIN) && hasPromtool()).toBe(false);
    });
    return;
  }

  it.each(BRIEF)(
    '%s is named by its alert, and loses nothing',
    async (name) => {
      const outage = OUTAGES.find((one) => one.name === name);
      if (!outage) throw new Error(`no outage ${name}`);
      const plan = { bin: DEBIAN_BIN, perS: 3, quietS: 10, lastsS: 20 };
      const seen = await runOutage(outage, plan, () => {});
      expect(seen.faults, JSON.stringify(seen)).toEqual([]);
      expect(seen.writes).toBeGreaterThan(30);
    },
    240_000,
  );

  it('Alerts fire by the samples of an outage, and those that fired before it do not count', async () => {
    const quiet = [1, 1, 1];
    const series = new Map<string, Samples>([
      ['up{job="tallyhook",instance="a"}', [...quiet, 1, 1, 1, 1]],
      ['tallyhook_database_up{job="tallyhook",instance="a"}', [...quiet, 0, 0, 0, 0]],
      ['tallyhook_writes_frozen{job="tallyhook",instance="a"}', [1, 1, 1, 1, 1, 1, 1]],
    ]);
    const window = { quiet: 3, outage: 4, before: 20, after: 40 };
    const fired = await firingAfter(series, window);
    expect(fired.get('TallyhookDatabaseAway')).toEqual({ afterS: 60, of: undefined });
    expect(fired.has('TallyhookDown')).toBe(false);
    expect(fired.has('TallyhookWritesFrozen')).toBe(false);
  });
});

describe('The samples of an outage that goes on', () => {
  it.each<[string, Samples, Samples]>([
    ['stays as it is', [5, 5, 7, 7, 7, 7], [5, 5, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7]],
    ['grows', [0, 1, 2, 4, 6, 8], [-2, -1, 0, 1, 2, 4, 6, 8, 10, 12, 14, 16, 18]],
    ['goes to and fro', [0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]],
    [
      'is gone',
      [3, 3, null, null, null, null],
      [3, 3, 3, 3, null, null, null, null, null, null, null, null, null],
    ],
  ])('A series that %s during an outage is continued in the same way', (_, samples, expected) => {
    expect(continued(samples, { quiet: 2, outage: 4, before: 2, after: 5 })).toEqual(expected);
  });
});

describe('The log of an outage', () => {
  const line = (msg: string, level = 'error') => JSON.stringify({ level, msg });

  it('names it by one line among any others', () => {
    const lines = [line('ready', 'info'), line('the database is unavailable')];
    expect(logFigures(lines, 60, /unavailable/)).toMatchObject({ lines: 1, isNamed: true });
    expect(logFigures(lines, 60, /heartbeat/)).toMatchObject({ isNamed: false });
    expect(logFigures([], 60, undefined)).toMatchObject({ isNamed: true, isFlooded: false });
  });

  it('is flooded by a line for each request', () => {
    const lines = Array.from({ length: 31 }, () => line('request failed'));
    expect(logFigures(lines, 60, undefined)).toMatchObject({ isFlooded: true, perMinute: 31 });
    expect(logFigures(lines, 120, undefined)).toMatchObject({ isFlooded: false });
  });
});

function hasPromtool(): boolean {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
