/** What commands of the API print when they are asked wrongly, or when no daemon answers them. */
import { createServer, type ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { runCommand } from '../harness/command.ts';
import { closeServer, listen } from '../harness/listen.ts';

/** Runs a command against a server that answers like that. */
async function runAgainst(answer: (response: ServerResponse) => void, ...args: string[]) {
  const server = createServer((_, response) => answer(response));
  const url = `http://127.0.0.1:${await listen(server)}`;
  const ran = await runCommand({ TALLYHOOK_URL: url, TALLYHOOK_KEY: 'thk_test' }, ...args);
  await closeServer(server);
  return ran;
}
const rawJson = (text: string) => (response: ServerResponse) =>
  void response.setHeader('content-type', 'application/json').end(text);
const json = (body: unknown) => rawJson(JSON.stringify(body));

const breakOff = (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"data":', () => response.destroy());
};

/** Of commands that send a file. */
const FILE = ['import', import.meta.filename, '--format', 'csv'];

describe('One line', () => {
  it('is all that a refused export prints: no head of a file without its rows', async () => {
    const exports = [
      ['export', 'operations'],
      ['export', 'operations', '--format', 'json'],
      ['export', 'lines', 'rep_1'],
      ['watches', 'list', '--csv'],
    ];
    for (const args of exports) {
      const { code, text } = await runAgainst(breakOff, ...args);
      expect(code).toBe(1);
      expect(text).toMatch(/^the answer of \S+ broke off\n$/);
    }
  });

  it.each<[string, string, (response: ServerResponse) => void]>([
    ['is not a daemon', 'another server', (response) => void response.end('<p>welcome</p>')],
    ['broke off', 'a broken answer', breakOff],
  ])('says that what answers %s: %s', async (said, _what, answer) => {
    for (const args of [
      ['wallets', 'list'],
      ['status', 'show'],
      ['drifts'],
      FILE,
      ['watches', ...FILE],
    ]) {
      const { code, text } = await runAgainst(answer, ...args);
      expect({ code, lines: text.trim().split('\n').length }).toEqual({ code: 1, lines: 1 });
      expect(text).toContain(said);
    }
  });

  it.each([
    [['--url', 'nonsense'], /^nonsense: expected an address/],
    [['--url', 'http://127.0.0.1:1'], /^no daemon answers at/],
    [['--url', 'http://ada:secret@127.0.0.1:1'], /^the address of the daemon has a login; [^@]*$/],
    [['--limit', '[]'], /expected a number/],
    [['--limit', '-1'], /^--limit: expected a number from 1/],
  ])('says what is wrong with %j', async (args, said) => {
    const { code, text } = await runAgainst(
      json({ data: [], next_cursor: null }),
      'wallets',
      ...args,
    );
    expect(code).toBe(1);
    expect(text).toMatch(said);
    expect(text).not.toContain('    at ');
  });
});

it('The feed of events is printed to its end, whose cursor is never null', async () => {
  let asked = 0;
  const answer = (response: ServerResponse) =>
    json({ data: asked++ === 0 ? [{ id: 'evt_1' }] : [], next_cursor: 'c1' })(response);
  const { code, text } = await runAgainst(answer, 'events', 'list');
  expect({ code, asked }).toEqual({ code: 0, asked: 2 });
  expect(text).toContain('evt_1');
});

it('Numbers within documents are printed as they were answered by the daemon', async () => {
  const data = '{"balance":12345678901234567890}';
  const shown = await runAgainst(rawJson(`{"pre_image":${data}}`), 'operations', 'show', 'op_1');
  expect(shown.text).toBe(`pre_image: ${data}\n`);
  const page = rawJson(`{"data":[{"id":"evt_1","data":${data}}],"next_cursor":null}`);
  expect((await runAgainst(page, 'events', 'list')).text).toContain(data);
  expect((await runAgainst(page, 'events', 'list', '--json')).text).toContain(data);
});

it('A text of others does not steer the terminal', async () => {
  const metadata = 'red\u001b[31m\u009b2J\nline';
  const { text } = await runAgainst(json({ metadata }), 'tokens', 'show', '1', '2');
  expect(text).toBe('metadata: red\\u001b[31m\\u009b2J\\u000aline\n');
});
