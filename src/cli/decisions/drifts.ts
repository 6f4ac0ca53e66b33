/** `tallyhook drifts`: lists drifts, and assigns, proposes and approves through the daemon. */
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/log.ts';
import { changeText, sentenceOf } from '../../reports/reports.ts';
import { callDaemon, listAll, type Remote } from '../remote.ts';

interface Proposal {
  kind: string;
  operation_id: string | null;
  reason: string;
  proposed_by: string;
  approvals_needed: number;
  approvals: { owner: string }[];
}

/** A drift as the API shows it. */
interface Drift {
  id: string;
  addr: string;
  amount: string | null;
  amount_min: string;
  amount_max: string;
  state: string;
  suspected_at: string;
  opened_at: string;
  closed_at: string | null;
  window_from: string | null;
  window_to: string;
  cause: string;
  prepared: { drift_id: string; proposal: string; operation_id: string | null } | null;
  counterpart: string | null;
  assignee: string | null;
  proposal: Proposal | null;
}

interface Sums {
  drifts: number;
  findings: number;
  up: string;
  down: string;
}

type Options = Remote & { json?: true };
export type Filter = { state?: string; cause?: string; addr?: string; assignee?: string };

/** The drifts of these ids on the line of a command, or all unclosed ones of a filter. */
type Chosen = Options & { cause?: string };

const BULK_MAX = 200;

export async function showDrifts(options: Options & Filter): Promise<number> {
  const data = await listDrifts(options, options);
  if (options.json) printLine(jsonText({ data }));
  else if (data.length === 0) printLine('There is no such drift');
  for (const drift of options.json ? [] : data) printLine(lineOf(drift));
  return 0;
}

export async function showDrift(id: string, options: Options): Promise<number> {
  const text = await callDaemon(options, { method: 'GET', path: `/api/drifts/${id}` });
  if (options.json) {
    printLine(text);
    return 0;
  }
  const drift = JSON.parse(text) as Drift & {
    actions: { at: string; action: string; by: string; detail: unknown }[];
  };
  printLine(`${sentenceOf(drift)}\n${lineOf(drift)}`);
  if (drift.counterpart) printLine(`One transfer made elsewhere, with ${drift.counterpart}`);
  for (const { at, action, by, detail } of drift.actions)
    printLine(`  ${at}  ${action}  ${by}  ${jsonText(detail)}`);
  if (drift.closed_at === null && drift.prepared) printLine(`Next: ${nextOf(drift)}`);
  return 0;
}

export async function showSummary(options: Options): Promise<number> {
  const text = await callDaemon(options, { method: 'GET', path: '/api/drifts/summary' });
  if (options.json) {
    printLine(text);
    return 0;
  }
  const { by_cause, by_age, ended } = JSON.parse(text) as {
    by_cause: (Sums & { cause: string })[];
    by_age: (Sums & { bucket: string })[];
    ended: { drifts: number; median_s: number | null };
  };
  const line = (name: string, { drifts, findings, up, down }: Sums) =>
    printLine(`${name.padEnd(15)} ${drifts} drifts, ${findings} findings, up ${up}, down ${down}`);
  for (const { cause, ...sums } of by_cause) line(cause, sums);
  for (const { bucket, ...sums } of by_age) line(bucket, sums);
  const median = ended.median_s === null ? '' : `, after a median of ${ended.median_s} s`;
  printLine(`ended in 30 days: ${ended.drifts}${median}`);
  return 0;
}

export async function assignDrifts(
  ids: string[],
  options: Chosen & { to?: string; unassign?: true },
): Promise<number> {
  if ((options.to === undefined) === (options.unassign === undefined))
    throw new Failure('bad_setting', 'name either --to <owner> or --unassign');
  return act('assign', ids, options, { assignee: options.to ?? null });
}

export async function proposeDrifts(
  ids: string[],
  options: Chosen & { reason: string; proposal?: string; operation?: string },
): Promise<number> {
  const { reason, proposal, operation } = options;
  const named = {
    ...(proposal === undefined ? {} : { proposal }),
    ...(operation === undefined ? {} : { operation_id: operation }),
  };
  return act('propose', ids, options, { reason, ...named });
}

export async function approveDrifts(
  ids: string[],
  options: Chosen & { proposal?: string },
): Promise<number> {
  const { proposal } = options;
  return act('approve', ids, options, proposal === undefined ? {} : { proposal });
}

/** What became of one drift of many. */
interface Result {
  id: string;
  drift: Drift | null;
  problem: { detail?: string; title: string } | null;
}

/** Acts on many drifts, a request for every 200. Returns 1 when one of them was refused. */
async function act(name: string, named: string[], options: Chosen, body: object): Promise<number> {
  const ids = await chosen(name, named, options);
  const data: Result[] = [];
  for (let from = 0; from < ids.length; from += BULK_MAX) {
    const part = { ids: ids.slice(from, from + BULK_MAX), ...body };
    const path = `/api/drifts/${name}`;
    const text = await callDaemon(options, { method: 'POST', path, body: part });
    data.push(...(JSON.parse(text) as { data: Result[] }).data);
  }
  if (options.json) printLine(jsonText({ data }));
  else if (data.length === 0) printLine('There is no such drift');
  for (const { id, drift, problem } of options.json ? [] : data)
    printLine(drift ? lineOf(drift) : `${id}  refused  ${problem?.detail ?? problem?.title}`);
  return data.some(({ problem }) => problem !== null) ? 1 : 0;
}

async function chosen(name: string, ids: string[], options: Chosen): Promise<string[]> {
  const { cause } = options;
  if ((ids.length === 0) === (cause === undefined))
    throw new Failure('bad_setting', 'name either the ids of drifts or --cause <cause>');
  if (cause === undefined) return ids;
  const state = { assign: 'unclosed', propose: 'open', approve: 'proposed' }[name] ?? 'unclosed';
  return (await listDrifts(options, { cause, state })).map(({ id }) => id);
}

function listDrifts(remote: Remote, { state, cause, addr, assignee }: Filter): Promise<Drift[]> {
  const given = Object.entries({ state, cause, addr, assignee }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as [string, string]],
  );
  return listAll<Drift>(remote, `/api/drifts?${new URLSearchParams(given)}`);
}

function lineOf(drift: Drift): string {
  const { id, addr, state, cause, assignee, proposal } = drift;
  const parts = [drift.opened_at, id, addr, changeText(drift), state, cause, assignee ?? '-'];
  return [...parts, ...(proposal ? [proposalText(proposal)] : [])].join('  ');
}

function proposalText({ kind, operation_id, reason, ...made }: Proposal): string {
  const link = operation_id ? ` ${operation_id}` : '';
  const approved = made.approvals.map(({ owner }) => owner).join(', ') || 'no one yet';
  return `${kind}${link} by ${made.proposed_by} (${reason}), approved by ${approved}`;
}

function nextOf({ prepared }: Drift): string {
  if (!prepared) return '';
  const link = prepared.operation_id ? ` --operation ${prepared.operation_id}` : '';
  const proposal = `--proposal ${prepared.proposal}${link}`;
  return `npx tallyhook drifts propose ${prepared.drift_id} ${proposal} --reason "…"`;
}
