/** Small plots over time, in the colours of the scheme. */
import uPlot from 'uplot';
import { instantText, zoneOfPage } from './format.ts';
import { html, useEffect, useRef, useState } from './html.ts';

export interface Series {
  label: string;
  /** The name of a colour of the style sheet, such as `good`. */
  colour: string;
  values: (number | null)[];
}

const HEIGHT = 120;

/** @param times epoch seconds, ascending */
export function Plot({
  label,
  times,
  series,
  unit = '',
  steps = false,
}: {
  label: string;
  times: readonly number[];
  series: readonly Series[];
  unit?: string;
  /** For balances: a value holds until the next. */
  steps?: boolean;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<number | null>(null);
  useEffect(() => {
    const at = place.current;
    if (!at || times.length === 0) return;
    const options = optionsOf(at, series, { unit, steps });
    options.hooks = { setCursor: [({ cursor }) => setShown(cursor.idx ?? null)] };
    const data = [times, ...series.map(({ values }) => values)] as uPlot.AlignedData;
    const plot = new uPlot(options, data, at);
    const resized = new ResizeObserver(() => {
      plot.setSize({ width: at.clientWidth, height: HEIGHT });
    });
    resized.observe(at);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [times, series]);
  const newest = series.map(({ label: name, values }) => `${name} ${values.at(-1) ?? '–'}${unit}`);
  const time = shown === null ? undefined : times[shown];
  const valueAt = ({ values }: Series) => {
    const value = shown === null ? undefined : values[shown];
    return value === undefined ? '' : ` ${value === null ? '–' : valueText(value) + unit}`;
  };
  return html`<figure class="plot">
    <figcaption>
      <span>${time === undefined ? label : instantText(time * 1_000)}</span>
      <span class="legend">
        ${series.map(
          (one) => html`<span class=${`key ${one.colour}`}>${one.label}${valueAt(one)}</span>`,
        )}
      </span>
    </figcaption>
    ${
      times.length === 0
        ? html`<p class="empty">Nothing in this time.</p>`
        : html`<div ref=${place} role="img" aria-label=${`${label}: ${newest.join(', ')}`}></div>`
    }
  </figure>`;
}

function optionsOf(
  at: HTMLElement,
  series: readonly Series[],
  { unit, steps }: { unit: string; steps: boolean },
): uPlot.Options {
  const style = getComputedStyle(at);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const paths = steps && uPlot.paths.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined;
  const axis = {
    stroke: colour('soft'),
    grid: { stroke: colour('line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  const options: uPlot.Options = {
    width: at.clientWidth || 300,
    height: HEIGHT,
    legend: { show: false },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), zoneOfPage()),
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, size: 24, values: (_, ticks) => ticks.map(tickText) },
      { ...axis, size: 52, values: (_, ticks) => ticks.map((n) => valueText(n) + unit) },
    ],
    series: [
      {},
      ...series.map((one) => ({
        label: one.label,
        stroke: colour(one.colour),
        width: 1.5,
        // A value between gaps has no line: it is shown as a point.
        points: { show: true, size: 4, fill: colour(one.colour), filter: alone },
        ...(paths ? { paths } : {}),
      })),
    ],
  };
  if (steps) options.scales = {};
  return options;
}

/** The values that have no neighbour. */
function alone(plot: uPlot, series: number): number[] {
  const values = plot.data[series] ?? [];
  return [...values.keys()].filter(
    (n) => values[n] != null && values[n - 1] == null && values[n + 1] == null,
  );
}

/** The time of a tick; at midnight its day. */
function tickText(seconds: number): string {
  const text = instantText(seconds * 1_000);
  return text.endsWith(' 00:00:00') ? text.slice(5, 10) : text.slice(11, 16);
}

/** Such as `9500` and `1.2M`: the room beside a plot is small. */
function valueText(n: number): string {
  const compact = { notation: 'compact', maximumFractionDigits: 2 } as const;
  return Math.abs(n) < 10_000 ? String(Number(n.toFixed(2))) : n.toLocaleString('en', compact);
}
