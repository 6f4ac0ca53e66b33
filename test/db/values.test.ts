/** The exact conversion of values between the program and Postgres. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { asJson, type Db } from '../../src/db/connect.ts';
import { installation } from '../../src/db/tables.ts';
import { isoText } from '../../src/kernel/clock.ts';
import { type Json, jsonText, parseJson } from '../../src/kernel/json.ts';
import { keys, owners } from '../../src/keys/tables.ts';
import type { Scope } from '../../src/resources/admin/key.ts';
import { useDatabase } from '../harness/database.ts';

const database = await useDatabase();
let owner: Db;
beforeAll(async () => {
  owner = database.owner;
});

const KEY = {
  id: 'key_1',
  hash: 'h',
  name: 'n',
  owner: 'o',
  limits: null,
  createdAt: 0,
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
};

const first = async (rows: PromiseLike<readonly object[]>) =>
  Object.values((await rows)[0] ?? {})[0] as unknown;

describe('Values', () => {
  const whole = fc
    .tuple(fc.boolean(), fc.stringMatching(/^(0|[1-9]\d{0,59})$/))
    .map(([minus, digits]) => BigInt(digits) * (minus ? -1n : 1n));

  it('that are whole numbers keep up to 60 digits', async () => {
    await fc.assert(
      fc.asyncProperty(whole, async (value) => {
        const { sql } = owner;
        expect(await first(sql`select ${value.toString()}::numeric as x`)).toBe(value);
        const rows = asJson([{ x: value }]);
        expect(
          await first(sql`select x from jsonb_to_recordset(${rows}::jsonb) as r(x numeric)`),
        ).toBe(value);
        expect(await first(sql`select ${asJson({ x: value })}::jsonb as x`)).toEqual({
          x: Number.isSafeInteger(Number(value)) ? Number(value) : value,
        });
      }),
      { numRuns: 30 },
    );
  });

  it('that are instants keep milliseconds, in parameters and in drizzle', async () => {
    const at = fc.integer({ min: 0, max: Date.UTC(9999, 0, 1) });
    await fc.assert(
      fc.asyncProperty(at, async (instant) => {
        expect(await first(owner.sql`select ${isoText(instant)}::timestamptz as x`)).toBe(instant);
        const row = { name: 'x', value: 'y', setAt: instant };
        const write = owner.orm.insert(installation).values(row);
        await write.onConflictDoUpdate({ target: installation.name, set: row });
        expect(await owner.orm.select().from(installation)).toEqual([row]);
      }),
      { numRuns: 20 },
    );
  });

  it('that are lists keep their elements, in parameters and in drizzle', async () => {
    await owner.orm.insert(owners).values({ name: KEY.owner });
    const text = fc.oneof(fc.string(), fc.constantFrom('', 'null', 'NULL', '{}', 'a,"b"\\\n'));
    const texts = fc.array(
      text.filter((one) => !one.includes('\0')),
      { maxLength: 5 },
    );
    await fc.assert(
      fc.asyncProperty(texts, fc.array(whole, { maxLength: 5 }), async (given, numbers) => {
        const { sql } = owner;
        expect(await first(sql`select ${given}::text[] as x`)).toEqual(given);
        expect(await first(sql`select ${numbers.map(String)}::numeric[] as x`)).toEqual(numbers);
        const row = { ...KEY, scopes: given as Scope[] };
        await owner.orm.delete(keys);
        await owner.orm.insert(keys).values(row);
        expect(await owner.orm.select({ scopes: keys.scopes }).from(keys)).toEqual([
          { scopes: given },
        ]);
      }),
      { numRuns: 40 },
    );
  });

  it.each<[string, string, unknown]>([
    ['a list of booleans', "select '{t,f,null}'::boolean[] as x", [true, false, null]],
    ['a list of counts', "select '{1,2}'::int[] as x", [1, 2]],
    ['a list of instants', "select '{epoch}'::timestamptz[] as x", [0]],
    ['an empty list', "select '{}'::uuid[] as x", []],
    ['a bigint', 'select 9007199254740993::bigint as x', 9007199254740993n],
    ['a count', 'select count(*)::int as x from pg_class where false', 0],
    ['a fraction', 'select 1.5::numeric as x', '1.5'],
    [
      'an instant with microseconds',
      "select '2026-01-01 00:00:00.123456+00'::timestamptz as x",
      Date.UTC(2026, 0, 1) + 123,
    ],
    [
      'an instant of another zone',
      "select '2026-01-01 02:00:00+02'::timestamptz as x",
      Date.UTC(2026, 0, 1),
    ],
    ['a list of numbers', "select '{1,9007199254740993}'::numeric[] as x", [1n, 9007199254740993n]],
    ['json text', `select '{"a":9007199254740993}'::json as x`, { a: 9007199254740993n }],
    ['nothing', 'select null::numeric as x', null],
  ])('that are %s are read exactly', async (_what, query, value) => {
    expect(await first(owner.sql.unsafe(query))).toEqual(value);
  });

  it.each<[string, Json, Json]>([
    ['NUL', 'a\0b', 'a\ufffdb'],
    ['half of a pair', 'a\ud800b', 'a\ufffdb'],
    ['the other half', '\udfff', '\ufffd'],
    ['a whole pair', '😀', '😀'],
    ['a backslash before u0000', '\\u0000', '\\u0000'],
    ['NUL after a backslash', '\\\0', '\\\ufffd'],
    ['a control character', '\u0001\u001f', '\u0001\u001f'],
  ])('that are text with %s do not fail a batch', async (_what, given, kept) => {
    const rows = asJson([{ x: given, y: { [String(given)]: 1 } }, { x: 'other' }]);
    const { sql } = owner;
    const read = await sql<{ x: string }[]>`
      select x, y from jsonb_to_recordset(${rows}::jsonb) as r(x text, y jsonb)`;
    expect(read).toEqual([
      { x: kept, y: { [String(kept)]: 1 } },
      { x: 'other', y: null },
    ]);
  });

  it('that are any JSON are unchanged', async () => {
    // Postgres writes out a double such as 1e21, which is a whole number of 22 digits then.
    const anyJson = fc.jsonValue().filter((given) => !/\de\+/.test(jsonText(given)));
    await fc.assert(
      fc.asyncProperty(anyJson, async (value) => {
        // The document as one member: a bare null would be SQL null.
        const document = asJson({ value });
        const read = await first(owner.sql`select ${document}::jsonb as x`);
        expect(read).toEqual(parseJson(jsonText({ value })));
      }),
      { numRuns: 40 },
    );
  });
});
