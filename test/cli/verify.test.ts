/** `tallyhook verify` and `export ledger`, as an auditor runs them. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../harness/command.ts';
import { environmentOf } from '../harness/daemon.ts';
import { useDatabase } from '../harness/database.ts';
import { useFolder } from '../harness/folder.ts';
import { nthPosting, post } from '../ledger/raw-posting.ts';

const database = await useDatabase();
const CHAIN = join(import.meta.dirname, '../../src/ledger/chain');
const folder = useFolder();
let file: string;
let head: string;

const run = (...args: string[]) =>
  runCommand(environmentOf(database.url, 'http://127.0.0.1:9'), ...args);

beforeAll(async () => {
  for (let n = 1; n <= 3; n++) {
    await database.db.sql`
      insert into tallyhook.transitions (operation_id, to_state, at, cause, evidence)
      values ('op_1', 'recorded', now(), ${`intent ${n}`}, '{"balance":12345678901234567890}')`;
    await post(database.db, nthPosting(n));
  }
  file = join(folder, 'ledger.jsonl');
  expect(await run('export', 'ledger', '--out', file)).toEqual({ code: 0, text: '' });
  const end = (await readFile(file, 'utf8')).trim().split('\n').at(-1) ?? '';
  ({ head } = JSON.parse(end));
});

describe('verify', () => {
  it('An unchanged ledger is verified, and its head is printed', async () => {
    const { code, text } = await run('verify', '--anchor', head);
    expect(text).toBe(
      'verified: 3 transactions and 3 rows of evidence in 3 batches, compared with 1 kept heads\n' +
        `head ${head}\n`,
    );
    expect(code).toBe(0);
  });

  it('A head that the chain does not have exits with 1 and is named, as JSON too', async () => {
    const other = `${'ab'.repeat(32)}:2`;
    const { code, text } = await run('verify', '--json', '--anchor', other, head);
    expect(code).toBe(1);
    expect(JSON.parse(text)).toMatchObject({
      ok: false,
      head,
      transactions: '3',
      evidence: '3',
      anchors: 2,
      total: 1,
      findings: [{ kind: 'rewritten', row: 'batch 2' }],
    });
  });

  it('An anchor that is none is refused with the form that it has', async () => {
    const { code, text } = await run('verify', '--anchor', 'abc');
    expect(code).toBe(1);
    expect(text).toContain('--anchor abc: expected <head>:<count>');
  });
});

describe('An export', () => {
  it('An export is verified with the head that its ledger has', async () => {
    const { code, text } = await run('verify', '--file', file, '--anchor', head, '--json');
    expect(JSON.parse(text)).toMatchObject({ ok: true, head, transactions: '3', findings: [] });
    expect(code).toBe(0);
  });

  const marked = 'begins with a byte order mark';
  const returned = 'ends lines with carriage returns';
  const open = 'lacks the end of its last line';
  it.each<[string, (text: string) => string, string]>([
    ['with CRLF', (text) => text.replaceAll('\n', '\r\n'), returned],
    ['with CR', (text) => text.replaceAll('\n', '\r'), returned],
    ['with a byte order mark', (text) => `\ufeff${text}`, marked],
    ['without its last line end', (text) => text.trimEnd(), open],
    [
      'with all of that',
      (text) => `\ufeff${text.trimEnd().replaceAll('\n', '\r\n')}`,
      `${marked} and ${returned} and ${open}`,
    ],
  ])(
    'An export that another program saved %s has one finding that says so',
    async (_what, save, how) => {
      const copy = join(folder, 'saved.jsonl');
      await writeFile(copy, save(await readFile(file, 'utf8')));
      const { code, text } = await run('verify', '--file', copy, '--anchor', head, '--json');
      expect(code).toBe(1);
      const finding = `the file ${how}: another program saved it; its rows are compared`;
      expect(JSON.parse(text)).toMatchObject({
        head,
        total: 1,
        findings: [{ kind: 'line_ends', text: `${finding} without that` }],
      });
    },
  );

  it('An export that was saved as UTF-16 is refused with that reason', async () => {
    const copy = join(folder, 'wide.jsonl');
    await writeFile(copy, `\ufeff${await readFile(file, 'utf8')}`, 'utf16le');
    const { code, text } = await run('verify', '--file', copy);
    expect([code, text]).toEqual([1, expect.stringContaining('is not UTF-8: another program')]);
  });

  it.each<[string, (lines: string[]) => string[], string]>([
    [
      'an edited line',
      (lines) => lines.map((line) => line.replace('"id":2,"batch_id"', '"id":2, "batch_id"')),
      'changed: transaction 2 is not as it was posted',
    ],
    [
      'a removed line',
      (lines) => lines.filter((line) => !line.includes('"row":"transaction","id":2,')),
      'removed: transaction 2 is in the chain but not in the ledger: it was removed',
    ],
    [
      'an edited line of evidence',
      (lines) => lines.map((line) => line.replace('intent 2', 'intent 9')),
      'changed: transition 2 is not as it was recorded',
    ],
    [
      'a removed line of evidence',
      (lines) => lines.filter((line) => !line.includes('intent 2')),
      'removed: transition 2 is in the chain but not in the database: it was removed',
    ],
    [
      'an inserted line of evidence',
      (lines) =>
        lines.flatMap((line) =>
          line.includes('intent 2') ? [line, line.replace('"id":2', '"id":9')] : [line],
        ),
      'inserted: transition 9 is in no batch of the chain: it was inserted',
    ],
    [
      'a missing end',
      (lines) => lines.slice(0, -5),
      'cut: batch 3 is missing: the end of the export was cut off',
    ],
    [
      'an edited end',
      (lines) => [...lines.slice(0, -1), '{"row":"end","batches":4,"head":"x:4"}'],
      'cut: batch 4 is missing: the end of the export was cut off',
    ],
  ])('Three files with nothing installed find %s', async (_what, change, finding) => {
    const alone = await mkdtemp(join(folder, 'alone-'));
    for (const name of ['link.ts', 'walk.ts', 'verify-file.ts'])
      await cp(join(CHAIN, name), join(alone, name));
    const lines = (await readFile(file, 'utf8')).trim().split('\n');
    const copy = join(alone, 'ledger.jsonl');
    const check = async (text: string) => {
      await writeFile(copy, text);
      const args = [join(alone, 'verify-file.ts'), copy];
      return promisify(execFile)(process.execPath, args).catch((error) => error);
    };
    expect(await check(`${lines.join('\n')}\n`)).toMatchObject({ stdout: `verified: ${head}\n` });
    const { code, stdout } = await check(`${change(lines).join('\n')}\n`);
    expect(code).toBe(1);
    expect(stdout).toContain(`${finding}\nNOT VERIFIED: `);
  });

  it('A file that is no export is refused with the reason', async () => {
    const none = join(folder, 'none.jsonl');
    await writeFile(none, '{"a":1}\n');
    const { code, text } = await run('verify', '--file', none);
    expect(text).toBe(`${none} is not an export of the ledger in format 2\n`);
    expect(code).toBe(1);
  });
});
