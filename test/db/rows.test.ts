/** Rows stored by the columns of their table: values as given, and defaults where none is. */
import { bigint, boolean, pgTable, smallint, text } from 'drizzle-orm/pg-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { instant, json, whole } from '../../src/db/columns.ts';
import { columnsOf, newValues, rowOf, rowsOf } from '../../src/db/rows.ts';
import { useDatabase } from '../harness/database.ts';

const kept = pgTable('kept', {
  id: bigint({ mode: 'bigint' }).primaryKey(),
  amount: whole(),
  isGood: boolean('is_good'),
  small: smallint(),
  name: text(),
  at: instant(),
  note: text().default('unasked'),
});
const documents = pgTable('documents', { id: text().primaryKey(), body: json(), note: text() });

const { owner } = await useDatabase();
beforeEach(async () => {
  await owner.sql`drop table if exists public.kept, public.documents`;
  await owner.sql`create table public.kept (id bigint primary key, amount numeric, is_good boolean,
    small smallint, name text, at timestamptz(3), note text default 'unasked')`;
  await owner.sql`create table public.documents (id text primary key, body jsonb,
    note text default 'unasked')`;
});

const HUGE = -(10n ** 40n);
const EMPTY = { amount: null, isGood: null, small: null, name: null, at: null };
const row = (id: bigint, more: Partial<typeof kept.$inferInsert> = {}) => ({
  id,
  ...EMPTY,
  ...more,
});
type Given = typeof kept.$inferInsert;

async function storedAs(rows: readonly Given[]) {
  return owner.begin(async ({ sql }) => {
    await sql`insert into public.kept ${rowsOf(sql, kept, rows)}`;
    return [...(await sql`select ${columnsOf(sql, kept)} from public.kept order by id`)];
  });
}

describe('Many rows', () => {
  const at = Date.UTC(2026, 0, 31, 9, 5, 0, 7);
  it.each<[string, readonly Given[]]>([
    ['values of every type', [row(1n, { amount: HUGE, isGood: false, small: -1, name: 'x', at })]],
    [
      'null before values',
      [row(1n), row(2n, { amount: 0n, isGood: true, small: 0, name: '', at })],
    ],
    ['values before null', [row(1n, { amount: 7n, isGood: true, name: 'null', at }), row(2n)]],
    [
      'texts like arrays',
      ['{}', '"', '\\', 'a,b', "'", '\n', 'NULL', ' '].map((name, n) => row(BigInt(n), { name })),
    ],
    ['only numbers below zero', [row(2n ** 63n - 1n, { amount: -1n, small: -32_768 })]],
    ['no row', []],
  ])('With %s are stored as they were given', async (_, rows) => {
    const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    expect(await storedAs(rows)).toEqual(sorted.map((one) => ({ ...one, note: 'unasked' })));
  });

  it('A column that no row names has its default, and one that some name is null in the others', async () => {
    expect(await storedAs([{ id: 1n }, { id: 2n, note: 'asked' }])).toEqual([
      { ...row(1n), note: null },
      { ...row(2n), note: 'asked' },
    ]);
  });
});

describe('One row', () => {
  it.each<[string, (typeof documents.$inferInsert)['body']]>([
    ['an object', { a: [1, null], b: 2n ** 70n }],
    ['a text', 'x'],
    ['a list of texts', ['a', 'b']],
    ['an empty list', []],
    ['nothing', null],
  ])('Has %s as its document', async (_, body) => {
    await owner.sql`insert into public.documents ${rowOf(owner.sql, documents, { id: '1', body })}`;
    const rows = await owner.sql`select ${columnsOf(owner.sql, documents)} from public.documents`;
    expect(rows[0]).toEqual({ id: '1', note: 'unasked', body });
  });

  it('Replaces every value of the row with its key but for those that are excepted', async () => {
    const { sql } = owner;
    const save = (given: typeof documents.$inferInsert) => sql`
      insert into public.documents ${rowOf(sql, documents, given)}
      on conflict (id) do update set ${newValues(sql, documents, 'id', 'note')}`;
    await save({ id: '1', body: { n: 1 }, note: 'first' });
    await save({ id: '1', body: { n: 2 }, note: 'second' });
    expect([...(await sql`select id, body, note from public.documents`)]).toEqual([
      { id: '1', body: { n: 2 }, note: 'first' },
    ]);
  });
});
