/**
 * The contract suite against any base URL. It prints what holds, what does not and what could not
 * be checked; it fails only where the service contradicts the interface.
 */
import { Command, InvalidArgumentError } from 'commander';
import { request } from 'undici';
import { printReport, type Row } from './report.ts';
import { makeService, type ServiceOptions } from './service.ts';
import { judge } from './statement.ts';
import { STATEMENTS } from './statements.ts';

interface Options extends ServiceOptions {
  json?: boolean;
  only?: string;
}

const command = new Command('contract')
  .description('checks a service against every statement of its interface')
  .requiredOption('--base <url>', 'host of the NFT and account endpoints', urlOf)
  .option('--auth <url>', 'host of the authorization endpoints; without it, the base', urlOf)
  .option('--tx <url>', 'host of the transaction endpoints; without it, the base', urlOf)
  .option('--client-id <id>', 'client id')
  .option('--client-secret <secret>', 'client secret')
  .option('--key <key>', "a gateway's own key, thk_…, sent beside the service's tokens")
  .option('--contract <id>', 'an NFT contract of the client', wholeOf)
  .option('--operator <no>', 'an operator wallet that pays', wholeOf)
  .option('--wallet <addr>', 'a wallet that may receive, send and own')
  .option('--other <addr>', 'a second wallet')
  .option('--user-token <token>', 'access token of a logged-in end user')
  .option('--refresh-token <token>', 'its refresh token')
  .option('--redirect-uri <uri>', 'a registered redirect URI')
  .option('--reason <text>', 'a reasonType that is allowed')
  .option('--amount <count>', 'how many tokens a transaction moves, where 1 is too few', wholeOf)
  .option(
    '--control <url>',
    'a sandbox, whose /_sandbox brings about what only operators can',
    urlOf,
  )
  .option('--only <text>', 'only statements whose section or title has the text')
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
  throw new InvalidArgumentError('It must be an address such as http://127.0.0.1:4000.');
}

function wholeOf(text: string): string {
  if (/^\d{1,100}$/.test(text)) return text;
  throw new InvalidArgumentError('It must be a whole number.');
}

const REACHED_MS = 5_000;

/** Which of the named addresses nobody answers at, in a line; undefined when all answer. */
async function unreached(given: Options): Promise<string | undefined> {
  for (const name of ['base', 'auth', 'tx', 'control'] as const) {
    const url = given[name];
    if (!url) continue;
    try {
      const answer = await request(url, { signal: AbortSignal.timeout(REACHED_MS) });
      await answer.body.dump();
    } catch (error) {
      return `--${name} ${url}: nobody answers there (${(error as Error).message})`;
    }
  }
  return undefined;
}

async function run(given: Options): Promise<number> {
  const { json = false, only = '', ...named } = given;
  const nobody = await unreached(given);
  if (nobody) {
    process.stderr.write(`${nobody}\n`);
    return 2;
  }
  const service = makeService({
    ...named,
    auth: given.auth ?? given.base,
    tx: given.tx ?? given.base,
  });
  const wanted = only.toLowerCase();
  const chosen = STATEMENTS.filter(({ section, title }) =>
    `${section} ${title}`.toLowerCase().includes(wanted),
  );
  const rows: Row[] = [];
  const work = async () => {
    for (const each of chosen) {
      const { section, title } = each;
      rows.push({ section, title, ...(await judge(each, service)) });
    }
  };
  // Where the chain is a sandbox's, nobody needs to wait for it.
  if (service.controlled)
    await service.control.withSwitches({ settle_median_ms: 20, read_lag_ms: 0 }, work);
  else await work();
  await service.close();
  printReport(rows, json);
  return rows.some(({ result }) => result === 'not held') ? 1 : 0;
}

process.exit(await run(command.parse().opts<Options>()));
