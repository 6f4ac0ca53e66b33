/** The commands `watch` and `watches`. */
import { type Command, Option } from 'commander';
import { exit, withExamples, withRemote } from '../options.ts';

const KEY = 'key with the scope manage';
const load = () => import('./watches.ts');

export function addWatches(program: Command): void {
  withExamples(
    withRemote(program.command('watch'), KEY)
      .description('watch a wallet, contract or token, so that it is polled')
      .argument('<kind>', 'wallet, contract or token')
      .argument('<name...>', 'an address; a contract id; a contract id and a token id')
      .option('--json', 'print JSON'),
    'npx tallyhook watch wallet 0x…',
    'npx tallyhook watch token 1 42',
  ).action(async (kind, names, options) => exit((await load()).addWatch(kind, names, options)));

  const group = program.command('watches').description('add, list and remove many watches');
  const add = 'npx tallyhook watches import wallets.csv --dry-run';
  withExamples(group, add, 'npx tallyhook watches list');
  withExamples(
    streamed(
      group
        .command('import')
        .description('watch what a file of CSV or NDJSON lists; a repeat changes nothing')
        .argument('<file>', 'the file; - for standard input'),
    ),
    add,
    'echo \'{"kind":"token","contract_id":"1","token_id":"42"}\' |\\\n' +
      '    npx tallyhook watches import - --format ndjson',
  ).action(async (file, options) => exit((await load()).importWatches('', file, options)));

  withExamples(
    streamed(
      group
        .command('remove')
        .description('end the watches of what a file lists, or of ids')
        .argument('[id...]', 'ids of watches')
        .option('--file <file>', 'of CSV or NDJSON; - for standard input'),
    ),
    'npx tallyhook watches remove wat_…',
    'npx tallyhook watches remove --file wallets.csv',
  ).action(async (ids, options) => exit((await load()).removeWatches(ids, options)));

  withExamples(
    withRemote(group.command('list'), 'key with the scope read')
      .description('list the watches, oldest first')
      .option('--csv', 'print CSV, as import takes it')
      .option('--json', 'print JSON'),
    'npx tallyhook watches list --csv > watches.csv',
  ).action(async (options) => exit((await load()).listWatches(options)));
}

function streamed(command: Command): Command {
  return withRemote(command, KEY)
    .addOption(
      new Option('--format <format>', 'of the file; by default what its name ends with').choices([
        'csv',
        'ndjson',
      ]),
    )
    .option('--dry-run', 'only count what would change')
    .option('--json', 'print the summary as JSON');
}
