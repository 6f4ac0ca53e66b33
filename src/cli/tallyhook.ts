#!/usr/bin/env node
/**
 * Commands for people. Every command has --help with an example, and --json where it prints data.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { runDaemon } from '../daemon/daemon.ts';
import { Failure } from '../kernel/errors.ts';
import { runDemo } from './demo/demo.ts';
import { runDoctor } from './doctor.ts';
import { exportOperations, FORMATS } from './export.ts';
import { orderFreeze } from './freeze.ts';
import { createKey, listKeys, revokeKey } from './keys.ts';
import { runMigrate } from './migrate.ts';
import { makeReport } from './report.ts';
import { runSandbox } from './sandbox.ts';
import { addWatch } from './watch.ts';

const program = new Command('tallyhook')
  .description('The daemon between an app and its token, NFT and wallet service.')
  .showSuggestionAfterError()
  .showHelpAfterError('(--help shows what there is)');

const example = (command: Command, text: string) =>
  command.addHelpText('after', `\nExample:\n  ${text}`);
const exits = (work: Promise<number>) => work.then((code) => process.exit(code));

example(
  program.command('start').description('run the daemon (npm start does the same)'),
  'PORT=8080 npx tallyhook start',
).action(() => exits(runDaemon()));

example(
  program
    .command('demo')
    .description('a walk-through with data of its own that ends; exit code 0 if everything held')
    .option('--contract <id>', 'NFT contract of the service')
    .option('--operator <no>', 'operator wallet that pays')
    .option('--wallet <addr...>', 'one or two wallet addresses'),
  'npx tallyhook demo --contract 1 --operator 1 --wallet 0x… 0x…',
).action((options) => exits(runDemo(options)));

example(
  program
    .command('sandbox')
    .description('run the service itself, simulated, alone')
    .option('--port <port>', 'port to listen on; 0 picks a free one', portOf, 4000)
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--seed <seed>', 'the same seed gives the same world', wholeOf, 1)
    .option('--client-id <id>', 'client id', 'sandbox-client')
    .option('--client-secret <secret>', 'client secret', 'sandbox-secret')
    .option('--data-dir <path>', 'keep the world in its folder sandbox; without it, in memory')
    .option('--live', 'a little traffic of its own')
    .option('--json', 'print the ready line as JSON'),
  'npx tallyhook sandbox --port 4000 --seed 1\n' +
    '  npx tallyhook sandbox --port 0 --json --data-dir ./data --live\n' +
    '  curl -u sandbox-client:sandbox-secret -d grant_type=client_credentials \\\n' +
    '    http://127.0.0.1:4000/v1/oauth/token\n' +
    '  curl -H \'content-type: application/json\' -d \'{"kind":"lost_answer"}\' \\\n' +
    '    http://127.0.0.1:4000/_sandbox/faults',
).action((options) => exits(runSandbox(options)));

example(
  program
    .command('migrate')
    .description('bring the database to the schema of this program')
    .option('--dry-run', 'only say what would be applied')
    .option('--json', 'print JSON'),
  'DATABASE_URL=postgres://… npx tallyhook migrate --dry-run',
).action((options) => exits(runMigrate(options)));

example(
  program
    .command('doctor')
    .description('check configuration, database, guards and the service')
    .option('--json', 'print JSON'),
  'npx tallyhook doctor',
).action((options) => exits(runDoctor(options)));

example(
  program
    .command('report')
    .description('make a reconciliation report on the running daemon')
    .requiredOption('--from <instant>', 'beginning of the period, RFC 3339')
    .requiredOption('--to <instant>', 'end of the period, RFC 3339')
    .option('--format <format>', 'json, csv or html', 'json')
    .addOption(new Option('--url <url>', 'the daemon').env('TALLYHOOK_URL'))
    .addOption(new Option('--key <key>', 'a key with manage and read').env('TALLYHOOK_KEY')),
  'npx tallyhook report --from 2026-11-01T00:00:00Z --to 2026-11-02T00:00:00Z --format html',
).action((options) => exits(makeReport(options)));

example(
  program
    .command('watch')
    .description('put a wallet, contract or token under observation')
    .argument('<kind>', 'wallet, contract or token')
    .argument('<name...>', 'an address; a contract id; a contract id and a token id')
    .option('--json', 'print JSON')
    .addOption(new Option('--url <url>', 'the daemon').env('TALLYHOOK_URL'))
    .addOption(new Option('--key <key>', 'a key with manage and read').env('TALLYHOOK_KEY')),
  'npx tallyhook watch wallet 0x…',
).action((kind, names, options) => exits(addWatch(kind, names, options)));

for (const [name, description, reason] of [
  ['freeze', 'stop all writes at once, on every daemon', 'the operator key leaked'],
  ['unfreeze', 'release all writes', 'the key is replaced'],
] as const)
  example(
    remote(program.command(name).description(description), 'a key with admin')
      .requiredOption('--reason <text>', 'why; it is kept')
      .option('--json', 'print JSON'),
    `npx tallyhook ${name} --reason "${reason}"`,
  ).action((options) => exits(orderFreeze(name, options)));

const exporting = program.command('export').description('take data out of the running daemon');
example(
  remote(exporting.command('operations'), 'a key with read')
    .description('every write, the newest first, as CSV (columns of finance_v1.operations) or JSON')
    .option('--since <instant>', 'recorded at or after, RFC 3339')
    .option('--until <instant>', 'recorded before, RFC 3339; the present when left out')
    .option('--state <state>', 'only in this state, such as undecided')
    .option('--kind <kind>', 'only of this kind, such as give')
    .addOption(new Option('--format <format>', 'of the file').choices(FORMATS).default('csv'))
    .option('--out <file>', 'write there; standard output when left out'),
  'npx tallyhook export operations --since 2026-11-01T00:00:00Z --kind give --out gives.csv',
).action((options) => exits(exportOperations(options)));

const keys = program.command('keys').description('API keys, straight in the database');
example(
  keys
    .command('create')
    .requiredOption('--owner <owner>', 'the person or team behind the key')
    .option('--name <name>', 'what the key is for', 'key')
    .option('--scope <scope...>', 'gateway, read, manage, admin', ['read'])
    .option('--limits <json>', 'kinds, operators, amount_per_call, amount_per_day')
    .option('--json', 'print JSON'),
  `npx tallyhook keys create --owner shop --scope gateway --limits '{"kinds":["give"]}'`,
).action((options) => exits(createKey(options)));
example(keys.command('list').option('--json', 'print JSON'), 'npx tallyhook keys list').action(
  (options) => exits(listKeys(options)),
);
example(
  keys.command('revoke').argument('<id>').option('--json', 'print JSON'),
  'npx tallyhook keys revoke key_…',
).action((id, options) => exits(revokeKey(id, options)));

/** A command that speaks to a running daemon. */
function remote(command: Command, keyIs: string): Command {
  return command
    .addOption(new Option('--url <url>', 'the daemon').env('TALLYHOOK_URL'))
    .addOption(new Option('--key <key>', keyIs).env('TALLYHOOK_KEY'));
}

function wholeOf(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new InvalidArgumentError('It must be a whole number.');
}

function portOf(text: string): number {
  const value = wholeOf(text);
  if (value <= 65_535) return value;
  throw new InvalidArgumentError('It must be a port from 0 to 65535.');
}

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  // Not where data goes, which somebody may be reading or writing to a file.
  process.stderr.write(`${error.detail ?? error.code}\n`);
  process.exit(1);
}
