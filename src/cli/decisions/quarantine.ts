/** `tallyhook quarantine`: lists what waits for a person, and releases it, through the daemon. */
import { isId } from '../../kernel/ids.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/log.ts';
import { quarantined, type release } from '../../resources/operations/quarantine.ts';
import type { Shown } from '../../resources/resource.ts';
import { callDaemon, listAll, type Remote } from '../api/remote.ts';
import { lineOf } from '../api/table.ts';

export async function listQuarantine(options: Remote & { json?: true }): Promise<number> {
  const data = await listAll<Shown<typeof quarantined>>(options, '/api/quarantine');
  if (options.json) printLine(jsonText({ data }));
  else if (data.length === 0) printLine('Nothing is quarantined');
  for (const row of options.json ? [] : data) printLine(lineOf(quarantined, row));
  return 0;
}

export async function releaseQuarantine(
  id: string,
  options: Remote & { reason: string; json?: true },
): Promise<number> {
  const text = await callDaemon(options, {
    method: 'POST',
    path: '/api/quarantine/release',
    body: { kind: kindOf(id), id, reason: options.reason },
  });
  const { problem } = JSON.parse(text) as Shown<typeof release>;
  printLine(options.json ? text : `Released ${id}, which was quarantined for: ${problem}`);
  return 0;
}

/** Posting requests have ids of several forms, such as `opening:0x…`. */
function kindOf(id: string): string {
  if (isId('op', id)) return 'operation';
  if (/^\d+$/.test(id)) return 'observed_holder';
  return /^(?:wallet|token|scan):/.test(id) ? 'observation' : 'posting_request';
}
