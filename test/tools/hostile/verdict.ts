/** What each receiver shows of a sender, by its rules. */
import { monotonicMs } from '../../../src/kernel/clock.ts';
import type { Receiver } from './receivers.ts';
import type { Finding } from './rules.ts';

export interface Verdict {
  receiver: string;
  does: string;
  expects: string;
  seen: string;
  findings: Finding[];
  /** Undefined when the run showed nothing. */
  held: boolean | undefined;
}

/**
 * @param since when the load began, in milliseconds of `monotonicMs`
 * @param more findings from elsewhere, by the name of the receiver
 */
export function verdictsOf(
  receivers: readonly Receiver[],
  healthy: readonly Receiver[],
  since = 0,
  more: (name: string) => Finding[] = () => [],
): Verdict[] {
  const arrivals = arrivalsAt(healthy, since);
  const endMs = monotonicMs();
  return receivers.map(({ name, does, expects, rules, seen }) => {
    const view = { seen, arrivals, endMs };
    const findings = [...rules.map((rule) => rule(view)), ...more(name)];
    const { requests, connections, openMax, queries } = seen;
    const parts = [
      `${requests.length} requests of ${seen.byId().size} events`,
      `${connections.length} connections, ${openMax} at a time`,
      ...(queries > 0 ? [`${queries} questions for its name`] : []),
    ];
    return {
      receiver: name,
      does,
      expects,
      seen: parts.join(', '),
      findings,
      held: heldOf(findings),
    };
  });
}

function heldOf(findings: readonly Finding[]): boolean | undefined {
  if (findings.some(({ held }) => held === false)) return false;
  return findings.some(({ held }) => held) ? true : undefined;
}

/** When each event came to any of them for the first time. */
function arrivalsAt(healthy: readonly Receiver[], since: number): Map<string, number> {
  const first = new Map<string, number>();
  for (const { seen } of healthy)
    for (const { id, atMs } of seen.requests)
      first.set(id, Math.min(atMs, first.get(id) ?? Number.POSITIVE_INFINITY));
  return new Map([...first].filter(([, atMs]) => atMs >= since));
}

export function verdictText({ receiver, does, expects, seen, findings, held }: Verdict): string {
  const word = held === undefined ? 'not shown' : held ? 'held' : 'NOT HELD';
  const marks = findings.map(({ what, held: is }) => {
    const mark = is === undefined ? '?' : is ? '+' : '-';
    return `    ${mark} ${what}`;
  });
  return [
    `${receiver.padEnd(16)} ${word}`,
    `    ${does}`,
    `    a correct sender: ${expects}`,
    `    seen: ${seen}`,
    ...marks,
  ].join('\n');
}
