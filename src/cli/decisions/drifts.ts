/** `tallyhook drifts`: lists drifts, and assigns, proposes and approves through the daemon. */
import { type Command, Option } from 'commander';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import {
  CAUSES,
  drift,
  type driftDetail,
  type driftSummary,
} from '../../resources/ledger/drift.ts';
import { differenceText, operatorTexts, sentenceOf } from '../../resources/ledger/drift-words.ts';
import { columnsOf, type Shown } from '../../resources/resource.ts';
import type { driftResults } from '../../resources/results.ts';
import { callDaemon, listAll, type Remote, withQuery } from '../api/remote.ts';
import { lineOf, printRows, printTable } from '../api/table.ts';
import { exit, withExamples, withRemote } from '../options.ts';

const READ = 'key with the scope read';
const BY_CAUSE = 'key with the scope decide, and with --cause also read';

export function addDrifts(program: Command): void {
  const group = program
    .command('drifts')
    .description('differences that no operation explains: list, assign, propose, approve');
  const propose = 'npx tallyhook drifts propose drf_… --proposal book --reason "paid in cash"';
  const approve = 'npx tallyhook drifts approve drf_…';
  withExamples(group, 'npx tallyhook drifts', propose, approve);
  addDriftQueries(group);
  withExamples(
    withRemote(group.command('assign'), BY_CAUSE)
      .description('assign drifts to a person')
      .argument('[id...]', 'ids of drifts')
      .addOption(causeOption('all unclosed drifts of this probable cause'))
      .option('--to <owner>', 'who works on them')
      .option('--unassign', 'no one works on them')
      .option('--json', 'print JSON'),
    'npx tallyhook drifts assign drf_… drf_… --to ann',
  ).action((ids, options) => exit(assignDrifts(ids, options)));
  withExamples(
    withRemote(group.command('propose'), BY_CAUSE)
      .description('propose how drifts end; another owner must approve it')
      .argument('[id...]', 'ids of drifts')
      .addOption(causeOption('all open drifts of this probable cause'))
      .addOption(proposalOption('book, link to an operation, or dismiss; else the prepared one'))
      .option('--operation <id>', 'the operation to link to')
      .requiredOption('--reason <text>', 'reason, stored with the proposal')
      .option('--json', 'print JSON'),
    propose,
    'npx tallyhook drifts propose drf_… --proposal link --operation op_… --reason "receipt 17"',
    'npx tallyhook drifts propose --cause made_elsewhere --reason "campaign of the 12th"',
  ).action((ids, options) => exit(proposeDrifts(ids, options)));
  withExamples(
    withRemote(group.command('approve'), BY_CAUSE)
      .description('approve the newest proposals of another owner')
      .argument('[id...]', 'ids of drifts')
      .addOption(causeOption('all proposed drifts of this probable cause'))
      .addOption(proposalOption('only if this is proposed'))
      .option('--json', 'print JSON'),
    approve,
    'npx tallyhook drifts approve --cause made_elsewhere --proposal book',
  ).action((ids, options) => exit(approveDrifts(ids, options)));
}

function addDriftQueries(group: Command): void {
  withExamples(
    withRemote(group.command('list', { isDefault: true }), READ)
      .description('list drifts, newest first; by default those that are not closed')
      .option('--state <state>', 'unclosed, open, proposed, booked, …', 'unclosed')
      .addOption(causeOption('only of this probable cause'))
      .option('--addr <addr>', 'only of this wallet')
      .option('--assignee <owner>', 'only of this person')
      .option('--json', 'print JSON'),
    'npx tallyhook drifts --cause lost_operation',
    'npx tallyhook drifts list --state booked --json',
  ).action((options) => exit(showDrifts(options)));
  withExamples(
    withRemote(group.command('show'), READ)
      .description('show a drift in words, its history, and the prepared proposal')
      .argument('<id>', 'id of the drift')
      .option('--json', 'print JSON'),
    'npx tallyhook drifts show drf_…',
  ).action((id, options) => exit(showDrift(id, options)));
  withExamples(
    withRemote(group.command('summary'), READ)
      .description('sum unclosed drifts by probable cause and by age')
      .option('--json', 'print JSON'),
    'npx tallyhook drifts summary',
  ).action((options) => exit(showSummary(options)));
}

function causeOption(description: string): Option {
  return new Option('--cause <cause>', description).choices(CAUSES);
}

function proposalOption(description: string): Option {
  return new Option('--proposal <kind>', description).choices(['book', 'link', 'dismiss']);
}

type Drift = Shown<typeof drift>;
type Summary = Shown<typeof driftSummary>;

type Options = Remote & { json?: true };
type Filter = { state?: string; cause?: string; addr?: string; assignee?: string };

/** The drifts of these ids on the line of a command, or all unclosed ones of a filter. */
type Chosen = Options & { cause?: string };

const BULK_MAX = 200;
const NONE = 'There is no such drift';

async function showDrifts(options: Options & Filter): Promise<number> {
  const data = await listDrifts(options, options);
  const columns = [...columnsOf(drift).map(({ name }) => name), 'proposal'];
  const rows = options.json ? data : data.map((row) => ({ ...row, ...textsOf(row) }));
  printTable(columns, rows, { json: options.json, none: NONE });
  return 0;
}

async function showDrift(id: string, options: Options): Promise<number> {
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
  if (found.closed_at === null) for (const text of operatorTexts(found)) printLine(text);
  if (found.closed_at === null && found.prepared) printLine(`Next: ${nextOf(found)}`);
  return 0;
}

async function showSummary(options: Options): Promise<number> {
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

async function assignDrifts(
  ids: string[],
  options: Chosen & { to?: string; unassign?: true },
): Promise<number> {
  if ((options.to === undefined) === (options.unassign === undefined))
    throw new Failure('bad_setting', 'name either --to <owner> or --unassign');
  return act('assign', ids, options, { assignee: options.to ?? null });
}

async function proposeDrifts(
  ids: string[],
  options: Chosen & { reason: string; proposal?: string; operation?: string },
): Promise<number> {
  const { reason, proposal, operation } = options;
  return act('propose', ids, options, { reason, proposal, operation_id: operation });
}

async function approveDrifts(
  ids: string[],
  options: Chosen & { proposal?: string },
): Promise<number> {
  return act('approve', ids, options, { proposal: options.proposal });
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
  printRows(data, {
    json: options.json,
    none: NONE,
    line: ({ id, drift, problem }) =>
      drift ? driftLine(drift) : `${id}  refused  ${problem?.detail ?? problem?.title}`,
  });
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
  return listAll(remote, withQuery('/api/drifts', { state, cause, addr, assignee }));
}

/** Columns of a drift that say more than their value. */
function textsOf(row: Drift) {
  return { amount: differenceText(row), proposal: row.proposal && proposalText(row.proposal) };
}

function driftLine(row: Drift): string {
  const { amount, proposal } = textsOf(row);
  const line = lineOf(drift, row, { amount });
  return proposal ? `${line}  ${proposal}` : line;
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
