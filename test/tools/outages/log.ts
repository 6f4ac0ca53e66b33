/** What the log says of an outage: how much, and whether a line names it. */
import { tryParseJson } from '../../../src/kernel/json.ts';

export interface LogFigures {
  /** Lines of the level warn or above, and those of them that have a stack. */
  lines: number;
  stacks: number;
  perMinute: number;
  /** The first line that names the outage. */
  names: string | undefined;
  isNamed: boolean;
  /** The message that was logged most often, and how often. */
  mostCommon: string;
  isFlooded: boolean;
}

/** Lines of each daemon in a minute that a reader still follows. */
const PER_MINUTE_MAX = 30;
const LOUD = new Set(['warn', 'error', 'fatal']);

interface Line {
  level?: string;
  msg?: string;
  err?: { stack?: string };
}

/** @param lines those of the time of the outage @param named undefined: the log says nothing */
export function logFigures(
  lines: readonly string[],
  seconds: number,
  named: RegExp | undefined,
): LogFigures {
  const parsed = lines.map((text) => ({ text, line: (tryParseJson(text) ?? {}) as Line }));
  // What is no JSON comes from Node or V8 itself, such as its last words.
  const loud = parsed.filter(({ line }) => LOUD.has(line.level ?? ''));
  const counts = new Map<string, number>();
  for (const {
    line: { msg = '' },
  } of loud)
    counts.set(msg, (counts.get(msg) ?? 0) + 1);
  const [most] = [...counts].toSorted(([, a], [, b]) => b - a);
  const names = named && parsed.find(({ text }) => named.test(text))?.text;
  const perMinute = (loud.length * 60) / Math.max(60, seconds);
  return {
    lines: loud.length,
    stacks: loud.filter(({ line }) => line.err?.stack).length,
    perMinute: Math.round(perMinute),
    names,
    isNamed: named === undefined || names !== undefined,
    mostCommon: most ? `${most[1]} × ${most[0].slice(0, 80)}` : '',
    isFlooded: perMinute > PER_MINUTE_MAX,
  };
}
