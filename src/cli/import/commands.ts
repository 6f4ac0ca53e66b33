/** The command `import`. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  DATE_ORDERS,
  DECIMAL_SIGNS,
  FORMATS,
  THOUSANDS,
  UNIX_UNITS,
} from '../../resources/operations/import.ts';
import { exit, withExamples, withRemote } from '../options.ts';

const MAPPED =
  'npx tallyhook import operations.csv --map amount=value,tx_log_no=log_id --set kind=give';

export function addImport(program: Command): void {
  const command = withRemote(program.command('import'), 'key with the scopes manage and read')
    .description(
      'record the history of an app from a file, once its lines and balances are checked. ' +
        'The file of our own `export operations` needs no option',
    )
    .argument('<file>', 'of CSV or NDJSON, one executed operation a line')
    .option('--map <pairs>', 'field=column,…: columns that are not named like their field', and)
    .option('--set <pairs>', 'field=value,…: values of fields without a cell', and)
    .option('--mapping <file>', 'JSON with map, set, values (by field) and the options below')
    .addOption(choice('--format <format>', 'by default what its name ends with', ...FORMATS))
    .option('--encoding <name>', 'such as euc-kr, shift_jis, windows-1252; by default UTF-8')
    .option('--delimiter <character>', 'of CSV; by default that of its header', toDelimiter)
    .option('--time-zone <zone>', 'of times without an offset, such as Asia/Seoul')
    .addOption(choice('--date-order <order>', 'of dates such as 31.01.2026', ...DATE_ORDERS))
    .addOption(choice('--unix-time <unit>', 'times are numbers since 1970', ...UNIX_UNITS))
    .addOption(choice('--thousands <sign>', 'between groups of three figures', ...THOUSANDS))
    .addOption(choice('--decimal-sign <sign>', 'before a fraction of zeros', ...DECIMAL_SIGNS))
    .option('--dry-run', 'only check and prove')
    .option('--accept-unproved <reason>', 'record even if balances contradict; stores the reason')
    .option('--json', 'print the summary as JSON');
  withExamples(
    command,
    `${MAPPED} --dry-run`,
    MAPPED,
    'npx tallyhook import history.ndjson --mapping mapping.json --time-zone Asia/Seoul',
    'npx tallyhook import excel.csv --encoding euc-kr --thousands , --date-order dmy',
    'npx tallyhook import operations.csv    # of npx tallyhook export operations',
  ).action(async (file, options) => exit((await import('./import.ts')).runImport(file, options)));
}

function choice(flags: string, description: string, ...values: string[]): Option {
  return new Option(flags, description).choices(values);
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
