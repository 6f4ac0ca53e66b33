/** What the service showed and when, of every wallet and token: the oracle of a simulation. */
import { addressKey } from '../../../src/kernel/addresses.ts';
import { isoText } from '../../../src/kernel/clock.ts';
import type { Token } from '../../../src/sandbox/state/records.ts';

/** From an instant until the next one of the same subject. */
export interface State {
  at: number;
  value: string;
}

export interface History {
  /** By the subject of events. */
  states: Map<string, State[]>;
  /** When no poll was allowed, or the service was down, oldest first. */
  silences: { from: number; until: number }[];
  /** Polls without a usable answer: the address of a wallet, or that of tokens. */
  failures: { at: number; of: string }[];
  /** The greatest age that a daemon guaranteed from then on, oldest first. */
  ages: { at: number; ms: number }[];
}

export const GONE = 'gone';

export function newHistory(): History {
  return { states: new Map(), silences: [], failures: [], ages: [] };
}

export function noteState({ states }: History, subject: string, state: State): void {
  const list = states.get(subject);
  if (list) list.push(state);
  else states.set(subject, [state]);
}

export function noteSilence({ silences }: History, from: number, until: number): void {
  const last = silences.at(-1);
  if (last && from <= last.until) last.until = Math.max(last.until, until);
  else silences.push({ from, until });
}

/** How long the service could be polled between two instants. */
export function pollableMs({ silences }: History, from: number, until: number): number {
  const silent = silences.reduce(
    (sum, one) => sum + Math.max(0, Math.min(until, one.until) - Math.max(from, one.from)),
    0,
  );
  return until - from - silent;
}

/** Keeps the greatest age of each minute. */
export function noteAge({ ages }: History, at: number, ms: number): void {
  const last = ages.at(-1);
  if (last && at < last.at + 60_000) last.ms = Math.max(last.ms, ms);
  else ages.push({ at, ms });
}

/** The greatest age that was guaranteed at any time between two instants. */
export function guaranteedMs({ ages }: History, from: number, until: number): number {
  const valid = ages.filter(({ at }, i) => at < until && (ages[i + 1]?.at ?? until) > from);
  return Math.max(...valid.map(({ ms }) => ms));
}

/** How many polls of a subject, or of the list that it is in, failed between two instants. */
export function failuresOf({ failures }: History, subject: string, from: number, until: number) {
  const of = subject.startsWith('wallet:') ? subject.slice('wallet:'.length) : TOKENS;
  return failures.filter((one) => one.of === of && one.at >= from && one.at < until).length;
}

export const TOKENS = 'tokens';

export function walletSubject(addr: string): string {
  return `wallet:${addressKey(addr)}`;
}

export function tokenSubject({ contract_id, token_id }: Token): string {
  return `token:${contract_id}:${token_id}`;
}

export function tokenValue({ owner, locked, extra, last_tx_hash: hash }: Token): string {
  return [addressKey(owner), locked ? 1 : 0, extra, hash].join(' ');
}

export function textOf({ at, value }: State): string {
  return `${value} at ${isoText(at)}`;
}
