/** `tallyhook decisions`: undecided operations, whose outcome two owners decide. */
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/log.ts';
import type { decision } from '../../resources/operations/decision.ts';
import { operation } from '../../resources/operations/operation.ts';
import type { Shown } from '../../resources/resource.ts';
import { callDaemon, listAll, type Remote } from '../api/remote.ts';
import { lineOf } from '../api/table.ts';

type Options = Remote & { json?: true };

export async function listUndecided(options: Options): Promise<number> {
  const data = await listAll<Shown<typeof operation>>(options, '/api/operations?state=undecided');
  if (options.json) printLine(jsonText({ data }));
  else if (data.length === 0) printLine('No operation is undecided');
  for (const row of options.json ? [] : data) printLine(lineOf(operation, row));
  return 0;
}

export async function proposeOutcome(
  id: string,
  outcome: string,
  options: Options & { reason: string },
): Promise<number> {
  const body = { outcome, reason: options.reason };
  const path = `/api/operations/${encodeURIComponent(id)}/decide`;
  const text = await callDaemon(options, { method: 'POST', path, body });
  const { n, approvals_needed: needed } = JSON.parse(text) as Shown<typeof decision>;
  const approvals = needed === 1 ? 'another owner' : `${needed} other owners`;
  printLine(
    options.json ? text : `Proposal ${n} on ${id}: ${outcome}; ${approvals} must approve it`,
  );
  return 0;
}

export async function approveOutcome(
  id: string,
  options: Options & { outcome?: string },
): Promise<number> {
  const body = options.outcome === undefined ? {} : { outcome: options.outcome };
  const path = `/api/operations/${encodeURIComponent(id)}/approve`;
  const text = await callDaemon(options, { method: 'POST', path, body });
  printLine(options.json ? text : `${id} is ${JSON.parse(text).state}`);
  return 0;
}
