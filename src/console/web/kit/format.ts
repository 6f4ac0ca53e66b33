/** Texts for people: times in the zone of the page, amounts with separators, short addresses. */

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

const formats = new Map<string, Intl.DateTimeFormat>();

/** Such as `2026-11-22 14:03:07`. */
export function instantText(at: string | number, timeZone = zone): string {
  // Swedish is written as ISO 8601 has it.
  const make = () =>
    new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  const format = formats.get(timeZone) ?? make();
  formats.set(timeZone, format);
  return format.format(new Date(at));
}

/** What an input of local time holds, as an instant; empty for what is no time. */
export function instantOf(local = ''): string {
  const asUtc = Date.parse(`${local}Z`);
  if (Number.isNaN(asUtc)) return '';
  const offsetAt = (at: number) => Date.parse(`${localText(at)}Z`) - Math.floor(at / 1_000) * 1_000;
  // Near a change of the clocks the first guess may have the other offset.
  const guess = asUtc - offsetAt(asUtc);
  return new Date(asUtc - offsetAt(guess)).toISOString();
}

/** An instant as an input of local time takes it. */
export function localText(at: string | number): string {
  return instantText(at).replace(' ', 'T');
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
