/**
 * The journal of hledger: a program that we did not write checks what the ledger posted.
 * `HLEDGER_WRITES=100000` makes a ledger of that size; it takes minutes.
 */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { runCommand } from '../harness/command.ts';
import { environmentOf } from '../harness/daemon.ts';
import { useDatabase } from '../harness/database.ts';
import { useFolder } from '../harness/folder.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { seededRandom } from '../harness/seeded-random.ts';
import {
  addr,
  give,
  openLedgerOfInserted,
  putOperations,
  runDry,
  START,
} from '../ledger/fixture.ts';

const DAY_MS = 86_400_000;
const WRITES = Number(process.env.HLEDGER_WRITES ?? 120);
/** Writes that are posted together. */
const TOGETHER = Math.ceil(WRITES / 120);
const [TIMEOUT_MS, BUFFER_BYTES] = [60_000 + 20 * WRITES, 1_000_000_000];
const SEED = 3;
/** The write whose number becomes known after it was posted. */
const LATE = 7;
const database = await useDatabase();
const folder = useFolder();
let file: string;

/** Gives on several days, some reported days later, with texts that look like syntax. */
beforeAll(async () => {
  const clock = manualClock(START + DAY_MS);
  const ledger = await openLedgerOfInserted({ db: database.db, clock });
  const random = seededRandom(SEED);
  for (let first = 0; first < WRITES; first += TOGETHER) {
    clock.advance(Math.floor(random.unit() * DAY_MS));
    const count = Math.min(TOGETHER, WRITES - first);
    const writes = Array.from({ length: count }, (_, i) => writeOf(first + i, clock.now()));
    await putOperations(database.owner, writes);
    await runDry(ledger, clock);
  }
  await database.owner.sql`
    update tallyhook.operations set tx_app_no = 1, tx_log_no = 4711 where id = ${`op_${LATE}`}`;
  file = join(folder, 'ledger.journal');
  const environment = environmentOf(database.url, 'http://127.0.0.1:9');
  const args = ['export', 'ledger', '--format', 'hledger', '--out', file];
  expect((await runCommand(environment, ...args)).code).toBe(0);
}, TIMEOUT_MS);

function writeOf(n: number, now: number) {
  const at = now - (n % 5 === 0 ? 3 * DAY_MS : 0);
  return give(`op_${n}`, {
    amount: n % 7 === 0 ? 10n ** 30n + BigInt(n) : BigInt(1 + n),
    toAddr: addr(n % (WRITES / 20)),
    reference: n % 3 === 0 ? '; = 5 \n2026-01-01 x|y\n  a:b  1\u2028' : null,
    reasonType: n % 4 === 0 ? 'bonus ; x' : 'reward',
    effectiveAt: at,
    recordedAt: at,
    answeredAt: at,
    txLogNo: n === LATE ? null : BigInt(n + 1),
  });
}

async function balances(): Promise<Map<string, string>> {
  const rows = await database.owner.sql<{ account: string; balance: bigint }[]>`
    select account, balance from finance_v1.balances`;
  return new Map(rows.map(({ account, balance }) => [account, String(balance)]));
}

it('Every posting is there, and the last line has the count and the head', async () => {
  const text = await readFile(file, 'utf8');
  expect(text.match(/^\d{4}-\d\d-\d\d=/gm)).toHaveLength(WRITES);
  expect(text).toMatch(new RegExp(`\n; ${WRITES} transactions, head [0-9a-f]{64}:\\d+\n$`));
});

it('The days are those of the zone of the reports, which it names', async () => {
  const zone = 'Pacific/Kiritimati';
  const environment = environmentOf(database.url, 'http://127.0.0.1:9');
  const out = join(folder, 'kiritimati.journal');
  const config = join(folder, 'kiritimati.yaml');
  await writeFile(config, `reports: { reconciliation: { time_zone: ${zone} } }\n`);
  const args = ['export', 'ledger', '--format', 'hledger', '--out', out];
  expect((await runCommand({ ...environment, TALLYHOOK_CONFIG: config }, ...args)).code).toBe(0);
  const text = await readFile(out, 'utf8');
  expect(text).toContain(`; Days are those of the time zone ${zone}\n`);
  const expected = await database.owner.sql<{ dates: string }[]>`
    select concat((recorded_at at time zone ${zone})::date, '=',
      (effective_at at time zone ${zone})::date) as dates from tallyhook.transactions order by id`;
  expect(text.match(/^\d{4}-\d\d-\d\d=\d{4}-\d\d-\d\d/gm)).toEqual(
    expected.map(({ dates }) => dates),
  );
  expect(text).not.toBe(await readFile(file, 'utf8'));
});

it('A number that became known after the posting is in it', async () => {
  const text = await readFile(file, 'utf8');
  expect(text).toMatch(new RegExp(`\\(op_${LATE}\\)[^\\n]*\\n[^\\n]*tx:1/4711`));
});

const hledger = async (...args: string[]) =>
  (await promisify(execFile)('hledger', ['-f', file, ...args], { maxBuffer: BUFFER_BYTES })).stdout;

it('hledger accepts every balance in it, and comes to the same balances', {
  timeout: TIMEOUT_MS,
}, async () => {
  expect(await hledger('check')).toBe('');
  const csv = await hledger('balance', '--flat', '--empty', '-N', '-O', 'csv', '--layout=bare');
  const rows = csv.trim().split('\n').slice(1);
  const found = rows.map((row) => row.replaceAll('"', '').split(','));
  const own = [...(await balances())].map(([account, balance]) => [account, balance]);
  expect(found.map(([account, , balance]) => [account, balance]).sort()).toEqual(own.sort());
});
