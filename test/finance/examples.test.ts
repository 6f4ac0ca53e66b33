/**
 * The examples of docs/finance.md, run with the login of finance alone, in a session of a time zone
 * in which the day of Seoul is another one.
 */
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
  const party = { to_addr: addr(5), operation_no: 9 };
  // At the first instants and before the last of October and November in Seoul.
  for (const [name, at] of Object.entries(MONTHS)) {
    await give(`${name} begins`, at, { ...party, amount: 100 });
    await give(`${name} has not begun`, at - 1, { ...party, amount: 1 });
  }
  const nft = { amount: null, operation_no: null, contract_id: 5, state: 'settled' };
  for (const [i, at] of [MONTHS.october - 1, MONTHS.october, MONTHS.november - 1].entries())
    await give(`token ${i}`, at, { ...nft, kind: 'mint', token_id: i, tx_hash: `0x${i}` });
  await give('token 3', MONTHS.november, { ...nft, kind: 'mint', token_id: 3, tx_hash: '0x3' });
  await world.post();
});

/** Where months begin in Seoul. */
const MONTHS = {
  october: Date.UTC(2026, 8, 30, 15),
  november: Date.UTC(2026, 9, 31, 15),
  december: Date.UTC(2026, 10, 30, 15),
};

/** The rows of the only example that contains this text. */
async function rowsOf(text: string): Promise<Record<string, unknown>[]> {
  const found = (EXAMPLES ?? []).filter((example) => example.includes(text));
  expect(found).toHaveLength(1);
  const rows = await Promise.all(
    ['Pacific/Kiritimati', 'America/Anchorage', 'Asia/Seoul'].map((zone) =>
      finance.begin(async (tx) => {
        await tx.sql.unsafe(`set local timezone = '${zone}'`);
        return tx.sql.unsafe<Record<string, unknown>[]>(
          String(found[0]).replaceAll('0x…', addr(1)),
        );
      }),
    ),
  );
  const [first = []] = rows;
  expect(rows).toEqual(rows.map(() => first));
  return first;
}

it('Every example of docs/finance.md runs', async () => {
  expect(EXAMPLES?.length).toBeGreaterThan(7);
  for (const example of EXAMPLES ?? []) {
    const run = finance.sql.unsafe(example.replaceAll('0x…', addr(1)));
    await expect(run, example).resolves.toBeDefined();
  }
});

it('What a wallet held at the last midnight of Seoul is the end of its statement until then', async () => {
  expect(await rowsOf('select balance from finance_v1.balances_as_of(')).toEqual([
    { balance: 42n },
  ]);
  const statement = await rowsOf("wallet_statement('0x…', null,");
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

it('A trial balance as of November in Seoul has what took effect before its first instant', async () => {
  const rows = await rowsOf('finance_v1.trial_balance');
  const held = rows.find(({ account }) => account === `wallet:${addr(5)}`);
  // October, and the last instants of September and October.
  expect(held).toMatchObject({ debit: 102n });
});

it('Movements of November are of the days of Seoul in sessions of every zone', async () => {
  const rows = await rowsOf('movements_daily');
  const days = rows.filter(({ reasonType }) => reasonType === null);
  expect(days.map(({ day, amount }) => [isoText(Number(day)).slice(0, 10), amount])).toEqual([
    ['2026-11-01', 100n],
    ['2026-11-30', 1n],
  ]);
});

it('NFTs of October are those that moved in the month of Seoul', async () => {
  expect((await rowsOf('nft_holdings_as_of')).map(({ tokenId }) => tokenId)).toEqual([0n, 1n, 2n]);
  expect((await rowsOf('nft_movements where')).map(({ tokenId }) => tokenId)).toEqual([1n, 2n]);
  expect(await rowsOf('nft_supply')).toMatchObject([{ minted: 3n, held: 3n }]);
});
