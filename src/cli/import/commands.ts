/** The command `import`. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { exit, withExamples, withRemote } from '../options.ts';

const MAPPED =
  'npx tallyhook import operations.csv --map amount=value,tx_log_no=log_id --set kind=give';

export function addImport(program: Command): void {
  withExamples(
    withRemote(program.command('import'), 'key with the scopes manage and read')
      .description(
        'record the history of an app from a file, once its lines and balances are checked',
      )
      .argument('<file>', 'of CSV or NDJSON, one executed operation a line')
      .addOption(
        new Option('--format <format>', 'of the file; by default what its name ends with').choices([
          'csv',
          'ndjson',
        ]),
      )
      .option('--map <pairs>', 'field=column,…: columns that are not named like their field', and)
      .option('--set <pairs>', 'field=value,…: values of fields without a cell', and)
      .option('--mapping <file>', 'JSON with map, set, values (by field) and time_zone')
      .option('--time-zone <zone>', 'of times without an offset, such as Asia/Seoul')
      .option('--delimiter <character>', 'of CSV', toDelimiter, ',')
      .option('--dry-run', 'only check and prove')
      .option('--accept-unproved <reason>', 'record even if balances contradict; stores the reason')
      .option('--json', 'print the summary as JSON'),
    `${MAPPED} --dry-run`,
    MAPPED,
    'npx tallyhook import history.ndjson --mapping mapping.json --time-zone Asia/Seoul',
  ).action(async (file, options) => exit((await import('./import.ts')).runImport(file, options)));
}

function toDelimiter(text: string): string {
  const delimiter = text === '\\t' ? '\t' : text;
  if (/^[,;|\t]$/.test(delimiter)) return delimiter;
  throw new InvalidArgumentError('It must be one of , ; | or \\t.');
}

/** An option may be repeated. */
function and(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}
