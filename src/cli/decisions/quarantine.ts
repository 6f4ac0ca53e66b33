/** `tallyhook quarantine`: lists what waits for a person, and releases it, through the daemon. */
import type { Command } from 'commander';
import { isId } from '../../kernel/ids.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import { quarantined, type release } from '../../resources/operations/quarantine.ts';
import { columnsOf, type Shown } from '../../resources/resource.ts';
import { callDaemon, listAll, type Remote } from '../api/remote.ts';
import { printTable } from '../api/table.ts';
import { exit, withExamples, withRemote } from '../options.ts';

export function addQuarantine(program: Command): void {
  const group = program
    .command('quarantine')
    .description('list and release postings and observations that wait for a person');
  const release = 'npx tallyhook quarantine release op_… --reason "the other app confirmed it"';
  withExamples(group, 'npx tallyhook quarantine', release);
  withExamples(
    withRemote(group.command('list', { isDefault: true }), 'key with the scope read')
      .description('list what is quarantined, newest first, with the reasons')
      .option('--json', 'print JSON'),
    'npx tallyhook quarantine --json',
  ).action((options) => exit(listQuarantine(options)));
  withExamples(
    withRemote(group.command('release'), 'key with the scope admin')
      .description('try a posting or an observation again, even with the number of another app')
      .argument('<id>', 'id of an operation or posting request, or target of an observation')
      .requiredOption('--reason <text>', 'reason, stored with the release')
      .option('--json', 'print JSON'),
    release,
    'npx tallyhook quarantine release wallet:0x… --reason "the settings were wrong"',
  ).action((id, options) => exit(releaseQuarantine(id, options)));
}

type Quarantined = Shown<typeof quarantined>;

async function listQuarantine(options: Remote & { json?: true }): Promise<number> {
  const data = await listAll<Quarantined>(options, '/api/quarantine');
  const columns = columnsOf(quarantined).map(({ name }) => name);
  printTable(columns, data, { json: options.json, none: 'Nothing is quarantined' });
  return 0;
}

async function releaseQuarantine(
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
