/** Definitions of the commands that export data, verify the ledger and explain a wallet. */
import { type Command, Option } from 'commander';
import { exit, withExamples, withRemote } from '../options.ts';

export function addVerify(program: Command): void {
  withExamples(
    program
      .command('verify')
      .description(
        'verify the hash chain of the ledger; exits 0 if all rows are as they were recorded',
      )
      .option('--file <path>', 'verify this export instead of the database')
      .option('--anchor <head:count...>', 'compare with heads that were kept elsewhere')
      .option('--json', 'print JSON'),
    'npx tallyhook verify',
    'npx tallyhook verify --anchor 5f1c…:1042 --json',
    'npx tallyhook verify --file ledger.jsonl --anchor 5f1c…:1042',
  ).action(async (options) => exit((await import('./ledger.ts')).runVerify(options)));
}

export function addExplain(program: Command): void {
  withExamples(
    program
      .command('explain')
      .description('explain the balance of a wallet: its movements, last observation and drifts')
      .argument('<addr>', 'address of the wallet')
      .option('--from <instant>', 'start of the period, RFC 3339; by default 30 days ago')
      .option('--to <instant>', 'end of the period, RFC 3339; by default now')
      .option('--json', 'print JSON'),
    'npx tallyhook explain 0x…',
    'npx tallyhook explain 0x… --from 2026-11-01T00:00:00+09:00 --to 2026-12-01T00:00:00+09:00',
  ).action(async (addr, options) => exit((await import('./explain.ts')).runExplain(addr, options)));
}

export function addExport(program: Command): void {
  const group = program
    .command('export')
    .description('export operations, the lines of a report, or the ledger with its hash chain');
  const examples = [
    'npx tallyhook export operations --since 2026-11-01T00:00:00Z --kind give --out gives.csv',
    'npx tallyhook export operations --format ndjson --state undecided',
  ];
  withExamples(group, ...examples);
  withExamples(
    withRemote(group.command('operations'), 'key with the scope read')
      .description('export operations, newest first; CSV has the columns of finance_v1.operations')
      .option('--since <instant>', 'recorded at or after, RFC 3339')
      .option('--until <instant>', 'recorded before, RFC 3339; by default the present')
      .option('--state <state>', 'only operations in this state, such as undecided')
      .option('--kind <kind>', 'only operations of this kind, such as give')
      .addOption(
        new Option('--format <format>', 'format').choices(['csv', 'ndjson', 'json']).default('csv'),
      )
      .option('--out <file>', 'write to this file instead of standard output'),
    ...examples,
  ).action(async (options) => exit((await import('./operations.ts')).exportOperations(options)));
  addLines(group);
  withExamples(
    group
      .command('ledger')
      .description('export the ledger of the database')
      .addOption(
        new Option(
          '--format <format>',
          'jsonl: lines of JSON with the hash chain; hledger: a journal',
        )
          .choices(['jsonl', 'hledger'])
          .default('jsonl'),
      )
      .requiredOption('--out <file>', 'file to write'),
    'npx tallyhook export ledger --out ledger.jsonl',
    'npx tallyhook export ledger --format hledger --out ledger.journal\n' +
      '  hledger -f ledger.journal check',
  ).action(async (options) => exit((await import('./ledger.ts')).exportLedgerTo(options)));
}

function addLines(group: Command): void {
  withExamples(
    withRemote(group.command('lines'), 'key with the scope read')
      .description('export the transactions behind the totals of a report')
      .argument('<report>', 'id of the report')
      .option('--kind <kind>', 'only those of a kind, such as give')
      .option('--reason <reason>', 'only those with this reason; empty: those without one')
      .option('--account <account>', 'only those of an account, such as operator:7')
      .addOption(
        new Option('--format <format>', 'format').choices(['csv', 'ndjson', 'json']).default('csv'),
      )
      .option('--out <file>', 'write to this file instead of standard output'),
    'npx tallyhook export lines rep_… --kind give --reason welcome --out welcome.csv',
  ).action(async (report, options) =>
    exit((await import('./operations.ts')).exportLines(report, options)),
  );
}
