/** Texts for people: times in the zone of the page, amounts with separators, short addresses. */
import { instantOfLocal, localText } from '../../../resources/local-time.ts';

/** Digits in groups of three; amounts are exact whole numbers of any size. */
export function amountText(amount: string): string {
  const [, sign = '', digits = ''] = /^([+-]?)(\d+)$/.exec(amount) ?? [];
  if (!digits) return amount;
  return `${sign === '-' ? '−' : sign}${digits.replace(/\B(?=(\d{3})+$)/g, ' ')}`;
}

/** A difference, with its sign. */
export function signedText(amount: string): string {
  return /^$|^-|^0$/.test(amount) ? amountText(amount) : `+${amountText(amount)}`;
}

export function countText(count: number): string {
  return amountText(String(count));
}

export function shortText(text: string, head = 8, tail = 6): string {
  return text.length <= head + tail + 1 ? text : `${text.slice(0, head)}…${text.slice(-tail)}`;
}

const readersZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
/** The zone of all times of a page. */
let zone = readersZone;
export const zoneOfPage = (): string => zone;

/** Sets the zone of the page that is shown; without a name that of the reader's machine. */
export function setZone(name = readersZone): void {
  zone = name;
}

/** Such as `2026-11-22 14:03:07`, with its offset where clocks show it twice. */
export function instantText(at: string | number, timeZone = zone): string {
  return Number.isNaN(new Date(at).getTime()) ? String(at) : localText(at, timeZone);
}

/** What an input of local time holds, as an instant; empty for what is no time. */
export function instantOf(local = ''): string {
  const at = instantOfLocal(local, zone);
  return at === undefined ? '' : new Date(at).toISOString();
}

/** An instant as an input of local time takes it. */
export function inputText(at: string | number): string {
  return instantText(at).slice(0, 19).replace(' ', 'T');
}

/** A duration in its two largest units. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) {
    const minutes = Math.floor((seconds % 3_600) / 60);
    return `${Math.floor(seconds / 3_600)} h${minutes > 0 ? ` ${minutes} min` : ''}`;
  }
  const hours = Math.floor((seconds % 86_400) / 3_600);
  return `${Math.floor(seconds / 86_400)} d${hours > 0 ? ` ${hours} h` : ''}`;
}

/** The time of the reader's machine, in epoch milliseconds. */
export function readersNow(): number {
  return Date.now();
}

/** Such as `3 min ago` or `in 5 s`. */
export function relativeText(at: string | number, now = readersNow()): string {
  const ms = now - new Date(at).getTime();
  if (Math.abs(ms) < 1_000) return 'now';
  return ms > 0 ? `${durationText(ms)} ago` : `in ${durationText(-ms)}`;
}

/** Whether an instant is over. */
export function isPast(at: string): boolean {
  return new Date(at).getTime() <= readersNow();
}

/** `not_executed` as `not executed`. */
export function wordsOf(name: string): string {
  return name.replaceAll('_', ' ');
}
