/** Postgres itself refuses postings that would not balance and changes of recorded rows. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tx } from '../../src/db/connect.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { useDatabase } from '../harness/database.ts';
import { faultsOf, NO_FAULTS, START } from './fixture.ts';
import { nthPosting, post, type Raw, refusalOf } from './raw-posting.ts';

const database = await useDatabase();
let batches = 0;
const valid = () => nthPosting(batches + 1);

beforeAll(async () => {
  for (let i = 0; i < 3; i++) {
    await post(database.db, valid());
    batches += 1;
  }
});
afterAll(async () => {
  expect(await faultsOf(database.owner)).toEqual(NO_FAULTS);
});

type Break = (raw: Raw) => Partial<Raw>;
const withEntries =
  (change: (entries: Raw['entries']) => Raw['entries']): Break =>
  (raw) => ({ entries: change(raw.entries) });
const withTransaction =
  (change: Record<string, unknown>): Break =>
  (raw) => ({ transaction: { ...raw.transaction, ...change } });
const withAmounts = (first: string, second: string): Break =>
  withEntries(([a, b]) => [
    { ...pick(a), amount: first },
    { ...pick(b), amount: second },
  ]);
/** The entries of the next posting reverse transaction 1. */
const negated: Break = (raw) => ({
  entries: raw.entries.map((e) => ({
    ...e,
    amount: `${-Number(e.amount)}`,
    after: `${Number(e.after) - 2 * Number(e.amount)}`,
  })),
  accounts: raw.accounts.map((a) => ({ ...a, amount: `${-Number(a.amount)}` })),
});

function pick<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the valid posting has two entries');
  return value;
}

describe('An unbalanced posting', () => {
  it('The posting that every case changes is accepted', async () => {
    const undone = new Error('undo');
    const run = database.db.begin(async (tx) => {
      await post(tx, valid());
      throw undone;
    });
    await expect(run).rejects.toBe(undone);
  });

  it.each<[string, string, Break]>([
    ['amounts that do not sum to zero', 'TH002', withAmounts('-5', '4')],
    ['a missing entry', 'TH002', withTransaction({ count: 3 })],
    [
      'an entry too many',
      'TH002',
      ({ entries: [paid, got] }) => ({
        entries: [
          pick(paid),
          { ...pick(got), amount: '10', after: `${5 * batches + 10}` },
          { ...pick(paid), line: 3, after: `${-5 * batches - 10}`, version: batches + 2 },
        ],
        accounts: [
          { name: 'fees', amount: '-10', count: 2 },
          { name: 'collection', amount: '10', count: 1 },
        ],
      }),
    ],
    ['a transaction without entries', 'TH002', (raw) => ({ ...raw, entries: [], accounts: [] })],
    ['a transaction of one entry', '23514', withTransaction({ count: 1 })],
    [
      'lines that do not count from one',
      'TH002',
      withEntries((all) => all.map((e) => ({ ...e, line: e.line + 1 }))),
    ],
    [
      'entries added to a closed transaction',
      'TH002',
      (raw) => ({
        batch: { ...raw.batch, id: 0 },
        transaction: { id: 1 },
        entries: raw.entries.map((e) => ({ ...e, line: e.line + 2 })),
      }),
    ],
    [
      'a closed transaction written again',
      '23505',
      (raw) => ({
        batch: { ...raw.batch, id: 0 },
        transaction: { id: 1 },
      }),
    ],
    [
      'entries of no transaction',
      'TH002',
      (raw) => ({
        batch: { ...raw.batch, id: 0 },
        transaction: { id: 99 },
      }),
    ],
    [
      'entries of no account',
      'TH003',
      ({ entries: [paid, got] }) => ({
        entries: [pick(paid), { ...pick(got), account: 'none', after: '5', version: 1 }],
        accounts: [{ name: 'fees', amount: '-5', count: 1 }],
      }),
    ],
    [
      'a transaction of no batch',
      'TH004',
      (raw) => ({ batch: { ...raw.batch, id: 0 }, ...withTransaction({ batch: 99 })(raw) }),
    ],
    ['a fraction', '23514', withAmounts('-1.5', '1.5')],
    ['a zero', '23514', withAmounts('0', '0')],
    [
      'a gap in the versions',
      'TH003',
      withEntries((all) => all.map((e) => ({ ...e, version: e.version + 1 }))),
    ],
    [
      'a repeated version',
      '23505',
      withEntries((all) => all.map((e) => ({ ...e, version: e.version - 1 }))),
    ],
    [
      'a balance that does not follow',
      'TH003',
      withEntries((all) => all.map((e) => ({ ...e, after: '7' }))),
    ],
    ['entries that the account does not show', 'TH003', () => ({ accounts: [] })],
    [
      'an account that moves without entries',
      'TH003',
      (raw) => ({
        ...raw,
        transaction: { id: 4 },
        entries: [],
        batch: { ...raw.batch, id: 0 },
      }),
    ],
    ['a second posting of an operation', '23505', withTransaction({ operation: 'op_1' })],
    ['a second posting that is no reversal', '23514', withTransaction({ posting: 2 })],
    ['a posting of nothing', '23514', withTransaction({ operation: null, posting: null })],
    ['an unknown kind', '23514', withTransaction({ kind: 'gift' })],
    [
      'a reversal that does not negate',
      'TH005',
      withTransaction({ kind: 'reversal', posting: 2, operation: 'op_1', reverses: 1 }),
    ],
    ['a gap in the transactions', 'TH004', withTransaction({ id: 5 })],
    [
      'a gap in the batches',
      'TH004',
      (raw) => ({
        batch: { ...raw.batch, id: 5 },
        transaction: { ...raw.transaction, batch: 5 },
      }),
    ],
    ['a batch in the past', 'TH004', (raw) => ({ batch: { ...raw.batch, at: START } })],
    [
      'a transaction of another time than its batch',
      'TH004',
      withTransaction({ recorded: isoText(START + 99) }),
    ],
  ])('Postgres refuses %s with %s', async (_title, code, change) => {
    const raw = valid();
    expect(await refusalOf(database.owner, (tx) => post(tx, { ...raw, ...change(raw) }))).toBe(
      code,
    );
    expect(await refusalOf(database.db, (tx) => post(tx, { ...raw, ...change(raw) }))).toBe(code);
  });

  it('A transaction is reversed once, and not twice', async () => {
    const back = (operation: string) => {
      const raw = valid();
      const given = { kind: 'reversal', posting: 2, operation, reverses: 1 };
      return { ...raw, ...negated(raw), ...withTransaction(given)(raw) };
    };
    const refused = await refusalOf(database.owner, async (tx) => {
      await post(tx, back('op_1'));
      batches += 1;
      const second = back('op_2');
      // The account stands one posting lower now, in both directions.
      const entries = second.entries.map((e) => ({
        ...e,
        after: `${Number(e.after) - (e.line === 1 ? -10 : 10)}`,
      }));
      await post(tx, { ...second, entries });
    });
    batches -= 1;
    expect(refused).toBe('23505');
  });
});

describe('A recorded row', () => {
  const tables = ['entries', 'transactions', 'batches'];
  const changes = [
    ['update', (t: string) => `update tallyhook.${t} set recorded_at = recorded_at`],
    ['delete', (t: string) => `delete from tallyhook.${t}`],
    ['truncate', (t: string) => `truncate tallyhook.${t} cascade`],
  ] as const;
  const cases = tables.flatMap((t) => changes.map(([verb, of]) => [verb, t, of(t)] as const));

  it.each(cases)(
    'Postgres refuses %s of %s to the owner and to the writer',
    async (_verb, _table, statement) => {
      expect(await refusalOf(database.owner, (tx) => tx.sql.unsafe(statement))).toBe('TH001');
      expect(await refusalOf(database.db, (tx) => tx.sql.unsafe(statement))).toBe('42501');
    },
  );

  it.each([
    ['TH003', `update tallyhook.accounts set balance = balance + 1 where name = 'fees'`],
    ['TH003', `update tallyhook.accounts set version = version + 1 where name = 'fees'`],
    ['TH001', `update tallyhook.accounts set name = 'opening' where name = 'fees'`],
    [
      'TH003',
      `insert into tallyhook.accounts (name, kind, balance, version, opened_at)
      values ('external', 'external', 1, 0, now())`,
    ],
    ['TH001', `update tallyhook.posting_requests set amount = 1`],
  ])('Postgres answers with %s: %s', async (code, statement) => {
    expect(await refusalOf(database.owner, (tx) => tx.sql.unsafe(statement))).toBe(code);
    expect(await refusalOf(database.db, (tx) => tx.sql.unsafe(statement))).toBe(code);
  });

  it.each([
    'alter table tallyhook.entries disable trigger entries_balance',
    'alter table tallyhook.entries disable trigger all',
    'drop trigger entries_append_only on tallyhook.entries',
    'drop function tallyhook.check_entries() cascade',
    'create or replace function tallyhook.check_entries() returns trigger language sql as $$$$',
    'set session_replication_role = replica',
  ])('The writer may not: %s', async (statement) => {
    expect(await refusalOf(database.db, (tx) => tx.sql.unsafe(statement))).toBe('42501');
  });

  it('The guards hold even where replication switches triggers off', async () => {
    const raw = valid();
    const unbalanced = { ...raw, ...withAmounts('-5', '4')(raw) };
    const asReplica = (act: (tx: Tx) => Promise<unknown>) =>
      refusalOf(database.owner, async (tx) => {
        await tx.sql`set local session_replication_role = replica`;
        await act(tx);
      });
    expect(await asReplica((tx) => post(tx, unbalanced))).toBe('TH002');
    expect(await asReplica((tx) => tx.sql`delete from tallyhook.entries`)).toBe('TH001');
  });
});
