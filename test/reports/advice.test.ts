/** The advice of a report can be followed: it names commands and options that exist. */
import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { makeProgram } from '../../src/cli/commands.ts';
import { BREAKS } from '../../src/resources/reports/finding.ts';

/** The words of each command in a text, such as `drifts`, `show`, `--reason`. */
function commandsIn(text: string): string[][] {
  return [...text.matchAll(/npx tallyhook((?: +[\w<>…-]+)+)/g)].map(([, words = '']) =>
    words.trim().split(/ +/),
  );
}

/** The command that the words name; undefined if there is none or an option is not known. */
function resolve(program: Command, words: string[]): Command | undefined {
  let command = program;
  for (const word of words) {
    const inner = command.commands.find((one) => one.name() === word);
    if (inner) command = inner;
    else if (command === program) return undefined;
    else if (word.startsWith('--') && !command.options.some(({ long }) => long === word))
      return undefined;
    else if (/^[a-z]/.test(word) && command.commands.length > 0) return undefined;
  }
  return command;
}

it.each(Object.entries(BREAKS))(
  'The advice on the break %s names a command that exists',
  (_, text) => {
    const commands = commandsIn(text);
    expect(commands).not.toEqual([]);
    for (const words of commands)
      expect(resolve(makeProgram(), words), words.join(' ')).toBeDefined();
  },
);

it('A command or an option that does not exist is told', () => {
  const known = (text: string) => commandsIn(text).every((words) => resolve(makeProgram(), words));
  expect(known('npx tallyhook drifts show <subject>')).toBe(true);
  for (const wrong of ['drift', 'drifts mend', 'drifts show --colour', 'close'])
    expect(known(`npx tallyhook ${wrong}`), wrong).toBe(false);
});
