/** hledger of Debian on the journal of a report: a program that we did not write checks it. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { renderJournal } from '../../src/reports/render/journal.ts';
import { useFolder } from '../harness/folder.ts';
import { addr, balancedWorld, DAY, HOUR, START, timesAt, useWorld } from './world.ts';

const world = await useWorld(balancedWorld());
const seoul = await useWorld(balancedWorld({ settings: { timeZone: 'Asia/Seoul' } }));
const folder = useFolder();

beforeAll(async () => {
  await world.operation({ reason_type: 'welcome', amount: 5 });
  await world.post();
});

async function hledger(journal: string, ...args: string[]): Promise<string> {
  const file = join(folder, 'report.journal');
  await writeFile(file, journal);
  return (await promisify(execFile)('hledger', ['-f', file, ...args])).stdout;
}

it('hledger accepts the journal of a report, and refuses one whose closing is another', async () => {
  const report = await world.report();
  const journal = String(await world.reports.renderReport(report.id, 'hledger'));
  expect(await hledger(journal, 'check')).toBe('');
  const balances = await hledger(journal, 'balance', '--flat', '-N', 'wallet');
  for (const { account, balance } of await world.db.sql<{ account: string; balance: bigint }[]>`
    select account, balance from finance_v1.balances where account like 'wallet:%'
      and balance <> 0`)
    expect(balances).toContain(`${balance} service_token  ${account}\n`);
  const { content } = report;
  const [kind, ...kinds] = content.roll_forward;
  const wrong = { ...kind, closing: `${BigInt(kind?.closing ?? 0) + 1n}` } as typeof kind & object;
  const changed = { ...report, content: { ...content, roll_forward: [wrong, ...kinds] } };
  const listed = await world.reports.listLines(report.id, {}, { after: undefined, limit: 500 });
  const day = '2026-01-01';
  const days = { first: day, last: day, of: listed.map(() => day) };
  const lines = { listed, total: listed.length, openings: [], days };
  await expect(hledger(renderJournal(changed, lines), 'check')).rejects.toThrow(/assertion/i);
});

it('The days of the journal are those of the time zone of the report, which it names', async () => {
  const from = START - 9 * HOUR;
  const give = (at: number, amount: number) =>
    seoul.operation({ ...timesAt(at), to_addr: addr(4), reason_type: 'late', amount });
  await give(from + DAY - 1, 3);
  await give(from + DAY, 5);
  seoul.clock.set(START + 2 * DAY);
  await seoul.post();
  const { id } = await seoul.report(from, from + 2 * DAY);
  const journal = String(await seoul.reports.renderReport(id, 'hledger'));
  expect(journal).toContain('; Days are those of the time zone Asia/Seoul\n');
  expect(await hledger(journal, 'check')).toBe('');
  const register = await hledger(journal, 'register', `wallet:${addr(4)}`, '-O', 'csv');
  expect(
    register.split('\n').flatMap((line) => /(2026-01-0\d).*late/.exec(line)?.[1] ?? []),
  ).toEqual(['2026-01-01', '2026-01-02']);
});
