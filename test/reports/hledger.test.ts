/** hledger of Debian on the journal of a report: a program that we did not write checks it. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { renderJournal } from '../../src/reports/render/journal.ts';
import { useFolder } from '../harness/folder.ts';
import { balancedWorld, useWorld } from './world.ts';

const world = await useWorld(balancedWorld());
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
  const lines = { listed, total: listed.length, openings: [] };
  await expect(hledger(renderJournal(changed, lines), 'check')).rejects.toThrow(/assertion/i);
});
