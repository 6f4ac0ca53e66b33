/** `tallyhook drifts`: lists drifts, and assigns, proposes and approves through the daemon. */
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/log.ts';
import { drift, type driftDetail, type driftSummary } from '../../resources/ledger/drift.ts';
import { differenceText, sentenceOf } from '../../resources/ledger/drift-words.ts';
import type { Shown } from '../../resources/resource.ts';
import type { driftResults } from '../../resources/results.ts';
import { callDaemon, listAll, type Remote } from '../api/remote.ts';
import { lineOf } from '../api/table.ts';

type Drift = Shown<typeof drift>;
type Summary = Shown<typeof driftSummary>;

type Options = Remote & { json?: true };
export type Filter = { state?: string; cause?: string; addr?: string; assignee?: string };

/** The drifts of these ids on the line of a command, or all unclosed ones of a filter. */
type Chosen = Options & { cause?: string };

const BULK_MAX = 200;

export async function showDrifts(options: Options & Filter): Promise<number> {
  const data = await listDrifts(options, options);
  if (options.json) printLine(jsonText({ data }));
  else if (data.length === 0) printLine('There is no such drift');
  for (const drift of options.json ? [] : data) printLine(driftLine(drift));
  return 0;
}

export async function showDrift(id: string, options: Options): Promise<number> {
  const text = await callDaemon(options, { method: 'GET', path: `/api/drifts/${id}` });
  if (options.json) {
    printLine(text);
    return 0;
  }
  const found = JSON.parse(text) as Shown<typeof driftDetail>;
  printLine(`${sentenceOf(found)}\n${driftLine(found)}`);
  if (found.counterpart) printLine(`One transfer made elsewhere, with ${found.counterpart}`);
  for (const { at, action, by, detail } of found.actions)
    printLine(`  ${at}  ${action}  ${by}  ${jsonText(detail)}`);
  if (found.closed_at === null && found.prepared) printLine(`Next: ${nextOf(found)}`);
  return 0;
}

export async function showSummary(options: Options): Promise<number> {
  const text = await callDaemon(options, { method: 'GET', path: '/api/drifts/summary' });
  if (options.json) {
    printLine(text);
    return 0;
  }
  const { by_cause, by_age, ended } = JSON.parse(text) as Summary;
  const line = (
    name: string,
    { drifts, findings, up, down }: Omit<Summary['by_age'][0], 'order' | 'bucket'>,
  ) =>
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

/** Acts on many drifts, a request for every 200. Returns 1 when one of them was refused. */
async function act(name: string, named: string[], options: Chosen, body: object): Promise<number> {
  const ids = await chosen(name, named, options);
  const data: Shown<typeof driftResults>['data'] = [];
  for (let from = 0; from < ids.length; from += BULK_MAX) {
    const part = { ids: ids.slice(from, from + BULK_MAX), ...body };
    const path = `/api/drifts/${name}`;
    const text = await callDaemon(options, { method: 'POST', path, body: part });
    data.push(...(JSON.parse(text) as Shown<typeof driftResults>).data);
  }
  if (options.json) printLine(jsonText({ data }));
  else if (data.length === 0) printLine('There is no such drift');
  for (const { id, drift, problem } of options.json ? [] : data)
    printLine(drift ? driftLine(drift) : `${id}  refused  ${problem?.detail ?? problem?.title}`);
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

function driftLine(row: Drift): string {
  const line = lineOf(drift, row, { amount: differenceText(row) });
  return row.proposal ? `${line}  ${proposalText(row.proposal)}` : line;
}

function proposalText({
  kind,
  operation_id,
  reason,
  ...made
}: NonNullable<Drift['proposal']>): string {
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
