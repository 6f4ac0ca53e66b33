/** What the definitions of commands share: examples, the options of a daemon, the exit. */
import { type Command, Option } from 'commander';

export function withExamples(command: Command, ...examples: string[]): Command {
  const title = examples.length === 1 ? 'Example' : 'Examples';
  return command.addHelpText('after', `\n${title}:\n  ${examples.join('\n  ')}`);
}

export function withRemote(command: Command, key: string): Command {
  return command
    .addOption(
      new Option('--url <url>', 'address of the daemon')
        .env('TALLYHOOK_URL')
        .default('http://127.0.0.1:8080'),
    )
    .addOption(new Option('--key <key>', key).env('TALLYHOOK_KEY'));
}

export async function exit(code: Promise<number>): Promise<never> {
  process.exit(await code);
}
