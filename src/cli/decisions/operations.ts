/** `tallyhook decisions`: undecided operations, whose outcome two owners decide. */
import type { Command } from 'commander';
import { printLine } from '../../kernel/telemetry/log.ts';
import type { decision } from '../../resources/operations/decision.ts';
import { operation } from '../../resources/operations/operation.ts';
import { columnsOf, type Shown } from '../../resources/resource.ts';
import { callDaemon, listAll, type Remote } from '../api/remote.ts';
import { printTable } from '../api/table.ts';
import { exit, withExamples, withRemote } from '../options.ts';

const READ = 'key with the scope read';
const DECIDE = 'key with the scope decide';

export function addDecisions(program: Command): void {
  const group = program
    .command('decisions')
    .description('outcomes of operations that the evidence does not decide');
  const propose = 'npx tallyhook decisions propose op_… executed --reason "receipt 17"';
  const approve = 'npx tallyhook decisions approve op_…';
  withExamples(group, 'npx tallyhook decisions', propose, approve);
  withExamples(
    withRemote(group.command('list', { isDefault: true }), READ)
      .description('list undecided operations, newest first')
      .option('--json', 'print JSON'),
    'npx tallyhook decisions --json',
  ).action((options) => exit(listUndecided(options)));
  withExamples(
    withRemote(group.command('propose'), DECIDE)
      .description('propose the outcome of an operation; another owner must approve it')
      .argument('<id>', 'id of the operation')
      .argument('<outcome>', 'executed or not_executed')
      .requiredOption('--reason <text>', 'reason, stored with the proposal')
      .option('--json', 'print JSON'),
    propose,
  ).action((id, outcome, options) => exit(proposeOutcome(id, outcome, options)));
  withExamples(
    withRemote(group.command('approve'), DECIDE)
      .description('approve the newest proposal of another owner')
      .argument('<id>', 'id of the operation')
      .option('--outcome <outcome>', 'only if this is proposed: executed or not_executed')
      .option('--json', 'print JSON'),
    approve,
  ).action((id, options) => exit(approveOutcome(id, options)));
}

type Options = Remote & { json?: true };
type Operation = Shown<typeof operation>;

async function listUndecided(options: Options): Promise<number> {
  const data = await listAll<Operation>(options, '/api/operations?state=undecided');
  const columns = columnsOf(operation).map(({ name }) => name);
  printTable(columns, data, { json: options.json, none: 'No operation is undecided' });
  return 0;
}

async function proposeOutcome(
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

async function approveOutcome(
  id: string,
  options: Options & { outcome?: string },
): Promise<number> {
  const body = { outcome: options.outcome };
  const path = `/api/operations/${encodeURIComponent(id)}/approve`;
  const text = await callDaemon(options, { method: 'POST', path, body });
  printLine(options.json ? text : `${id} is ${JSON.parse(text).state}`);
  return 0;
}
