/**
 * The command line: every command with its options and examples. The module of a command is loaded
 * when the command runs, so that a short command does not load the daemon.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { addDatabase } from './db/commands.ts';
import { addDecisions, addDrifts, addPeriods, addQuarantine } from './decisions/commands.ts';
import { addExplain, addExport, addVerify } from './export/commands.ts';
import { addImport } from './import/commands.ts';
import { exit, withExamples, withRemote } from './options.ts';
import { addWatches } from './watches/commands.ts';

const LOCAL = 'postgres://postgres@127.0.0.1:5432/tallyhook';

export function makeProgram(): Command {
  const program = new Command('tallyhook')
    .description(
      'Records, reconciles and reports the writes of an app to its token, NFT and wallet service.',
    )
    .showSuggestionAfterError()
    .showHelpAfterError('(run with --help for usage)')
    .addHelpText('after', '\nExample:\n  npx tallyhook start');
  addProcesses(program);
  addInstallation(program);
  addDatabase(program);
  addDaemonRequests(program);
  addWatches(program);
  addImport(program);
  addQuarantine(program);
  addDrifts(program);
  addDecisions(program);
  addPeriods(program);
  addExport(program);
  addVerify(program);
  addExplain(program);
  addKeys(program);
  return program;
}

/** Long-running programs: the daemon, the demo, the sandbox. */
function addProcesses(program: Command): void {
  withExamples(
    program.command('start').description('run the daemon, like npm start'),
    'PORT=8080 npx tallyhook start',
  ).action(async () => exit((await import('../daemon/daemon.ts')).runDaemon()));

  withExamples(
    program
      .command('demo')
      .description('run a walk-through with temporary data; exits 0 only if every step succeeds')
      .option('--contract <id>', 'NFT contract of the service')
      .option('--operator <no>', 'operator wallet that pays')
      .option('--wallet <addr...>', 'one or two wallet addresses'),
    'npx tallyhook demo',
    'npx tallyhook demo --contract 1 --operator 1 --wallet 0x… 0x…',
  ).action(async (options) => exit((await import('./demo/demo.ts')).runDemo(options)));

  withExamples(
    program
      .command('sandbox')
      .description('run the simulated service alone')
      .option('--port <port>', 'port to listen on; 0 picks a free one', toPort, 4000)
      .option('--host <host>', 'address to listen on', '127.0.0.1')
      .option('--seed <seed>', 'the same seed gives the same world', toWhole, 1)
      .option('--client-id <id>', 'client id', 'sandbox-client')
      .option('--client-secret <secret>', 'client secret', 'sandbox-secret')
      .option('--data-dir <path>', 'keep the world in this folder instead of in memory')
      .option('--live', 'add background traffic')
      .option('--json', 'print address and credentials as JSON'),
    'npx tallyhook sandbox --port 4000 --seed 1',
    'npx tallyhook sandbox --port 0 --json --data-dir ./data --live',
    'curl -u sandbox-client:sandbox-secret -d grant_type=client_credentials \\\n' +
      '    http://127.0.0.1:4000/v1/oauth/token',
    'curl -H \'content-type: application/json\' -d \'{"kind":"lost_answer"}\' \\\n' +
      '    http://127.0.0.1:4000/_sandbox/faults',
  ).action(async (options) => exit((await import('./demo/sandbox.ts')).runSandbox(options)));
}

/** Commands on the database and the configuration of this installation. */
function addInstallation(program: Command): void {
  withExamples(
    program
      .command('setup')
      .description('print the SQL that makes the logins of Tallyhook in an external Postgres')
      .argument('[url]', 'login that may create roles and owns the database', LOCAL)
      .option('--run', 'run it with that login instead of printing it'),
    'npx tallyhook setup postgres://admin@db.example/tallyhook | less',
    'PGPASSWORD=… npx tallyhook setup --run postgres://admin@db.example/tallyhook',
  ).action(async (url, options) => exit((await import('./db/setup.ts')).runSetup(url, options)));

  withExamples(
    program
      .command('migrate')
      .description('apply missing migrations to the database of DATABASE_URL')
      .option('--dry-run', 'only name the files that would run')
      .option('--json', 'print JSON'),
    'DATABASE_URL=postgres://… npx tallyhook migrate --dry-run',
    'DATABASE_URL=postgres://… npx tallyhook migrate',
  ).action(async (options) => exit((await import('./db/migrate.ts')).runMigrate(options)));

  withExamples(
    program
      .command('doctor')
      .description('check configuration, database, guards and service; exits 0 if all are well')
      .option('--restored', 'list what may differ after a restore, a copy or a failover')
      .option('--keys-used <file>', 'idempotency keys used since the backup: one a line, or NDJSON')
      .option('--release <reason>', 'allow writes again, with a reason that is stored')
      .option(
        '--send-queued',
        'on release, send what was queued: only if it was not sent elsewhere',
      )
      .option('--limit <n>', 'wallets, tokens and operations that are compared', toWhole, 200)
      .option('--json', 'print JSON'),
    'npx tallyhook doctor',
    'npx tallyhook doctor --restored --keys-used events.ndjson',
    'npx tallyhook doctor --restored --release "compared with the shop, 3 keys taken over"',
  ).action(async (options) =>
    exit(
      options.restored
        ? (await import('./doctor/restored.ts')).runRestored(options)
        : (await import('./doctor/doctor.ts')).runDoctor(options),
    ),
  );

  withExamples(
    program
      .command('rotate-master-key')
      .description('encrypt every secret again with MASTER_KEY; may be killed and repeated')
      .option('--dry-run', 'only count the secrets, which also proves both keys')
      .option('--lost', 'the former key is lost: delete the endpoints whose secrets it encrypted')
      .option('--json', 'print JSON'),
    'MASTER_KEY=… MASTER_KEY_OLD=… npx tallyhook rotate-master-key --dry-run',
    'MASTER_KEY="$(openssl rand -base64 32)" MASTER_KEY_OLD="$(cat data/master.key)" \\\n' +
      '    npx tallyhook rotate-master-key',
  ).action(async (options) =>
    exit((await import('./db/rotate-master-key.ts')).runRotateMasterKey(options)),
  );
}

/** Commands that send a request or two to a running daemon. */
function addDaemonRequests(program: Command): void {
  withExamples(
    withRemote(program.command('report'), 'key with the scopes manage and read')
      .description('create a reconciliation report for a period and print it')
      .requiredOption('--from <instant>', 'start of the period, RFC 3339')
      .requiredOption('--to <instant>', 'end of the period, RFC 3339')
      .addOption(
        new Option('--format <format>', 'format')
          .choices(['json', 'csv', 'csv-zip', 'xlsx', 'html', 'hledger'])
          .default('json'),
      )
      .option('--out <file>', 'write to this file instead of standard output'),
    'npx tallyhook report --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z --format html',
    'npx tallyhook report --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z \\\n' +
      '    --format xlsx --out november.xlsx',
  ).action(async (options) => exit((await import('./api/remote.ts')).createReport(options)));

  withExamples(
    withRemote(program.command('clear-deadlines'), 'key with the scope admin')
      .description('send to the service again before the deadline that it set with Retry-After')
      .requiredOption('--reason <text>', 'reason, written to the log')
      .option('--json', 'print JSON'),
    'npx tallyhook clear-deadlines --reason "the support of the service has lifted it"',
  ).action(async (options) => exit((await import('./api/remote.ts')).clearDeadlines(options)));

  withExamples(
    withRemote(program.command('replay'), 'key of the owner of the endpoint, with the scope manage')
      .description('send the events of a time to an endpoint again, with the same ids')
      .argument('<endpoint>', 'id of the endpoint')
      .requiredOption(
        '--since <time>',
        'events recorded from then on: RFC 3339, or 30m, 6h, 7d ago',
      )
      .option('--until <time>', 'and before; by default now')
      .option('--type <type...>', 'event types or group.*; by default all that it subscribes to')
      .addOption(
        new Option('--which <which>', 'deliveries that failed, events without one, or all')
          .choices(['failed', 'missing', 'all'])
          .default('failed'),
      )
      .option('--dry-run', 'only count')
      .option('--json', 'print JSON'),
    'npx tallyhook replay ep_… --since 6h --dry-run',
    "npx tallyhook replay ep_… --since 2026-11-01T00:00:00Z --which all --type 'operation.*'",
  ).action(async (endpoint, options) =>
    exit((await import('./events/replay.ts')).runReplay(endpoint, options)),
  );

  addForwarding(program);

  for (const [name, description, reason] of [
    ['freeze', 'stop all writes immediately, on every daemon', 'the operator key leaked'],
    ['unfreeze', 'allow writes again', 'the key is replaced'],
  ] as const)
    withExamples(
      withRemote(program.command(name), 'key with the scope admin')
        .description(description)
        .requiredOption('--reason <text>', 'reason, stored in the audit log')
        .option('--json', 'print JSON'),
      `npx tallyhook ${name} --reason "${reason}"`,
    ).action(async (options) => exit((await import('./api/remote.ts')).setFreeze(name, options)));
}

/** Commands for those who develop a receiver of webhooks. */
function addForwarding(program: Command): void {
  const secret = [
    '--secret <whsec>',
    'signing secret; by default a new one, which is printed',
  ] as const;
  withExamples(
    withRemote(program.command('listen'), 'key with the scope read')
      .description('show events as they come, and forward them to a receiver as signed webhooks')
      .option('--forward-to <url>', 'address of the receiver; each event is sent once')
      .option(...secret)
      .option('--type <type...>', 'event types or group.*; by default all')
      .option('--last <n>', 'begin with the newest so many events', toWhole, 0)
      .option('--count <n>', 'end after so many events', toWhole)
      .option('--json', 'print the bodies, one a line'),
    "npx tallyhook listen --forward-to http://127.0.0.1:3000/webhooks --type 'operation.*'",
    'npx tallyhook listen --json --last 10 --count 10',
  ).action(async (options) => exit((await import('./events/listen.ts')).runListen(options)));
  withExamples(
    program
      .command('trigger')
      .description('send the example of an event type to a receiver as a signed webhook, once')
      .argument('<type>', 'event type, such as operation.settled')
      .requiredOption('--forward-to <url>', 'address of the receiver')
      .option(...secret),
    'npx tallyhook trigger operation.settled --forward-to http://127.0.0.1:3000/webhooks',
  ).action(async (type, options) =>
    exit((await import('./events/listen.ts')).runTrigger(type, options)),
  );
}

const ADMIN = 'key with the scope admin; without it the database is used directly';

function addKeys(program: Command): void {
  const group = program
    .command('keys')
    .description('manage API keys: with an admin key through the daemon, else in the database');
  const create =
    'npx tallyhook keys create --owner shop --scope gateway ' + `--limits '{"kinds":["give"]}'`;
  withExamples(group, create, 'npx tallyhook keys list');
  withExamples(
    withRemote(group.command('create'), ADMIN)
      .description('create a key and print its secret once')
      .requiredOption('--owner <owner>', 'person or team that the key belongs to')
      .option('--name <name>', 'purpose of the key', 'key')
      .option('--scope <scope...>', 'gateway, read, manage, decide, admin', ['read'])
      .option('--limits <json>', 'kinds, operators, amount_per_call, amount_per_day')
      .option(
        '--expires <instant>',
        'when the key ends, such as 2027-01-01T00:00:00Z; by default never',
      )
      .option('--json', 'print JSON'),
    create,
  ).action(async (options) => exit((await import('./keys.ts')).createKey(options)));
  withExamples(
    withRemote(group.command('list'), ADMIN)
      .description('list all keys')
      .option('--json', 'print JSON'),
    'npx tallyhook keys list',
  ).action(async (options) => exit((await import('./keys.ts')).listKeys(options)));
  withExamples(
    withRemote(group.command('revoke'), ADMIN)
      .description('revoke a key immediately')
      .argument('<id>', 'id of the key')
      .option('--json', 'print JSON'),
    'npx tallyhook keys revoke key_…',
  ).action(async (id, options) => exit((await import('./keys.ts')).revokeKey(id, options)));
}

function toWhole(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new InvalidArgumentError('It must be a whole number.');
}

function toPort(text: string): number {
  const value = toWhole(text);
  if (value <= 65_535) return value;
  throw new InvalidArgumentError('It must be a port from 0 to 65535.');
}
