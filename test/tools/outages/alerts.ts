/** Which alerts of config/alerts.yaml fire on scraped series, and when: promtool evaluates them. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { continued, SCRAPE_S, type Series, valuesText, type Window } from './series.ts';

const ALERTS = join(import.meta.dirname, '../../../config/alerts.yaml');

/** The metrics that the alerts read. */
export function alertMetrics(): Set<string> {
  return new Set(readFileSync(ALERTS, 'utf8').match(/\b(?:tallyhook|nodejs|process)_\w+/g));
}

export interface Fired {
  /** Seconds from the beginning of the outage. */
  afterS: number;
  /** The process, role, stage or worker that it names. */
  of: string | undefined;
}

/**
 * When each alert fires first, of those that did not fire before the outage.
 * @throws Error when promtool does not run
 */
export async function firingAfter(series: Series, window: Window): Promise<Map<string, Fired>> {
  const folder = await mkdtemp(join(tmpdir(), 'tallyhook-promtool-'));
  try {
    const file = join(folder, 'outage.yaml');
    await writeFile(file, testOf(series, window));
    return firedIn(await promtool(['test', 'rules', file]), window);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Every slot expects that nothing fires, so promtool prints what does. */
function testOf(series: Series, window: Window): string {
  const { quiet, outage, before, after } = window;
  const begin = before + quiet;
  const slots = Array.from({ length: outage + after + 1 }, (_, n) => begin - 1 + n);
  const interval = `${SCRAPE_S}s`;
  return stringify({
    rule_files: [ALERTS],
    evaluation_interval: interval,
    tests: [
      {
        interval,
        input_series: [...series].map(([name, samples]) => ({
          series: name,
          values: valuesText(continued(samples, window)),
        })),
        promql_expr_test: slots.map((slot) => ({
          expr: 'ALERTS{alertstate="firing"}',
          eval_time: `${slot * SCRAPE_S}s`,
          exp_samples: [],
        })),
      },
    ],
  });
}

function firedIn(text: string, { before, quiet }: Window): Map<string, Fired> {
  const begin = (before + quiet) * SCRAPE_S;
  const fired = new Map<string, Fired>();
  const already = new Set<string>();
  for (const [, time = '', rest = ''] of text.matchAll(/time: (\w+),(.*(?:\n(?!.*time: ).*)*)/g)) {
    const at = secondsOf(time) - begin;
    for (const [, name = '', labels = ''] of rest.matchAll(/alertname="(\w+)"([^}]*)/g)) {
      const of = /\b(?:process|role|stage|worker)="(\w+)"/.exec(labels)?.[1];
      if (at < 0) already.add(name);
      else if (!already.has(name) && !fired.has(name)) fired.set(name, { afterS: at, of });
    }
  }
  return fired;
}

/** Of a duration of promtool, such as 1h5m10s. */
function secondsOf(text: string): number {
  const unit: Record<string, number> = { d: 86_400, h: 3_600, m: 60, s: 1 };
  const parts = [...text.matchAll(/(\d+)([dhms])/g)];
  return parts.reduce((sum, [, n, of = '']) => sum + Number(n) * (unit[of] ?? 0), 0);
}

function promtool(args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('promtool', args, { maxBuffer: 2 ** 28 }, (error, out, err) => {
      const text = `${out}${err}`;
      // It ends with 1 when something fires.
      if (error && !text.includes('FAILED:')) reject(new Error(`promtool: ${text || error}`));
      else resolve(text);
    });
  });
}
