/**
 * The command line: every command with its options and examples. Commands that only ask a running
 * daemon are defined where they are done. The modules of all others are loaded when they run, so
 * that a short command does not load the daemon.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { VERSION } from '../kernel/version.ts';
import { SCOPES } from '../resources/admin/key.ts';
import { MOMENT_WORDS } from '../resources/ledger/period.ts';
import { addDrifts } from './decisions/drifts.ts';
import { addDecisions } from './decisions/operations.ts';
import { addPeriods } from './decisions/periods.ts';
import { addQuarantine } from './decisions/quarantine.ts';
import { addDaemonExports, EXAMPLES } from './export/operations.ts';
import { addImport } from './import/commands.ts';
import { exit, toWhole, withExamples, withKey, withPeriod, withRemote } from './options.ts';
import { addRequests } from './requests.ts';
import { addWatches } from './watches.ts';

const LOCAL = 'postgres://postgres@127.0.0.1:5432/tallyhook';

export function makeProgram(): Command {
  const program = new Command('tallyhook')
    .description(
      'Records, reconciles and reports the writes of an app to its token, NFT and wallet service.',
    )
    .version(VERSION)
    .showSuggestionAfterError()
    .showHelpAfterError('(run with --help for usage)')
    .addHelpText('after', '\nExample:\n  npx tallyhook start');
  addProcesses(program);
  addInstallation(program);
  addDatabase(program);
  addRequests(program);
  addForwarding(program);
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
  ).action(async (options) => exit((await import('./db/setup.ts')).runMigrate(options)));

  withExamples(
    program
      .command('doctor')
      .description('check configuration, database, guards and service; exits 0 if all are well')
      .option('--restored', 'list what may differ after a restore, a copy or a failover')
      .option('--keys-used <file>', 'idempotency keys used since the backup: one a line, or NDJSON')
      .option('--dry-run', 'only count what the file of --keys-used names')
      .option('--release <reason>', 'allow writes again, with a reason that is stored')
      .option(
        '--send-queued',
        'on release, send what was queued: only if it was not sent elsewhere',
      )
      .option('--limit <n>', 'wallets, tokens and operations that are compared', toWhole, 200)
      .option('--json', 'print JSON'),
    'npx tallyhook doctor',
    'npx tallyhook doctor --restored --keys-used events.ndjson --dry-run',
    'npx tallyhook doctor --restored --release "compared with the shop, 3 keys taken over"',
  ).action(async (options) =>
    exit(
      options.restored
        ? (await import('./doctor/restored.ts')).runRestored(options)
        : (await import('./doctor/doctor.ts')).runDoctor(options),
    ),
  );

  const compare = 'UPSTREAM_BASE_URL=https://new.example … npx tallyhook service move --dry-run';
  const service = program
    .command('service')
    .description('the service that the database belongs to');
  withExamples(service, compare);
  const move = withKey(service.command('move'), 'key with the scope decide')
    .description(
      'let the database belong to another address or client of the same service: two owners ' +
        'confirm it, and wallets and tokens are compared',
    )
    .option('--dry-run', 'only compare the service of the environment with the ledger')
    .option('--reason <reason>', 'propose it, with a reason that is stored')
    .option('--approve', 'approve what another owner proposed; no daemon may be running')
    .option('--limit <n>', 'wallets and tokens that are compared', toWhole, 1_000)
    .option('--json', 'print JSON');
  withExamples(
    move,
    compare,
    'TALLYHOOK_KEY=… npx tallyhook service move --reason "the provider moves to new.example"',
    'TALLYHOOK_KEY=… npx tallyhook service move --approve',
  ).action(async (options) => exit((await import('./service.ts')).runMove(options)));

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

function addDatabase(program: Command): void {
  const group = program
    .command('db')
    .description(
      'the login of the database, psql on it, a dump of it, and its events as a change stream',
    );
  const url = 'npx tallyhook db url --finance';
  withExamples(group, url, 'npx tallyhook db psql --finance', 'npx tallyhook db dump --out a.dump');
  withExamples(
    group
      .command('url')
      .description('print the URL of the database, for psql, DBeaver or a spreadsheet')
      .option('--finance', 'of the login that only reads finance_v1')
      .option('--json', 'print URL, host, port, database, user and password as JSON'),
    `DATABASE_PORT=5433 ${url}`,
    `psql "$(${url})"`,
  ).action(async (options) => exit((await import('./db/access.ts')).printUrl(options)));
  withExamples(
    group
      .command('psql')
      .description('run psql, which must be installed; what follows -- is passed to it')
      .argument('[args...]', 'arguments of psql')
      .option('--finance', 'with the login that only reads finance_v1'),
    'npx tallyhook db psql --finance',
    "npx tallyhook db psql --finance -- --csv -c 'table finance_v1.balances' > balances.csv",
  ).action(async (args, options) => exit((await import('./db/access.ts')).runPsql(args, options)));
  withExamples(
    group
      .command('dump')
      .description('write a backup with pg_dump, which must be installed and as new as the server')
      .requiredOption('--out <file>', 'file in the format of pg_restore; replaced when complete')
      .option('--json', 'print JSON'),
    'npx tallyhook db dump --out shop.dump',
  ).action(async (options) => exit((await import('./db/access.ts')).runDump(options)));
  withExamples(
    group
      .command('publish-events')
      .description('publish new events for readers of the WAL, such as Debezium; docs/apps.md')
      .option('--json', 'print JSON'),
    'npx tallyhook db publish-events',
  ).action(async (options) => exit((await import('./db/access.ts')).runPublish(options)));
}

/** Commands for those who develop a receiver of webhooks. */
function addForwarding(program: Command): void {
  const secret = new Option(
    '--secret <whsec>',
    'signing secret; by default a new one, which is printed',
  );
  withExamples(
    withRemote(program.command('listen'), 'key with the scope read')
      .description('show events as they come, and forward them to a receiver as signed webhooks')
      .option('--forward-to <url>', 'address of the receiver; each event is sent once')
      .addOption(secret)
      .option('--type <type...>', 'event types or group.*; by default all')
      .option('--last <n>', 'begin with the newest so many events', toWhole, 0)
      .option('--count <n>', 'end after so many events', toWhole)
      .option('--json', 'print the bodies, one a line'),
    "npx tallyhook listen --forward-to http://127.0.0.1:3000/webhooks --type 'operation.*'",
    'npx tallyhook listen --json --last 10 --count 10',
  ).action(async (options) => exit((await import('./listen.ts')).runListen(options)));
  withExamples(
    program
      .command('trigger')
      .description('send the example of an event type to a receiver as a signed webhook, once')
      .argument('<type>', 'event type, such as operation.settled')
      .requiredOption('--forward-to <url>', 'address of the receiver')
      .addOption(secret),
    'npx tallyhook trigger operation.settled --forward-to http://127.0.0.1:3000/webhooks',
  ).action(async (type, options) => exit((await import('./listen.ts')).runTrigger(type, options)));
}

function addExport(program: Command): void {
  const group = program
    .command('export')
    .description('export operations, the lines of a report, or the ledger with its hash chain');
  withExamples(group, ...EXAMPLES);
  addDaemonExports(group);
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
  ).action(async (options) => exit((await import('./export/ledger.ts')).exportLedgerTo(options)));
}

function addVerify(program: Command): void {
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
  ).action(async (options) => exit((await import('./export/ledger.ts')).runVerify(options)));
}

function addExplain(program: Command): void {
  withExamples(
    withPeriod(program.command('explain'), `begin, by default 30 days ago: ${MOMENT_WORDS}`)
      .description('explain the balance of a wallet: its movements, last observation and drifts')
      .argument('<addr>', 'address of the wallet')
      .option('--json', 'print JSON'),
    'npx tallyhook explain 0x…',
    'npx tallyhook explain 0x… --period 2026-11',
    'npx tallyhook explain 0x… --from 2026-11-01T00:00:00+09:00',
  ).action(async (addr, options) =>
    exit((await import('./export/explain.ts')).runExplain(addr, options)),
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
      .option('--scope <scope...>', SCOPES.join(', '), ['read'])
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

function toPort(text: string): number {
  const value = toWhole(text);
  if (value <= 65_535) return value;
  throw new InvalidArgumentError('It must be a port from 0 to 65535.');
}
