/** The examples of docs/finance.md, run with the login of finance alone. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { isoText } from '../../src/kernel/clock.ts';
import { addr, DAY, HOUR } from '../reports/world.ts';
import { useFinance } from './rig.ts';

const DOCUMENT = readFileSync(join(import.meta.dirname, '../../docs/finance.md'), 'utf8');
const EXAMPLES = DOCUMENT.split('\n')
  .filter((line) => line.startsWith('    '))
  .map((line) => line.trim().replace(/\s*--.*/, ''))
  .join(' ')
  .match(/select [^;]*;/g);

const { world, finance } = await useFinance();
const ids: Record<string, string> = {};

beforeAll(async () => {
  const [row] = await world.owner.sql<{ now: number }[]>`select now() as now`;
  const now = row?.now ?? 0;
  const give = (name: string, at: number, columns: object = {}) => {
    const times = { recorded_at: isoText(at), sent_at: isoText(at), effective_at: isoText(at) };
    const base = { reference: name, tx_app_no: 1, tx_log_no: at, answer_status: 200 };
    return world
      .operation({ ...times, answered_at: isoText(at), ...base, ...columns })
      .then((id) => {
        ids[name] = id;
      });
  };
  await world.open(addr(1), 0n, now - 41 * DAY);
  await give('before', now - 40 * DAY, { reason_type: 'welcome', amount: 40 });
  // Later than any midnight that can pass meanwhile.
  await give('new', now + HOUR, { reason_type: 'welcome', amount: 5 });
  await give('bonus', now + HOUR, { reason_type: 'bonus', amount: 7 });
  const lost = { state: 'executed', tx_app_no: null, tx_log_no: null, answer_status: null };
  await give('lost', now - 40 * DAY, { ...lost, reason_type: 'bonus', amount: 2 });
  await give('unknown', now + HOUR, { ...lost, state: 'unknown', owner: 'shop', amount: 3 });
  await world.post();
});
/** The rows of the only example that contains this text. */
async function rowsOf(text: string): Promise<Record<string, unknown>[]> {
  const found = (EXAMPLES ?? []).filter((example) => example.includes(text));
  expect(found).toHaveLength(1);
  return await finance.sql.unsafe(String(found[0]).replaceAll('0x…', addr(1)));
}

it('Every example of docs/finance.md runs', async () => {
  expect(EXAMPLES?.length).toBeGreaterThan(7);
  for (const example of EXAMPLES ?? []) {
    const run = finance.sql.unsafe(example.replaceAll('0x…', addr(1)));
    await expect(run, example).resolves.toBeDefined();
  }
});

it('What a wallet held at the last midnight of Seoul is the end of its statement until then', async () => {
  expect(await rowsOf("balance from finance_v1.balances_as_of(date_trunc('day'")).toEqual([
    { balance: 42n },
  ]);
  const statement = await rowsOf("wallet_statement('0x…', null, date_trunc");
  expect(statement.map(({ amount }) => amount)).toEqual([40n, 2n]);
  expect(statement.at(-1)).toMatchObject({ balanceAfter: 42n, counterparty: 'operator:7' });
});

it('What an operator paid this month is summed by reason', async () => {
  expect(await rowsOf('operation_no = 7')).toEqual([
    { reasonType: 'bonus', gives: 1n, paid: 7n },
    { reasonType: 'welcome', gives: 1n, paid: 5n },
  ]);
});

it('Who holds an operator number is a row of operators', async () => {
  expect(await rowsOf('finance_v1.operators')).toMatchObject([{ account: 'operator:7' }]);
});

it('Executed writes without a number are listed', async () => {
  expect(await rowsOf('operations_without_tx_number')).toMatchObject([{ operationId: ids.lost }]);
});

it('What is in doubt is listed with since when and who has it', async () => {
  expect(await rowsOf('in_doubt')).toMatchObject([{ operationId: ids.unknown, owner: 'shop' }]);
});
