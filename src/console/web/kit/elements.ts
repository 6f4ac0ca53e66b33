/** The parts of which every view is made. */

import { csvHead, csvRow } from '../../../resources/cells.ts';
import { DAY_MS } from '../../../resources/local-time.ts';
import { columnsOf, type Resource } from '../../../resources/resource.ts';
import type { List, Problem } from './api.ts';
import {
  amountText,
  countText,
  instantText,
  readersNow,
  relativeText,
  shortText,
  signedText,
  wordsOf,
} from './format.ts';
import { type Children, html, useEffect, useRef, useState } from './html.ts';

/** good: as it should be; warn: look at it; bad: act; none: without a judgement. */
export type Tone = 'good' | 'warn' | 'bad' | 'none';

export function View({
  title,
  lead,
  actions,
  children,
}: Children & { title: unknown; lead?: unknown; actions?: unknown }) {
  return html`<div class="view">
    <div class="view-head">
      <h1>${title}</h1>
      ${actions && html`<div class="actions">${actions}</div>`}
    </div>
    ${lead && html`<p class="lead">${lead}</p>`}
    ${children}
  </div>`;
}

export function Card({
  title,
  tone = 'none',
  aside,
  children,
}: Children & { title?: unknown; tone?: Tone; aside?: unknown }) {
  return html`<section class=${`card ${tone}`}>
    ${title && html`<div class="card-head"><h2>${title}</h2>${aside}</div>`} ${children}
  </section>`;
}

export function Pill({ tone = 'none', children }: Children & { tone?: Tone }) {
  return html`<span class=${`pill ${tone}`}>${children}</span>`;
}

/** Names and values; those without a value are left out. */
export function Facts({ pairs }: { pairs: readonly (readonly [string, unknown])[] }) {
  const given = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '');
  return html`<dl class="facts">
    ${given.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}
  </dl>`;
}

/**
 * A time of the page's zone, without its day when that is today, and how long ago on hover; what is
 * still to come within a day is told by how soon it comes.
 */
export function Time({ at, exact = false }: { at: string | null | undefined; exact?: boolean }) {
  if (!at) return html`<span class="muted">–</span>`;
  const [text, relative] = [instantText(at), relativeText(at)];
  const ms = new Date(at).getTime() - readersNow();
  const isSoon = ms >= 1_000 && ms < DAY_MS;
  const isToday = text.slice(0, 10) === instantText(readersNow()).slice(0, 10);
  const shown = exact ? text : isSoon ? relative : isToday ? text.slice(11) : text;
  const other = shown === relative ? text : relative;
  return html`<time class="nowrap" datetime=${at} title=${`${other} · ${at}`}>${shown}</time>`;
}

export function Amount({ of, signed = false }: { of: string | null; signed?: boolean }) {
  if (of === null) return html`<span class="muted" title="not known">–</span>`;
  return html`<span class="number">${signed ? signedText(of) : amountText(of)}</span>`;
}

const COPY = html`<svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
  <path
    d="M5 5V2h9v9h-3M2 5h9v9H2z"
    fill="none"
    stroke="currentColor"
    stroke-width="1.5"
    stroke-linejoin="round"
  />
</svg>`;

/** An address, hash or id: short unless `whole`; its button copies all of it. */
export function Code({
  text,
  href,
  whole = false,
}: {
  text: string;
  href?: string;
  whole?: boolean;
}) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  const shown = whole ? text : shortText(text);
  const inner = html`<code>${shown}</code>`;
  return html`<span class=${whole ? 'code whole' : 'code'}>
    ${
      href
        ? html`<a href=${href} title=${text}>${inner}</a>`
        : html`<span title=${text}>${inner}</span>`
    }
    <button class="copy" type="button" onClick=${copy} aria-label=${`Copy ${text}`}>
      ${copied ? '✓' : COPY}
    </button>
  </span>`;
}

/** The address of a wallet, linked to its page. */
export function WalletLink({ addr, whole = false }: { addr: string; whole?: boolean }) {
  return html`<${Code} text=${addr} href=${`/wallets/${addr}`} whole=${whole} />`;
}

const TONES: Record<string, Tone> = {
  settled: 'good',
  executed: 'good',
  accepted: 'good',
  active: 'good',
  enabled: 'good',
  delivered: 'good',
  balanced: 'good',
  signed: 'good',
  explained: 'good',
  unknown: 'warn',
  undecided: 'warn',
  queued: 'warn',
  held: 'warn',
  failing: 'warn',
  retry: 'warn',
  proposed: 'warn',
  announced: 'warn',
  maintenance: 'warn',
  open: 'bad',
  failed: 'bad',
  rejected: 'bad',
  unreachable: 'bad',
  disabled: 'bad',
  exhausted: 'bad',
  gone: 'bad',
  unbalanced: 'bad',
};

/** A state by its name, coloured by what it means. */
export function State({ of }: { of: string }) {
  return html`<${Pill} tone=${TONES[of] ?? 'none'}>${wordsOf(of)}<//>`;
}

export interface Column<T> {
  head: string;
  of: (row: T) => unknown;
  /** Numbers are aligned to the right. */
  number?: boolean;
}

/** Rows in columns; on a narrow screen each row is a block of named values, without empty ones. */
export function Table<T>({
  columns,
  rows,
  empty,
  keyOf,
  brief = false,
}: {
  columns: readonly Column<T>[];
  rows: readonly T[] | undefined;
  empty: unknown;
  keyOf?: (row: T) => string;
  /** On a narrow screen in few lines: the first three values have no names. */
  brief?: boolean;
}) {
  if (!rows) return html`<${Loading} />`;
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  const classOf = ({ number }: Column<T>) => (number ? 'number' : '');
  const cellOf = (column: Column<T>, row: T) => {
    const value = column.of(row);
    const isNone = value === null || value === undefined || value === '' || value === false;
    const names = `${classOf(column)} ${isNone ? 'none' : ''}`.trim();
    return html`<td class=${names} data-head=${column.head}>${isNone ? '' : value}</td>`;
  };
  const names = brief ? 'scroll brief' : 'scroll';
  return html`<div class=${names} tabindex="0" role="group" aria-label="Table">
    <table>
      <thead>
        <tr>${columns.map((c) => html`<th scope="col" class=${classOf(c)}>${c.head}</th>`)}</tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${keyOf?.(row)} onClick=${followRow}>
            ${columns.map((column) => cellOf(column, row))}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** A row is followed as its first link, except where something else in it was pressed or marked. */
function followRow(event: MouseEvent): void {
  const [row, target] = [event.currentTarget as HTMLElement, event.target as HTMLElement];
  if (target.closest('a, button, input, select, textarea, label, summary')) return;
  if (String(getSelection())) return;
  row.querySelector('a')?.click();
}

/** Gives the reader a file. */
export function saveFile(name: string, content: Blob): void {
  const href = URL.createObjectURL(content);
  Object.assign(document.createElement('a'), { href, download: name }).click();
  URL.revokeObjectURL(href);
}

/** Saves the rows that are shown, with the columns of their definition; instants are in UTC. */
function saveRows(resource: Resource, rows: readonly object[]): void {
  const columns = columnsOf(resource);
  const lineOf = (row: Record<string, unknown>) =>
    csvRow(columns.map(({ name, kind }) => ({ kind, value: row[name] })));
  const names = columns.map(({ name }) => name);
  const lines = [csvHead(names, true), ...rows.map((row) => lineOf({ ...row }))];
  saveFile(`${resource.name}.csv`, new Blob(lines, { type: 'text/csv;charset=utf-8' }));
}

/** A table over a list of the API, with its problem, the button for more, and its rows as CSV. */
export function ListTable<T extends object>({
  list,
  file,
  ...rest
}: {
  list: List<T>;
  /** What the rows are, to save them; without it they cannot be. */
  file?: Resource;
  columns: readonly Column<T>[];
  empty: unknown;
  keyOf?: (row: T) => string;
}) {
  return html`<${Failed} problem=${list.problem} retry=${list.reload} />
    <div role="status">
      ${
        (list.fresh > 0 || list.isChanged) &&
        html`<button type="button" class="quiet" onClick=${list.reload}>
          ${list.fresh > 0 ? `${countText(list.fresh)} new` : 'Rows have left: load again'}
        </button>`
      }
    </div>
    ${(list.rows || !list.problem) && html`<${Table} brief rows=${list.rows} ...${rest} />`}
    <div class="actions">
      ${list.more && html`<button type="button" class="quiet" onClick=${list.more}>More</button>`}
      ${
        file &&
        list.rows &&
        list.rows.length > 0 &&
        html`<button
          type="button"
          class="quiet"
          title="These rows; times are in UTC"
          onClick=${() => saveRows(file, list.rows ?? [])}
        >
          Save ${countText(list.rows.length)} as CSV
        </button>`
      }
    </div>`;
}

export function Loading() {
  return html`<p class="empty" role="status">Loading…</p>`;
}

/** What went wrong, in the words of the API, and a way to try again. */
export function Failed({ problem, retry }: { problem: Problem | undefined; retry?: () => void }) {
  if (!problem) return null;
  const text = problem.status === 403 ? `${problem.message}. Use another key.` : problem.message;
  return html`<div class="notice bad" role="alert">
    <span>${text}</span>
    ${retry && html`<button type="button" class="quiet" onClick=${retry}>Try again</button>`}
  </div>`;
}

/** Until the subject of a view is loaded: that it loads, or why it could not be. */
export function Pending({ problem, retry }: { problem: Problem | undefined; retry: () => void }) {
  return problem ? html`<${Failed} problem=${problem} retry=${retry} />` : html`<${Loading} />`;
}

/**
 * An input of a filter. What is typed stays when the page is rendered anew, until `value` changes:
 * Preact gives an input its `value` at every rendering.
 */
export function FilterInput({ value = '', ...props }: { value?: string | undefined }) {
  const input = useRef<HTMLInputElement>(null);
  const shown = useRef(value);
  useEffect(() => {
    if (input.current && shown.current !== value) input.current.value = value;
    shown.current = value;
  }, [value]);
  return html`<input ref=${input} defaultValue=${value} spellcheck=${false} ...${props} />`;
}

/** A choice of a filter; the first option stands for no filter. */
export function Choice({
  name,
  value,
  options,
  onChange,
}: {
  name: string;
  value: string;
  options: readonly (readonly [value: string, text: string])[];
  onChange: (value: string) => void;
}) {
  const change = (event: Event) => onChange((event.target as HTMLSelectElement).value);
  return html`<label class="field">
    <span>${name}</span>
    <select value=${value} onChange=${change}>
      ${options.map(
        ([of, text]) => html`<option value=${of} selected=${of === value}>${text}</option>`,
      )}
    </select>
  </label>`;
}

/** A filter that a link has set and that no choice shows; pressing removes it. */
export function Chip({ text, remove }: { text: string; remove: () => void }) {
  return html`<button type="button" class="quiet" onClick=${remove}>${text} ✕</button>`;
}

/** Views of one subject side by side, kept in the address. */
export function Tabs({
  tabs,
  chosen,
  onChange,
}: {
  tabs: readonly (readonly [value: string, text: unknown])[];
  chosen: string;
  onChange: (value: string) => void;
}) {
  const values = tabs.map(([value]) => value);
  const press = (event: KeyboardEvent) => {
    const to = KEYS[event.key]?.(values.indexOf(chosen), values.length);
    if (to === undefined) return;
    event.preventDefault();
    onChange(values[to] ?? chosen);
    const { children } = event.currentTarget as HTMLElement;
    (children[to] as HTMLElement | undefined)?.focus();
  };
  return html`<div class="tabs" role="tablist" onKeyDown=${press}>
    ${tabs.map(
      ([value, text]) => html`<button
        type="button"
        role="tab"
        aria-selected=${value === chosen}
        tabindex=${value === chosen || !values.includes(chosen) ? 0 : -1}
        onClick=${() => onChange(value)}
      >
        ${text}
      </button>`,
    )}
  </div>`;
}

/** Where a key leads from one of so many tabs. */
const KEYS: Record<string, (from: number, of: number) => number> = {
  ArrowRight: (from, of) => (from + 1) % of,
  ArrowLeft: (from, of) => (from + of - 1) % of,
  Home: () => 0,
  End: (_, of) => of - 1,
};
