/** `verify` finds and names what people change who may write everything. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { exportLedger, parseAnchor, verifyFile, verifyLedger } from '../../src/ledger/ledger.ts';
import { readChainHead } from '../harness/books.ts';
import { createDatabase, type TestDatabase } from '../harness/database.ts';
import { manualClock } from '../harness/manual-clock.ts';
import { give, openLedgerOfInserted, putOperations, runDry, START } from './fixture.ts';
import { refusalOf } from './raw-posting.ts';

let database: TestDatabase;
/** The head after three batches. */
let head: string;

/** Two gives a batch, so batch 2 has the transactions 3 and 4, and a minted token. */
async function makeLedgerOf(batches: number): Promise<TestDatabase> {
  const made = await createDatabase();
  const clock = manualClock(START + 1_000);
  const ledger = await openLedgerOfInserted({ db: made.db, clock });
  for (let n = 0; n < batches; n++) {
    const [one, two] = [2 * n + 1, 2 * n + 2];
    await putOperations(made.owner, [
      give(`op_${one}`, { amount: BigInt(10 * one), reference: 'naïve "quoted"\n\u2028 \u0001' }),
      give(`op_${two}`, { amount: 10n ** 40n, txLogNo: BigInt(two) }),
      {
        id: `op_mint_${n}`,
        kind: 'mint',
        state: 'settled',
        contractId: 1n,
        tokenId: BigInt(n + 1),
        toAddr: '0xAb',
      },
    ]);
    clock.advance(1_000);
    await runDry(ledger, clock);
  }
  return made;
}

beforeEach(async () => {
  database = await makeLedgerOf(3);
  head = (await readChainHead(database.db)) ?? '';
});
afterEach(() => database.drop());

async function verify(...anchors: string[]) {
  const kept = anchors.flatMap((text) => parseAnchor(text, 'the anchor') ?? []);
  return verifyLedger(database.db, kept);
}

/** What is found, such as `changed transaction 3`. */
async function found(...anchors: string[]): Promise<string[]> {
  const { ok, findings, total } = await verify(...anchors);
  expect(ok).toBe(total === 0);
  expect(total).toBe(findings.length);
  return findings.map(({ kind, row }) => `${kind}: ${row}`);
}

const TABLES = ['chain', 'batches', 'transactions', 'entries', 'nft_movements', 'accounts'];

/** Runs statements as a superuser who switched the guards and foreign keys off. */
async function tamper(...statements: string[]): Promise<void> {
  await database.owner.begin(async ({ sql }) => {
    for (const table of TABLES)
      await sql.unsafe(`alter table tallyhook.${table} disable trigger all`);
    for (const statement of statements) await sql.unsafe(statement);
    for (const table of TABLES)
      await sql.unsafe(`alter table tallyhook.${table} enable trigger all`);
  });
}

const swap = (table: string, column: string) => `
  update tallyhook.${table} set ${column} = -5 where ${column} = 2;
  update tallyhook.${table} set ${column} = 2 where ${column} = 3;
  update tallyhook.${table} set ${column} = 3 where ${column} = -5`;
/** Transaction 6 again under another number, in its batch or a later one. */
const insertOf = (id: number, batch = 'batch_id', later = '0 s') => [
  `insert into tallyhook.transactions (id, batch_id, kind, operation_id, posting, effective_at,
    effective_basis, recorded_at, entry_count)
  select ${id}, ${batch}, kind, 'op_forged', 1, effective_at, effective_basis,
    recorded_at + interval '${later}', 2
  from tallyhook.transactions where id = 6`,
  `insert into tallyhook.entries
  select ${id}, line, account_id, amount, balance_after + amount, version + 1, effective_at,
    recorded_at + interval '${later}'
  from tallyhook.entries where transaction_id = 6`,
];
/** The same in one statement, as the triggers require it. */
const insertAtOnce = (...[transaction, entries]: string[]) => `
  t as (${transaction}), a as (
    update tallyhook.accounts a set balance = a.balance + e.amount, version = a.version + 1
    from tallyhook.entries e where e.transaction_id = 6 and e.account_id = a.id)
  ${entries}`;
const insertBatch = (transactions: number, entries: number) => `
  insert into tallyhook.batches select 4, max(recorded_at) + interval '1 s', ${transactions},
    ${entries} from tallyhook.batches`;
/** Removes transactions as if they had never been posted. */
const cutFrom = (id: number) => `
  delete from tallyhook.entries where transaction_id >= ${id};
  delete from tallyhook.transactions where id >= ${id}`;
const resetAccounts = `
  update tallyhook.accounts a set balance = e.balance_after, version = e.version
  from (select distinct on (account_id) * from tallyhook.entries
    order by account_id, version desc) e
  where e.account_id = a.id`;
const cutChain = `
  delete from tallyhook.chain where batch_id = 3;
  delete from tallyhook.nft_movements where batch_id = 3;
  delete from tallyhook.batches where id = 3`;

describe('Tampering as a superuser', () => {
  it('Without tampering nothing is found', async () => {
    expect(await verify(head)).toMatchObject({
      ok: true,
      count: 3n,
      transactions: 6n,
      anchors: 1,
      findings: [],
      head: head.split(':')[0],
    });
  });

  it('An export is verified as its ledger is, with any texts in its rows', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tallyhook-chain-'));
    const file = join(folder, 'ledger.jsonl');
    await exportLedger(database.db, (lines) => writeFile(file, lines));
    expect(await verifyFile(file, [])).toEqual(await verify());
    await rm(folder, { recursive: true });
  });

  it.each<[string, string[], string[]]>([
    [
      'An updated entry',
      ['update tallyhook.entries set amount = 2 * amount where transaction_id = 3'],
      ['changed: transaction 3'],
    ],
    [
      'An updated account of an entry',
      [`update tallyhook.accounts set name = 'wallet:0xThief' where kind = 'wallet'`],
      [1, 2, 3, 4, 5, 6].map((n) => `changed: transaction ${n}`),
    ],
    [
      'An updated batch',
      [`update tallyhook.batches set recorded_at = recorded_at - interval '1 ms' where id = 2`],
      ['changed: batch 2'],
    ],
    [
      'An updated balance of an account',
      [`update tallyhook.accounts set balance = balance + 1 where name = 'operator:7'`],
      ['account_off: account operator:7'],
    ],
    [
      'A deleted transaction',
      [
        'delete from tallyhook.entries where transaction_id = 3',
        'delete from tallyhook.transactions where id = 3',
      ],
      ['removed: transaction 3'],
    ],
    [
      'A deleted entry',
      ['delete from tallyhook.entries where transaction_id = 3 and line = 2'],
      ['changed: transaction 3'],
    ],
    [
      'A deleted movement of a token',
      ['delete from tallyhook.nft_movements where batch_id = 2'],
      ['removed: batch 2'],
    ],
    ['A cut tail', [cutFrom(5), resetAccounts], ['cut: transaction 5']],
    ['A tail cut through a batch', [cutFrom(6), resetAccounts], ['cut: transaction 6']],
    [
      'Swapped transactions',
      [swap('transactions', 'id'), swap('entries', 'transaction_id')],
      ['swapped: transaction 2', 'swapped: transaction 3'],
    ],
    ['An inserted transaction', [...insertOf(7), resetAccounts], ['inserted: transaction 7']],
    [
      'An inserted movement of a token',
      [
        `insert into tallyhook.nft_movements (batch_id, kind, contract_id, token_id, effective_at,
           effective_basis, recorded_at)
         select batch_id, 'mint', 1, 99, effective_at, 'observed', recorded_at
         from tallyhook.nft_movements where batch_id = 2`,
      ],
      ['inserted: movement 4'],
    ],
    [
      'Edited metadata of a transaction',
      [`update tallyhook.transactions set reference = 'other' where id = 4`],
      ['changed: transaction 4'],
    ],
    [
      'An edited movement of a token',
      [`update tallyhook.nft_movements set to_addr = '0xThief' where batch_id = 2`],
      ['changed: movement 2'],
    ],
    [
      'An edited head in the chain table',
      [`update tallyhook.chain set head = sha256('x') where batch_id = 2`],
      ['chain_edited: chain row 2'],
    ],
    [
      'An edited digest in the chain table',
      [
        `update tallyhook.chain set transactions = sha256('x') || substr(transactions, 33)
         where batch_id = 2`,
      ],
      ['chain_edited: chain row 2'],
    ],
    [
      'A deleted row of the chain table',
      ['delete from tallyhook.chain where batch_id = 2'],
      ['chain_edited: chain row 2'],
    ],
    [
      'A deleted last row of the chain table',
      ['delete from tallyhook.chain where batch_id = 3'],
      [
        'inserted: batch 3',
        'inserted: transaction 5',
        'inserted: transaction 6',
        'inserted: movement 3',
      ],
    ],
  ])('%s is found and named', async (_what, statements, expected) => {
    await tamper(...statements);
    expect(await found()).toEqual(expected);
  });

  it('A tail that is cut with its chain is named by a head that was kept elsewhere', async () => {
    await tamper(cutFrom(5), cutChain, resetAccounts);
    expect(await found()).toEqual([]);
    expect(await found(head)).toEqual(['older_copy: batch 3']);
  });

  it('A chain that is computed again is named by a head that was kept elsewhere', async () => {
    await tamper(
      `update tallyhook.transactions set reference = 'other' where id = 2`,
      'delete from tallyhook.chain',
      `select tallyhook.extend_chain(n, '') from generate_series(1, 3) n`,
    );
    expect(await found()).toEqual([]);
    expect(await found(head)).toEqual(['rewritten: batch 3']);
  });

  it('An older copy is named by a head that was kept elsewhere, and its own head fits', async () => {
    await database.drop();
    database = await makeLedgerOf(2);
    const own = (await readChainHead(database.db)) ?? '';
    expect(await found(own)).toEqual([]);
    expect(await found(own, head)).toEqual(['older_copy: batch 3']);
  });
});

describe('The writer role', () => {
  it.each([
    'insert into tallyhook.chain select 4, 6, batch, transactions, movements, head from tallyhook.chain',
    `update tallyhook.chain set head = ''`,
    'delete from tallyhook.chain',
    'truncate tallyhook.chain',
    `select tallyhook.extend_chain(1, '')`,
    'alter table tallyhook.batches disable trigger batches_chained',
  ])('The writer may not: %s', async (statement) => {
    expect(await refusalOf(database.db, (tx) => tx.sql.unsafe(statement))).toBe('42501');
  });

  it('A batch that is whole is accepted, and is in the chain', async () => {
    const whole = `with b as (${insertBatch(1, 2)}), ${insertAtOnce(...insertOf(7, '4', '1 s'))}`;
    expect(await refusalOf(database.db, (tx) => tx.sql.unsafe(whole))).toBeUndefined();
    expect(await verify(head)).toMatchObject({ ok: true, count: 4n, transactions: 7n });
  });

  it.each([
    [
      'a movement added to a batch',
      `insert into tallyhook.nft_movements (batch_id, kind, contract_id, token_id, effective_at,
         effective_basis, recorded_at)
       select id, 'mint', 1, 99, recorded_at, 'observed', recorded_at
       from tallyhook.batches where id = 2`,
    ],
    ['a batch with fewer rows than it says', insertBatch(1, 2)],
    [
      'a batch with more rows than it says',
      `with b as (${insertBatch(0, 0)}), ${insertAtOnce(...insertOf(7, '4', '1 s'))}`,
    ],
    ['a transaction added to a batch', `with ${insertAtOnce(...insertOf(7))}`],
  ])('Postgres refuses %s', async (_what, statement) => {
    expect(await refusalOf(database.db, (tx) => tx.sql.unsafe(statement))).toBe('TH004');
    expect(await found(head)).toEqual([]);
  });
});
