/** The commands for what people decide: drifts, outcomes of operations, periods, quarantine. */
import { type Command, Option } from 'commander';
import { CAUSES } from '../../resources/ledger/drift.ts';
import { exit, withExamples, withRemote } from '../options.ts';

const READ = 'key with the scope read';
const DECIDE = 'key with the scope decide';
const BY_CAUSE = 'key with the scope decide, and with --cause also read';

export function addDrifts(program: Command): void {
  const group = program
    .command('drifts')
    .description('differences that no operation explains: list, assign, propose, approve');
  const propose = 'npx tallyhook drifts propose drf_… --proposal book --reason "paid in cash"';
  const approve = 'npx tallyhook drifts approve drf_…';
  withExamples(group, 'npx tallyhook drifts', propose, approve);
  addDriftQueries(group);
  const json = ['--json', 'print JSON'] as const;
  withExamples(
    withRemote(group.command('assign'), BY_CAUSE)
      .description('assign drifts to a person')
      .argument('[id...]', 'ids of drifts')
      .addOption(causeOption('all unclosed drifts of this probable cause'))
      .option('--to <owner>', 'who works on them')
      .option('--unassign', 'no one works on them')
      .option(...json),
    'npx tallyhook drifts assign drf_… drf_… --to ann',
  ).action(async (ids, options) => exit((await import('./drifts.ts')).assignDrifts(ids, options)));
  withExamples(
    withRemote(group.command('propose'), BY_CAUSE)
      .description('propose how drifts end; another owner must approve it')
      .argument('[id...]', 'ids of drifts')
      .addOption(causeOption('all open drifts of this probable cause'))
      .addOption(proposalOption('book, link to an operation, or dismiss; else the prepared one'))
      .option('--operation <id>', 'the operation to link to')
      .requiredOption('--reason <text>', 'reason, stored with the proposal')
      .option(...json),
    propose,
    'npx tallyhook drifts propose drf_… --proposal link --operation op_… --reason "receipt 17"',
    'npx tallyhook drifts propose --cause made_elsewhere --reason "campaign of the 12th"',
  ).action(async (ids, options) => exit((await import('./drifts.ts')).proposeDrifts(ids, options)));
  withExamples(
    withRemote(group.command('approve'), BY_CAUSE)
      .description('approve the newest proposals of another owner')
      .argument('[id...]', 'ids of drifts')
      .addOption(causeOption('all proposed drifts of this probable cause'))
      .addOption(proposalOption('only if this is proposed'))
      .option(...json),
    approve,
    'npx tallyhook drifts approve --cause made_elsewhere --proposal book',
  ).action(async (ids, options) => exit((await import('./drifts.ts')).approveDrifts(ids, options)));
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
  ).action(async (options) => exit((await import('./drifts.ts')).showDrifts(options)));
  withExamples(
    withRemote(group.command('show'), READ)
      .description('show a drift in words, its history, and the prepared proposal')
      .argument('<id>', 'id of the drift')
      .option('--json', 'print JSON'),
    'npx tallyhook drifts show drf_…',
  ).action(async (id, options) => exit((await import('./drifts.ts')).showDrift(id, options)));
  withExamples(
    withRemote(group.command('summary'), READ)
      .description('sum unclosed drifts by probable cause and by age')
      .option('--json', 'print JSON'),
    'npx tallyhook drifts summary',
  ).action(async (options) => exit((await import('./drifts.ts')).showSummary(options)));
}

function causeOption(description: string): Option {
  return new Option('--cause <cause>', description).choices(CAUSES);
}

function proposalOption(description: string): Option {
  return new Option('--proposal <kind>', description).choices(['book', 'link', 'dismiss']);
}

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
  ).action(async (options) => exit((await import('./operations.ts')).listUndecided(options)));
  withExamples(
    withRemote(group.command('propose'), DECIDE)
      .description('propose the outcome of an operation; another owner must approve it')
      .argument('<id>', 'id of the operation')
      .argument('<outcome>', 'executed or not_executed')
      .requiredOption('--reason <text>', 'reason, stored with the proposal')
      .option('--json', 'print JSON'),
    propose,
  ).action(async (id, outcome, options) =>
    exit((await import('./operations.ts')).proposeOutcome(id, outcome, options)),
  );
  withExamples(
    withRemote(group.command('approve'), DECIDE)
      .description('approve the newest proposal of another owner')
      .argument('<id>', 'id of the operation')
      .option('--outcome <outcome>', 'only if this is proposed: executed or not_executed')
      .option('--json', 'print JSON'),
    approve,
  ).action(async (id, options) =>
    exit((await import('./operations.ts')).approveOutcome(id, options)),
  );
}

export function addPeriods(program: Command): void {
  const group = program
    .command('periods')
    .description('periods of the books: list, close with a report, sign, reopen');
  const check = 'npx tallyhook periods close --to 2026-12-01 --dry-run';
  const close =
    'npx tallyhook periods close --to 2026-12-01 --sign-off "drf_…=refund is on its way"';
  const sign = 'npx tallyhook periods sign per_…';
  const reopen = 'npx tallyhook periods reopen per_… --reason "receipt 17 was missing"';
  withExamples(group, 'npx tallyhook periods', check, close, sign, reopen);
  withExamples(
    withRemote(group.command('list', { isDefault: true }), READ)
      .description('list closes of periods, newest first, and since when the open one runs')
      .option('--json', 'print JSON'),
    'npx tallyhook periods --json',
  ).action(async (options) => exit((await import('./periods.ts')).listPeriods(options)));
  withExamples(
    withRemote(group.command('close'), DECIDE)
      .description('close the period that begins where the last closed one ends')
      .requiredOption(
        '--to <end>',
        'end, excluded: an instant, or a day in the zone of the reports',
      )
      .option('--from <start>', 'start of the first period')
      .option('--sign-off <subject=reason...>', 'open items of the report that may stay open')
      .option('--reason <text>', 'reason, stored with the close')
      .option('--dry-run', 'only print what prevents the close; exits 1 if something does')
      .option('--json', 'print JSON'),
    'npx tallyhook periods close --from 2026-11-01 --to 2026-12-01',
    check,
    close,
  ).action(async (options) => exit((await import('./periods.ts')).closePeriod(options)));
  withExamples(
    withRemote(group.command('sign'), DECIDE)
      .description('sign a closed period; another owner than the one that closed it')
      .argument('<id>', 'id of the period')
      .option('--json', 'print JSON'),
    sign,
  ).action(async (id, options) => exit((await import('./periods.ts')).signPeriod(id, options)));
  withExamples(
    withRemote(group.command('reopen'), DECIDE)
      .description('reopen the newest closed or signed period')
      .argument('<id>', 'id of the period')
      .requiredOption('--reason <text>', 'reason, stored with the reopening')
      .option('--json', 'print JSON'),
    reopen,
  ).action(async (id, options) => exit((await import('./periods.ts')).reopenPeriod(id, options)));
}

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
  ).action(async (options) => exit((await import('./quarantine.ts')).listQuarantine(options)));
  withExamples(
    withRemote(group.command('release'), 'key with the scope admin')
      .description('try a posting or an observation again, even with the number of another app')
      .argument('<id>', 'id of an operation or posting request, or target of an observation')
      .requiredOption('--reason <text>', 'reason, stored with the release')
      .option('--json', 'print JSON'),
    release,
    'npx tallyhook quarantine release wallet:0x… --reason "the settings were wrong"',
  ).action(async (id, options) =>
    exit((await import('./quarantine.ts')).releaseQuarantine(id, options)),
  );
}
