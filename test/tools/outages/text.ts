/** The table of what was seen. */
import { HELD, type Seen } from './run.ts';

const COLUMNS = [
  'outage',
  'alert',
  'after, s',
  'other alerts',
  'log lines/min',
  '/readyz',
  'writes',
  'lost',
  'doubled or wrong',
  'to people',
  'recovered, s',
];

export function tableText(
  seen: readonly Seen[],
  failed: readonly string[],
  load: string | undefined,
): string {
  const rows = [COLUMNS, COLUMNS.map(() => '---'), ...seen.map(rowOf)];
  const faults = seen.flatMap((one) => one.faults.map((fault) => `${one.name}: ${fault}`));
  return [
    ...rows.map((row) => `| ${row.join(' | ')} |`),
    '',
    `${HELD} Load average of the machine: ${load}.`,
    [...faults, ...failed].join('\n') || 'Each outage was as expected.',
  ].join('\n');
}

function rowOf({ name, alert, firesAfterS, others, log, ready, ...one }: Seen): string[] {
  const { writes, outcomes, missingEvents, recoveredS } = one;
  return [
    name,
    alert?.replace('Tallyhook', '') ?? 'none',
    firesAfterS?.toFixed(0) ?? '–',
    Object.entries(others)
      .map(([other, after]) => `${other.replace('Tallyhook', '')} ${after}`)
      .join(', '),
    String(log.perMinute),
    `${ready.during || 'no answer'}, ${ready.end}`,
    String(writes),
    String(outcomes.unrecorded.length + missingEvents),
    String(outcomes.wrong.length),
    String(outcomes.undecided),
    recoveredS.toFixed(0),
  ];
}
