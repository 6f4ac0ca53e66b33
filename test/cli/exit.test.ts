/** What a command prints arrives whole, also at a reader that is slow or ends early. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';

const PRINTED = 1_000_000;
const SCRIPT = `
  const { exit } = await import(${JSON.stringify(import.meta.resolve('../../src/cli/options.ts'))});
  process.stdout.write('x'.repeat(${PRINTED}));
  process.stderr.write('printed');
  await exit(Promise.resolve(3));`;

it('A command ends after a slow reader has read all of its output', async () => {
  const command = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT]);
  const ended = once(command, 'exit');
  await once(command.stderr, 'data');
  expect((await text(command.stdout)).length).toBe(PRINTED);
  expect(await ended).toEqual([3, null]);
});
