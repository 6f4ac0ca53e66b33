/** `tallyhook decisions`: undecided operations, whose outcome two owners decide. */
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/log.ts';
import { callDaemon, listAll, type Remote } from '../remote.ts';

type Options = Remote & { json?: true };

interface Operation {
  id: string;
  kind: string;
  amount: string | null;
  from_addr: string | null;
  to_addr: string | null;
  recorded_at: string;
}

export async function listUndecided(options: Options): Promise<number> {
  const data = await listAll<Operation>(options, '/api/operations?state=undecided');
  if (options.json) printLine(jsonText({ data }));
  else if (data.length === 0) printLine('No operation is undecided');
  for (const { id, kind, amount, ...operation } of options.json ? [] : data) {
    const { from_addr: from, to_addr: to, recorded_at: at } = operation;
    printLine(`${at}  ${id}  ${kind}  ${amount ?? '-'}  from ${from ?? '-'}  to ${to ?? '-'}`);
  }
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
  const { n, approvals_needed: needed } = JSON.parse(text);
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
