/**
 * `npm run contract`: checks a service at any address against every statement of its interface and
 * prints the results. It exits 1 only where the service contradicts the interface.
 */
import { Command, InvalidArgumentError } from 'commander';
import { request } from 'undici';
import { printLine } from '../../../src/kernel/telemetry/log.ts';
import { problemText } from '../../../src/resources/faults.ts';
import { makeService, type ServiceOptions } from './client/service.ts';
import { type CheckResult, checkStatement } from './statement.ts';
import { STATEMENTS } from './statements.ts';

interface Options extends ServiceOptions {
  json?: boolean;
  only?: string;
}

type Row = { section: string; title: string } & CheckResult;

const command = new Command('contract')
  .description('checks a service against every statement of its interface')
  .requiredOption('--base <url>', 'host of the NFT and account endpoints', urlOf)
  .option('--auth <url>', 'host of the authorization endpoints; the base by default', urlOf)
  .option('--tx <url>', 'host of the transaction endpoints; the base by default', urlOf)
  .option('--client-id <id>', 'client id')
  .option('--client-secret <secret>', 'client secret')
  .option('--key <key>', "a gateway's key, thk_…, sent in addition to the service's tokens")
  .option('--contract <id>', 'an NFT contract of the client', wholeOf)
  .option('--operator <no>', 'an operator wallet that pays', wholeOf)
  .option('--wallet <addr>', 'a wallet that may receive, send and own')
  .option('--other <addr>', 'a second wallet')
  .option('--user-token <token>', 'access token of a logged-in end user')
  .option('--refresh-token <token>', 'its refresh token')
  .option('--redirect-uri <uri>', 'a registered redirect URI')
  .option('--reason <text>', 'a reasonType that is allowed')
  .option('--amount <count>', 'how many tokens a transaction moves, where 1 is too few', wholeOf)
  .option('--control <url>', 'a sandbox, whose /_sandbox sets states that requests cannot', urlOf)
  .option('--only <text>', 'only statements whose section or title contains the text')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `
Moves a few service tokens between the wallets and back, and mints tokens that stay.

Example:
  npm run contract -- --base http://127.0.0.1:4000 --client-id sandbox-client \\
    --client-secret sandbox-secret --control http://127.0.0.1:4000`,
  );

function urlOf(text: string): string {
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? '')) return text;
  throw new InvalidArgumentError('expected an address such as http://127.0.0.1:4000');
}

function wholeOf(text: string): string {
  if (/^\d{1,100}$/.test(text)) return text;
  throw new InvalidArgumentError('expected a whole number');
}

const REACHED_MS = 5_000;

/** An error line for the first address that does not answer, or undefined. */
async function unreachable(options: Options): Promise<string | undefined> {
  for (const name of ['base', 'auth', 'tx', 'control'] as const) {
    const url = options[name];
    if (!url) continue;
    try {
      const answer = await request(url, { signal: AbortSignal.timeout(REACHED_MS) });
      await answer.body.dump();
    } catch (error) {
      return `--${name} ${url}: no answer (${problemText(error)})`;
    }
  }
  return undefined;
}

async function run(options: Options): Promise<number> {
  const { json = false, only = '', ...serviceOptions } = options;
  const failure = await unreachable(options);
  if (failure) {
    process.stderr.write(`${failure}\n`);
    return 2;
  }
  const { base, auth = base, tx = base } = options;
  const service = makeService({ ...serviceOptions, auth, tx });
  const rows: Row[] = [];
  const check = async () => {
    for (const each of STATEMENTS) {
      const { section, title } = each;
      if (!`${section} ${title}`.toLowerCase().includes(only.toLowerCase())) continue;
      rows.push({ section, title, ...(await checkStatement(each, service)) });
    }
  };
  // The chain of a sandbox settles quickly on request.
  if (service.controlled) {
    await service.control.withSwitches({ settle_median_ms: 20, read_lag_ms: 0 }, check);
  } else await check();
  await service.close();
  printReport(rows, json);
  return rows.some(({ result }) => result === 'not held') ? 1 : 0;
}

/** Prints every row and the totals. */
function printReport(rows: Row[], json: boolean): void {
  const results = ['held', 'not held', 'not checked', 'untestable'] as const;
  const count = (result: string) => rows.filter((row) => row.result === result).length;
  if (json) {
    const totals = Object.fromEntries(results.map((result) => [result, count(result)]));
    printLine(JSON.stringify({ totals, statements: rows }, undefined, 2));
    return;
  }
  const width = Math.max(0, ...rows.map(({ title }) => [...title].length));
  for (const row of rows) {
    const why = row.result === 'held' ? '' : `: ${row.why}`;
    const result = row.result === 'not held' ? 'NOT HELD' : row.result;
    const title = row.title + ' '.repeat(width - [...row.title].length);
    printLine(`${row.section.padEnd(4)} ${title}  ${result}${why}`);
  }
  printLine();
  printLine(results.map((result) => `${count(result)} ${result}`).join(', '));
}

process.exit(await run(command.parse().opts<Options>()));
