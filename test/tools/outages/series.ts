/**
 * What Prometheus would have stored of a run: the samples of real scrapes, one slot each
 * `SCRAPE_S`, and for promtool their continuation before and after.
 */
import { request } from 'undici';
import type { Unit } from './scene.ts';

/** Between two scrapes, and two evaluations of the rules. */
export const SCRAPE_S = 5;
/** Prometheus gives up a scrape after ten seconds; here the next one would be due. */
const SCRAPE_TIMEOUT_MS = 4_500;

/** Null: the series had no sample in that slot. */
export type Samples = (number | null)[];
export type Series = Map<string, Samples>;

export interface Scrapes {
  series: Series;
  /** How many slots there are. */
  slots: number;
  /** One more slot, of all targets. */
  scrape(units: readonly Unit[]): Promise<void>;
}

/** @param wanted the names of the metrics that are kept */
export function makeScrapes(wanted: ReadonlySet<string>): Scrapes {
  const series: Series = new Map();
  const put = (name: string, slot: number, value: number) => {
    const samples = series.get(name) ?? [];
    while (samples.length < slot) samples.push(null);
    samples[slot] = value;
    series.set(name, samples);
  };
  return {
    series,
    slots: 0,
    async scrape(units) {
      const slot = this.slots;
      this.slots += 1;
      await Promise.all(
        units
          .filter(({ isTarget }) => isTarget)
          .map(async ({ name, url }) => {
            const text = await metricsOf(url);
            const target = `job="tallyhook",instance="${name}"`;
            put(`up{${target}}`, slot, text === undefined ? 0 : 1);
            for (const [metric, labels, value] of samplesOf(text ?? ''))
              if (wanted.has(metric))
                put(`${metric}{${[target, ...labels].join(',')}}`, slot, value);
          }),
      );
    },
  };
}

async function metricsOf(url: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(SCRAPE_TIMEOUT_MS);
  try {
    const { statusCode, body } = await request(`${url}/metrics`, { signal });
    const text = await body.text();
    return statusCode === 200 ? text : undefined;
  } catch {
    return undefined;
  }
}

function* samplesOf(text: string): Generator<[metric: string, labels: string[], value: number]> {
  for (const line of text.split('\n')) {
    const [, metric, labels, value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (metric && value) yield [metric, labels ? [labels] : [], Number(value)];
  }
}

export interface Window {
  /** Slots before the outage, those of the outage, and those that are added at each end. */
  quiet: number;
  outage: number;
  before: number;
  after: number;
}

/**
 * The samples with their continuation: before the first one the quiet part goes on backwards, and
 * after the last one of the outage its second half is repeated. What only grew goes on growing as
 * it did, so that counters and ages are those of an outage that lasts.
 */
export function continued(samples: Samples, { quiet, outage, before, after }: Window): Samples {
  const end = quiet + outage;
  const all = [...samples.slice(0, end)];
  while (all.length < end) all.push(null);
  const slope = growthOf(all.slice(0, quiet)) / Math.max(1, quiet - 1);
  const [first] = all;
  const past = Array.from({ length: before }, (_, n) =>
    first === null || first === undefined ? null : first - slope * (before - n),
  );
  const half = Math.ceil(outage / 2);
  const repeated = all.slice(end - half);
  // From the slot before, so that a whole turn is counted.
  const growth = growthOf(all.slice(Math.max(0, end - half - 1)));
  const future = Array.from({ length: after }, (_, n) => {
    const value = repeated[n % half];
    return value === null || value === undefined
      ? null
      : value + growth * (1 + Math.floor(n / half));
  });
  return [...past, ...all, ...future];
}

/** By how much it grew; 0 if it did not only grow. */
function growthOf(samples: Samples): number {
  const values = samples.filter((value) => value !== null);
  if (values.some((value, n) => value < (values[n - 1] ?? value))) return 0;
  return (values.at(-1) ?? 0) - (values[0] ?? 0);
}

/** As `input_series` of promtool has them; one that ends is stale, as after a failed scrape. */
export function valuesText(samples: Samples): string {
  let [last]: Samples = [null];
  return samples
    .map((value) => {
      const text = value === null ? (last === null ? '_' : 'stale') : String(value);
      last = value;
      return text;
    })
    .join(' ');
}
